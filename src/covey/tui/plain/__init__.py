"""The face that only ever appends: for screen readers, pipes, and terminals on which no cursor can be moved."""
