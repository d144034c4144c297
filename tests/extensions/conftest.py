"""Large programs of others: `make test-extensions` runs these, `make test` leaves them out."""

from __future__ import annotations

import os

from tests.acp.conftest import home, own_home, shared_home

__all__ = ["home", "own_home", "shared_home"]

collect_ignore_glob = [] if os.environ.get("COVEY_TEST_EXTENSIONS") else ["test_*.py"]
