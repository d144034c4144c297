"""Covey: a coding agent that runs as a server."""

__version__ = "0.1.0"
