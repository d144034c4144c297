"""What every part measures: a server, a model and a workspace, each its own process or directory, started afresh."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Process, covey_server, fast_model, scratch
from bench.wire import TERMINAL, Caller, Stream


@dataclass(frozen=True)
class Options:
    """How the benchmarks are run."""

    quick: bool
    server: Sequence[str]
    """The command that starts the server, without its flags."""

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass
class Rig:
    server: Process
    model: Process
    caller: Caller
    workspace_id: str
    place: Path

    @property
    def agent(self) -> str:
        return f"/v1/workspaces/{self.workspace_id}/agent"

    def session(self) -> str:
        """A new session; a prompt's cost then does not depend on how much was measured before."""
        answer = self.caller.call("POST", f"/v1/workspaces/{self.workspace_id}/sessions", {"title": "bench"})
        return str(answer["id"])

    def stream(self, session_id: str = "") -> Stream:
        """All events, or those of one session."""
        return Stream(self.server.port, self.workspace_id, session_id)

    def prompt(self, session_id: str, directive: str) -> None:
        self.caller.call("POST", self.agent, prompt_body(session_id, directive))

    def warm_up(self) -> None:
        """A few whole runs: first-time imports and connections are not what is measured."""
        stream = self.stream()
        for _ in range(5):
            self.prompt(self.session(), "chunks=5")
            stream.until(TERMINAL)
            stream.forget()
        stream.close()


def prompt_body(session_id: str, directive: str) -> dict[str, str]:
    return {"session_id": session_id, "prompt": f"@bench {directive}@"}


@contextlib.contextmanager
def rig(options: Options) -> Iterator[Rig]:
    with scratch() as place, fast_model(place) as model:
        url = model.line.strip()
        with covey_server(place, url, options.server) as server:
            caller = Caller(server.port)
            folder = place / "workspace"
            folder.mkdir()
            body = {"path": str(folder), "client_id": str(uuid.uuid4())}
            workspace = caller.call("POST", "/v1/workspaces", body)
            made = Rig(server, model, caller, workspace["id"], place)
            made.warm_up()
            yield made
            caller.close()
