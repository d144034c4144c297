"""What the model is told about where it is: its instructions, files that projects keep for agents, the state of git."""
