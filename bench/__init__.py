"""Measures a real server over real sockets, beside plain references measured in the same run."""
