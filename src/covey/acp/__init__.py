"""`covey acp`: speaks the Agent Client Protocol with an editor, as one client of the server among others."""
