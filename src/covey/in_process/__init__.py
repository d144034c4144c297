"""A whole server inside a program: `covey.open`. The only part that sees both the client and the server."""
