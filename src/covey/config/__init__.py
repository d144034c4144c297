"""What the user and the project have set. Read from files, never executed."""
