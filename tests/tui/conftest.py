"""Real servers and projects for the terminal UI: those of the command line's tests."""

from tests.cli.conftest import home, own_home, shared_home

__all__ = ["home", "own_home", "shared_home"]
