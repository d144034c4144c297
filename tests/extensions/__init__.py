"""What needs programs of others that are large: `make test-extensions` installs and runs it."""
