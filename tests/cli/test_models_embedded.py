"""The embedded model through `covey run`, with a real server and real weights. Only where they are installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from covey.cli import exits
from covey.config import local_model
from tests.cli.conftest import Home, finish, read_until, until

pytestmark = [
    pytest.mark.skipif(not local_model.is_installed(), reason="covey[local] or its weights are not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process computes is read from /proc"),
]

CONFIG = """
[providers.local]
type = "embedded"
models = [{ id = "smollm2-135m", context_window = 4096, max_tokens = 2000 }]
"""
TICKS = 3
"""Of 10 ms: what falling asleep may cost."""


@pytest.fixture
def embedded(own_home: Home) -> Home:
    own_home.config.write_text(CONFIG)
    weights = local_model.find_weights()
    assert weights
    kept = own_home.data_dir / "models" / weights.name
    kept.parent.mkdir(parents=True)
    kept.symlink_to(weights)
    return own_home


def computing_process(server: int) -> int:
    """The one process that the server has started."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return int(children[0]) if children else 0


def cpu_ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[11]) + int(fields[12])


def begin(home: Home, prompt: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run that has been writing for a moment, and the process that computes."""
    run = home.spawn("run", "-q", prompt)
    read_until(run, b" ")
    pid: int = until(lambda: computing_process(home.pid()), "a process computes")
    return run, pid


def test_a_real_answer_streams_and_ctrl_c_stops_its_computation_within_a_second(embedded: Home) -> None:
    done = embedded.covey("run", "What is the capital of France?")
    assert done.returncode == exits.OK, done.stderr
    assert "Paris" in done.stdout
    run, pid = begin(embedded, "Write a very long story about a fox, in twenty chapters.")
    before = cpu_ticks(pid) or 0
    until(lambda: (cpu_ticks(pid) or 0) > before + 5, "it computes")
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    assert finish(run)[0] == exits.STOPPED
    time.sleep(max(0.0, began + 1.0 - time.monotonic()))  # the promise is about a second, so a second must pass
    after_a_second = cpu_ticks(pid)
    time.sleep(1.0)
    later = cpu_ticks(pid)
    assert later is None or after_a_second is None or later - after_a_second <= TICKS


def test_the_process_ends_with_the_server_however_that_ends(embedded: Home) -> None:
    for signal_number in (signal.SIGKILL, signal.SIGTERM):
        run, pid = begin(embedded, "Write a very long story about a fox, in twenty chapters.")
        server = embedded.pid()
        assert cpu_ticks(pid) is not None
        os.kill(server, signal_number)
        until(lambda pid=pid: cpu_ticks(pid) is None, "the process has ended")  # type: ignore[misc]
        run.kill()
        run.communicate()


def test_models_shows_it_as_the_one_that_is_asked(embedded: Home) -> None:
    said = embedded.covey("models").stdout
    assert "* local/smollm2-135m" in said
    assert "is installed: " in said
