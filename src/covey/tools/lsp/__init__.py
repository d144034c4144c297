"""Language servers: what is wrong with a file that was just changed, where a name comes from, who uses it."""
