"""Something that people do in a project, and how it is tried."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from covey.sandbox.policy import approved
from tests.sandbox.conftest import WAYS, Place, skip_what_cannot_be, use

PYTHON = f"'{sys.executable}'"
_REAL_HOME = os.path.expanduser("~")
_INSTALLED = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"}
"""Where this machine may have programs, as the home of the tests is another one."""


@dataclass(frozen=True)
class Work:
    command: str
    says: str
    """What is in its output, if it works."""
    needs: str = ""
    """A program, without which it is skipped."""
    files: Mapping[str, str] = field(default_factory=dict)
    view_only: bool = False
    """Whether it needs what only a view gives: a loopback, /tmp, or sockets with names."""


async def check(work: Work, place: Place, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """It works when it was approved, and nothing has to be put back after it."""
    skip_what_cannot_be(way)
    if work.needs and not shutil.which(work.needs):
        pytest.skip(f"{work.needs} is not installed")
    if work.view_only and way == "landlock":
        pytest.skip("this needs a view of its own")
    use(monkeypatch, WAYS[way])
    for variable, directory in _INSTALLED.items():
        if os.path.isdir(f"{_REAL_HOME}/{directory}"):
            place.env[variable] = f"{_REAL_HOME}/{directory}"
    for name, content in work.files.items():
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    completed = await place.run(f"{work.command} 2>&1", approved(place.facts()), timeout_s=250)
    assert completed.exit_code == 0, completed.output
    assert work.says in completed.output
    assert completed.put_back == ()
