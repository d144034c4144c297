"""Taking turns back with the files that they changed, and forking sessions."""
