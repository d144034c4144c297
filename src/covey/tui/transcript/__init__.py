"""What was said and done in a session, as rows: made where somebody looks, and kept where the user is."""
