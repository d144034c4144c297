"""The `covey` command against the server of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.server import Server

EXIT_S = 60.0
"""How long a command may take to be gone, on a busy machine."""


def covey(server: Server, *args: str, cwd: Path | None = None, port: int = 0) -> subprocess.Popen[str]:
    """Start a command in the project, or elsewhere. It has no terminal and nothing to read."""
    host = ["--host", f"tcp://127.0.0.1:{port or server.port}", "--data-dir", str(server.data_dir)]
    home = {"HOME": str(server.directory), "XDG_CONFIG_HOME": str(server.directory / "config")}
    env = {name: value for name, value in os.environ.items() if name != "COVEY_TOKEN"} | home
    return subprocess.Popen(
        [sys.executable, "-m", "covey", args[0], *host, *args[1:]],
        cwd=cwd or server.project,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr: both must have been closed by everybody."""
    out, err = process.communicate(timeout=EXIT_S)
    return process.returncode, out, err
