"""HTTP in, events out. Knows the engine, decides nothing about runs."""
