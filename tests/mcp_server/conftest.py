"""The same home as for editors: what the model does is the same."""

from __future__ import annotations

from tests.acp.conftest import home, own_home, shared_home

__all__ = ["home", "own_home", "shared_home"]
