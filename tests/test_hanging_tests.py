"""A test that would hang fails, and its fixtures are closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HANGING = """
import asyncio, pytest
pytestmark = pytest.mark.anyio

@pytest.fixture
async def opened():
    yield
    await asyncio.sleep(0)
    print("it was closed")

async def test_that_hangs(opened):
    while True:
        await asyncio.sleep(0.01)
"""


def test_an_asynchronous_test_that_hangs_fails_and_what_it_used_is_closed(tmp_path: Path) -> None:
    """The time that it has is less than what is left for its fixtures, so that it is over at once."""
    (tmp_path / "test_it.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.conftest", "--timeout", "19", "test_it.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "1 failed" in done.stdout and "it was closed" in done.stdout, done.stdout
