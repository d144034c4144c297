"""The crowd of clients, as a part of the benchmarks sees it: commands to the loader's process."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from bench.loader import Seen
from bench.processes import Process, running
from bench.rig import Rig


class Crowd:
    def __init__(self, process: Process, port: int, workspace_id: str) -> None:
        self.process = process
        self._port = port
        self._workspace_id = workspace_id

    def open(self, clients: int) -> int:
        return int(self._do("open", port=self._port, workspace_id=self._workspace_id, count=clients))

    def close(self) -> None:
        self._do("close")

    def start_watching(self, runs: int = 1, *, stamps: bool = False, timeout_s: float = 120.0) -> None:
        """Reading goes on in the loader's process; `seen` waits for its end."""
        self._send("watch", runs=runs, stamps=stamps, timeout_s=timeout_s)

    def seen(self) -> Seen:
        return Seen(**self._receive())

    def watch(self, runs: int = 1, *, stamps: bool = False) -> Seen:
        self.start_watching(runs, stamps=stamps)
        return self.seen()

    def _do(self, name: str, **fields: Any) -> Any:
        self._send(name, **fields)
        return self._receive()

    def _send(self, name: str, **fields: Any) -> None:
        pipe = self.process.popen.stdin
        assert pipe
        pipe.write(json.dumps({"do": name, **fields}) + "\n")
        pipe.flush()

    def _receive(self) -> Any:
        pipe = self.process.popen.stdout
        assert pipe
        answer = json.loads(pipe.readline())
        if "error" in answer:
            raise RuntimeError(f"the loader: {answer['error']}")
        return answer["answer"]


@contextlib.contextmanager
def crowd(rig: Rig, clients: int) -> Iterator[Crowd]:
    """So many clients of the rig's workspace."""
    with running([sys.executable, "-m", "bench.loader"], rig.place / "loader.log") as process:
        made = Crowd(process, rig.server.port, rig.workspace_id)
        made.open(clients)
        yield made
