"""The face: what keys and events do to it, and what it shows."""
