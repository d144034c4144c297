"""How long commands take to start: the server to its listening line, `covey run` to its help and to its first byte."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.processes import COVEY, TOKEN, covey_server, running, scratch
from bench.report import Figure
from bench.rig import Options, rig

BARE_SERVER = """
import socket, uvicorn
from starlette.applications import Starlette
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("http://127.0.0.1:0", flush=True)
Server(uvicorn.Config(Starlette(), port=0, log_config=None)).run()
"""


def measure(options: Options) -> Iterator[Figure]:
    times = options.size(9, 3)
    with scratch() as place:
        cold = min(_start(place / str(number), options.server) for number in range(times))
        yield Figure("cold start of `covey serve` to its listening line", cold, "ms", 300, note="best of several")
        bare = min(_bare(place / "bare.log") for _ in range(times))
        yield Figure("bare uvicorn and starlette beside it", bare, "ms", note=f"Covey takes {cold / bare:.2f} x")
        help_ms = min(_timed(lambda: _run([*COVEY, "run", "--help"])) for _ in range(times))
        yield Figure("`covey run --help`", help_ms, "ms", 100, note=f"python itself {_python_ms(times):.0f} ms")
    with rig(options) as made:
        host = f"tcp://127.0.0.1:{made.server.port}"
        command = [*COVEY, "run", "--host", host, "--cwd", str(made.place / "workspace"), "@bench chunks=1@"]
        first = min(_first_byte(command) for _ in range(times))
        yield Figure("first byte of `covey run`, server running", first, "ms", 250)


def _start(place: Path, server: Sequence[str]) -> float:
    place.mkdir()
    with covey_server(place, "http://127.0.0.1:9/v1", server) as process:
        return process.started_s * 1e3


def _bare(log: Path) -> float:
    with running([sys.executable, "-c", BARE_SERVER], log) as process:
        return process.started_s * 1e3


def _python_ms(times: int) -> float:
    return min(_timed(lambda: _run([sys.executable, "-c", "pass"])) for _ in range(times))


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _timed(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def _first_byte(command: Sequence[str]) -> float:
    start = time.perf_counter()
    environ = os.environ | {"COVEY_TOKEN": TOKEN}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=environ
    ) as process:
        assert process.stdout and process.stderr
        first = process.stdout.read(1)
        took = (time.perf_counter() - start) * 1e3
        errors = process.communicate()[1]
    if not first or process.returncode:
        raise RuntimeError(f"covey run failed ({process.returncode}): {errors.decode()}")
    return took
