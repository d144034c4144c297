"""What carries out the rulings of `lifecycle.runs`: one dispatcher for each busy session."""
