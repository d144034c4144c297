"""What the server may ask of a workspace, one module for each subject."""
