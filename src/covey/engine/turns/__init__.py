"""What one turn does: its steps, model calls, tool calls, and how it is closed."""
