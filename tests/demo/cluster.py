"""`make cluster`: three nodes on one PostgreSQL; their owner is killed with -9, and nothing is lost.

Real processes on loopback, a real PostgreSQL from a wheel; only the model is scripted. Nothing is left behind.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from covey.doctor.shared_store import examine_postgres
from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.nodes import TOKEN, Node, cluster_config
from tests.support.postgres import PostgresProcess
from tests.support.stream import Seen, Stream

PROMPTS = 6
SESSIONS = 2
PATIENCE_S = 60.0


def answer(request: Recorded) -> Reply:
    """Some seconds of words, so that there is something to be cut off; shorter ones for what comes after."""
    is_first = request.prompt.startswith("first")
    return Reply(text="word ", chunks=300 if is_first else 5, delay_ms=100)


class Watcher:
    """Follows a workspace at one node after the other, by the last event that it has seen."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._streams: list[Stream] = []

    def attach(self, node: Node) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if self.last_id:
            headers["Last-Event-ID"] = self.last_id
        query = "client_id=00000000-0000-4000-8000-000000000001&deltas=1"
        self._streams.append(Stream(node.port, f"{self._path}/events?{query}", headers))

    @property
    def last_id(self) -> str:
        return next((event.id for event in reversed(self.events) if event.id), "")

    @property
    def events(self) -> list[Seen]:
        return [event for stream in self._streams for event in list(stream.events)]

    @property
    def is_cut_off(self) -> bool:
        return self._streams[-1].ended

    def ends(self) -> Counter[str]:
        return Counter(event.payload["run_id"] for event in self.events if event.type == "run_complete")

    def numbers(self) -> list[int]:
        return [int(event.id.partition(".")[2]) for event in self.events if event.id]

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


@contextmanager
def running() -> Iterator[tuple[PostgresProcess, list[Node], Path]]:
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="covey-cluster-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        model = stack.enter_context(FakeModel(answer))
        postgres = PostgresProcess.fresh()
        stack.callback(postgres.remove)
        postgres.sql("CREATE DATABASE covey")
        config = cluster_config(model.url)
        nodes = [Node(name, directory / name, config, postgres.url("covey")) for name in "abc"]
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        with ThreadPoolExecutor(len(nodes)) as waiting:
            list(waiting.map(Node.wait_ready, nodes))
        yield postgres, nodes, directory


def until(what: str, condition: Any) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"Not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.02)
    return found


def surely(nodes: list[Node], method: str, path: str, body: Any = None) -> Any:
    """At one node after the other, as a client does."""
    for number in range(100):
        try:
            status, value = nodes[number % len(nodes)].ask(method, path, body)
        except OSError:
            continue
        if status < 300:
            return value
        time.sleep(0.1)
    raise SystemExit(f"{method} {path} was never answered")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    began = time.monotonic()
    say("Starting a PostgreSQL and three nodes: a, b and c.")
    with running() as (postgres, nodes, directory):
        say(f"They are ready after {time.monotonic() - began:.1f} s.")
        return 0 if show(postgres, nodes, directory) else 1


def show(postgres: PostgresProcess, nodes: list[Node], directory: Path) -> bool:
    a, b, c = nodes
    project = directory / "project"
    project.mkdir()
    body = {"path": str(project), "client_id": "00000000-0000-4000-8000-000000000002"}
    workspace = f"/v1/workspaces/{surely([a], 'POST', '/v1/workspaces', body)['id']}"
    sessions = [surely([a], "POST", f"{workspace}/sessions", {"title": "demo"})["id"] for _ in range(SESSIONS)]
    watcher = Watcher(workspace)
    try:
        watcher.attach(c)
        runs = post(b, workspace, sessions)
        say(f"{PROMPTS} prompts were posted at b and acknowledged; a, which owns the workspace, works on {SESSIONS} of")
        say("them, the others wait. c shows what happens, word by word, without owning anything.")
        until("words at c", lambda: sum(event.type == "message_delta" for event in watcher.events) > 20)
        a.kill()
        killed = time.monotonic()
        say("Now a is killed with -9, in the middle of two answers.")
        until("the stream at c breaks off", lambda: watcher.is_cut_off)
        watch_on(watcher, b)
        active = runs[:SESSIONS]
        until("their ends", lambda: all(watcher.ends()[run_id] for run_id in active))
        say(f"After {time.monotonic() - killed:.1f} s another node has taken over: both answers ended as interrupted.")
        until("all ends", lambda: all(watcher.ends()[run_id] for run_id in runs))
        say(f"After {time.monotonic() - killed:.1f} s the prompts that waited were answered, in order.")
        return judge(postgres, [b, c], workspace, runs, watcher)
    finally:
        watcher.close()


def post(node: Node, workspace: str, sessions: list[str]) -> list[str]:
    runs = []
    for number in range(PROMPTS):
        name = "first" if number < SESSIONS else "then"
        body = {"session_id": sessions[number % SESSIONS], "prompt": f"{name} {number}", "run_id": f"run-{number}"}
        runs.append(surely([node], "POST", f"{workspace}/agent", {**body, "mode": "own_turn"})["run_id"])
    return runs


def watch_on(watcher: Watcher, node: Node) -> None:
    """Resume at another node: it may take a moment until somebody owns the workspace again."""

    def attached() -> bool:
        try:
            watcher.attach(node)
        except (AssertionError, OSError):
            return False
        return True

    until("a stream at another node", attached)


def judge(postgres: PostgresProcess, left: list[Node], workspace: str, runs: list[str], watcher: Watcher) -> bool:
    states = Counter(surely(left, "GET", f"{workspace}/runs/{run_id}")["state"] for run_id in runs)
    ends, numbers = watcher.ends(), watcher.numbers()
    findings = examine_postgres(postgres.url("covey")).findings
    is_whole = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    is_once = all(ends[run_id] == 1 for run_id in runs)
    say(f"Of {PROMPTS} prompts {', '.join(f'{count} {state}' for state, count in sorted(states.items()))};")
    say(f"each ended {'exactly once' if is_once else 'NOT exactly once'}, as the stream says that was resumed at b:")
    say(f"events {numbers[0]} to {numbers[-1]}, {'none missing, none twice' if is_whole else 'NOT each of them once'}.")
    say(f"The oracle, which judges the database by every promise, found {len(findings) or 'nothing'}.")
    is_good = (
        is_once and is_whole and not findings and states == {"interrupted": SESSIONS, "completed": PROMPTS - SESSIONS}
    )
    say("Nothing was lost." if is_good else "SOMETHING WAS LOST.")
    return is_good


if __name__ == "__main__":
    sys.exit(main())
