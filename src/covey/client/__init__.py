"""Talks to a Covey server: one typed method for each route, an event stream that heals itself, and finding a server."""
