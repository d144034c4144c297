"""The terminal face: what a person sees and types. It is a client of the server like any other."""
