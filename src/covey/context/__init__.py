"""What the model is given: its instructions, files that projects keep for agents, the state of git."""
