"""Judges what a store holds by every promise, explains what it finds, and repairs it. No server is needed."""
