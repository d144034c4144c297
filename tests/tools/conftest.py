"""A workspace on disk and a context in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from covey.tools.base import ToolContext
from tests.support.machine import carriers


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def tag() -> Iterator[str]:
    """A run's tag that no other test uses; nothing that carries it may be left."""
    tag = f"covey-test-{os.getpid()}-{time.monotonic_ns()}"
    yield tag
    assert carriers(tag) == []


@pytest.fixture
def context(root: Path, tag: str) -> ToolContext:
    env = {"PATH": os.environ["PATH"], "HOME": str(root)}
    return ToolContext(root=root, session_id="s1", run_id="r1", call_id="c1", env=env, process_tag=tag)


@pytest.fixture
def other_session(context: ToolContext) -> ToolContext:
    return replace(context, session_id="s2")
