"""The face as values: its state, what inputs do to it, which keys mean what, and the frame that shows it. Pure."""
