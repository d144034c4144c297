"""Out to the machine: one file for each tool, and one .md beside it with what the model reads about it."""
