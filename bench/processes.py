"""Processes under measurement: started, asked for their address, looked at through /proc, and ended by their id."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = "bench-bench-bench-bench"
START_TIMEOUT_S = 20.0
COVEY = (sys.executable, "-m", "covey")


@dataclass
class Process:
    """A running process, and the first line that it printed."""

    popen: subprocess.Popen[str]
    line: str
    started_s: float
    """From the start to that line."""

    @property
    def port(self) -> int:
        return int(self.line.strip().removesuffix("/v1").rpartition(":")[2])

    def cpu_s(self) -> float:
        """CPU time of all its threads so far; exact to the microsecond, where `stat` counts hundredths of a second."""
        tasks = Path(f"/proc/{self.popen.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def memory_mb(self) -> float:
        """Resident memory."""
        return self._status_mb("VmRSS:")

    def peak_memory_mb(self) -> float:
        """The most that was ever resident."""
        return self._status_mb("VmHWM:")

    def _status_mb(self, name: str) -> float:
        for line in Path(f"/proc/{self.popen.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the process is gone")


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> Iterator[Process]:
    """Start a process that says on stdout where it listens, and end it."""
    start = time.perf_counter()
    with log.open("ab") as errors:
        popen = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | (env or {}),
        )
    try:
        assert popen.stdout
        line = popen.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start:\n{log.read_text()}")
        yield Process(popen, line, time.perf_counter() - start)
    finally:
        popen.terminate()
        try:
            popen.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        for pipe in (popen.stdin, popen.stdout):
            if pipe:
                pipe.close()


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for one measurement. On a disk, so that fsync means something."""
    path = Path(tempfile.mkdtemp(prefix="covey-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_config(path: Path, model_url: str) -> Path:
    path.write_text(
        '[models]\nlarge = "bench/fast"\n'
        f'[providers.bench]\ntype = "openai-compatible"\nbase_url = "{model_url}"\n'
        'models = [{ id = "fast", context_window = 128000, max_tokens = 8192 }]\n'
    )
    return path


@contextlib.contextmanager
def covey_server(place: Path, model_url: str, server: Sequence[str]) -> Iterator[Process]:
    config = write_config(place / "config.toml", model_url)
    address = ["--host", "tcp://127.0.0.1:0", "--data-dir", str(place / "data"), "--config", str(config)]
    with running([*server, *address], place / "server.log", {"COVEY_TOKEN": TOKEN}) as process:
        yield process


@contextlib.contextmanager
def fast_model(place: Path) -> Iterator[Process]:
    with running([sys.executable, "-m", "bench.fast_model"], place / "model.log") as process:
        yield process
