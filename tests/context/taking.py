"""Fixtures: a repository, and snapshots of it that git has time for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from covey.context import snapshots
from covey.context.snapshots import Snapshots
from tests.context.test_git_state import ENV, Repository


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SECONDS", 60.0)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path.resolve() / "project")
    made.git("init", "-qb", "main")
    made.commit("a.txt", "one\n", "The first")
    return made


@pytest.fixture
async def taking(tmp_path: Path) -> AsyncIterator[Snapshots]:
    made = Snapshots(tmp_path / "kept", ENV, ignored=["node_modules"])
    yield made
    await made.aclose()
    assert not (tmp_path / "kept").exists()
