"""A cancel, a shutdown and `kill -9` at every moment of a start, of a call and of an end: no process is left.

A moment is a message: that it came, or that its answer left. There whoever was to go on stops for good, so that nothing
depends on time; it ignores all that it could be told, and has a child in another session (tests/support/stopping.py).
The lists of moments are complete: a test compares them with what was noted of a whole life.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from covey.machine.names import run_tag, workspace_tag
from covey.tools import process_table
from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.mcp import HOSTILE
from tests.support.server import Server, Workspace, provider_config, running, until

STOPPING = Path(__file__).parent.parent / "support" / "stopping.py"
ODD = Path(__file__).parent.parent / "lsp" / "odd_server.py"
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Notification")


def spoken(*methods: str) -> list[str]:
    """Requests: each came, and its answer left."""
    return [moment for method in methods for moment in (f"read {method}", f"wrote answer to {method}")]


def hooked(*events: str) -> list[str]:
    return [f"{event} {what}" for event in events for what in ("started", "read", "wrote")]


@dataclass(frozen=True)
class Kind:
    """What is stopped, and the moments of its life."""

    name: str
    start: list[str]
    use: list[str]
    end: list[str]
    calls: Call
    """What makes a model use it."""

    @property
    def waited_for(self) -> list[str]:
        """Of the start: what a run may wait for. The era of an older server is known by then."""
        return [moment for moment in self.start if self.name != "legacy mcp" or "discover" not in moment]


MODERN = Kind(
    "mcp",
    ["started", *spoken("server/discover", "subscriptions/listen", "tools/list")],
    spoken("tools/call"),
    [],
    Call(name="mcp__h__echo", input={"text": "hi"}),
)
LEGACY = Kind(
    "legacy mcp",
    ["started", *spoken("server/discover", "initialize"), "read notifications/initialized", *spoken("tools/list")],
    spoken("tools/call"),
    [],
    MODERN.calls,
)
LANGUAGE = Kind(
    "lsp",
    ["started", *spoken("initialize"), "read initialized"],
    [
        "read textDocument/didOpen",
        "wrote textDocument/publishDiagnostics",
        *spoken("textDocument/rename"),
        "read textDocument/didChange",
        "read workspace/didChangeWatchedFiles",
    ],
    [*spoken("shutdown"), "read exit"],
    Call(name="rename", input={"file_path": "a.odd", "line": 1, "name": "old", "new_name": "new"}),
)
HOOKS = Kind(
    "hooks",
    [],
    hooked(*EVENTS),
    hooked("SessionEnd"),
    Call(name="view", input={"file_path": "a.odd"}),
)
KINDS = (MODERN, LEGACY, LANGUAGE, HOOKS)
USUAL = {
    ("mcp", "started", "kill"),
    ("mcp", "read tools/list", "shutdown"),
    ("legacy mcp", "read tools/call", "cancel"),
    ("lsp", "read initialize", "cancel"),
    ("lsp", "wrote answer to textDocument/rename", "kill"),
    ("lsp", "read shutdown", "kill"),
    ("hooks", "PreToolUse read", "cancel"),
    ("hooks", "Stop started", "kill"),
    ("hooks", "SessionEnd read", "kill"),
}
"""One of each sort; the others are `make heavy`."""


def cases() -> Iterator[Any]:
    for kind in KINDS:
        moments = {"cancel": [*kind.waited_for, *kind.use], "shutdown": [*kind.start, *kind.use]}
        moments["kill"] = [*kind.start, *kind.use, *kind.end]
        for how in moments:
            for moment in moments[how]:
                marks = () if (kind.name, moment, how) in USUAL else pytest.mark.heavy
                yield pytest.param(kind, moment, how, id=f"{kind.name}: {how} at {moment}", marks=marks)


class Stopped:
    """A server of ours with one extension, which is stopped at a moment."""

    def __init__(self, server: Server, model: FakeModel, kind: Kind, file: Path) -> None:
        self.server, self.model, self.kind, self.file = server, model, kind, file
        self.workspace = self._opened()

    def _opened(self) -> Workspace:
        return self.server.workspace(yolo=True)

    @property
    def moments(self) -> list[str]:
        notes = Path(f"{self.file}.notes")
        return notes.read_text().splitlines() if notes.exists() else []

    def stop_at(self, moment: str) -> None:
        self.file.write_text(moment)

    def reached(self, moment: str) -> None:
        until(lambda: "stopped" in self.moments)
        assert self.moments[self.moments.index("stopped") - 1] == moment

    def approve(self) -> None:
        """Of an MCP server: its tools, so that a model can call one before it was ever started."""
        if self.kind in (MODERN, LEGACY):
            [request] = until(lambda: self.workspace.get("/approvals"))
            self.workspace.request("POST", "/approvals/answer", {"id": request["id"], "approve": True}).ok()

    def restart(self) -> None:
        self.server.stop()
        self.server.start()
        self.workspace = self._opened()

    def prompt(self) -> None:
        """A run whose model uses it once."""
        answers = iter([Reply(text="", tools=(self.kind.calls,))])
        self.model.on(lambda asked: next(answers, Reply(text="done")))
        self.session = self.workspace.session()
        self.workspace.prompt(self.session, "go", run_id="r1")

    def processes(self) -> set[Any]:
        """All of the workspace, and of its runs."""
        tags = workspace_tag(self.workspace.id), run_tag(self.workspace.id, "r1")
        return {process for tag in tags for process in process_table.tagged(tag)}

    def gone(self) -> None:
        until(lambda: not self.processes())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Stopped]]:
    model, servers = FakeModel(), list[Any]()

    def make(kind: Kind, stop_at: str = "") -> Stopped:
        (file := tmp_path / "moment").write_text(stop_at)
        context = running(tmp_path, provider_config(model.url, entry(kind, file)))
        (project := tmp_path / "project").mkdir()
        (project / "a.odd").write_text("old\n")
        trusted = tmp_path / "config" / "covey" / "trusted.toml"
        trusted.parent.mkdir(parents=True)
        trusted.write_text(f"directories = [{json.dumps(str(project))}]\n")
        servers.append(context)
        return Stopped(context.__enter__(), model, kind, file)

    with model:
        yield make
        for context in servers:
            context.__exit__(None, None, None)


def entry(kind: Kind, file: Path) -> str:
    """The section of the configuration that names it."""
    words = [sys.executable, "-S", str(STOPPING), str(file)]
    command = f"command = {json.dumps(words[0])}\n"
    if kind is HOOKS:
        groups = (
            f"[[hooks.{event}]]\nhooks = [{{ {command.strip()}, args = {json.dumps([*words[1:], 'hook', event])} }}]\n"
            for event in (*EVENTS, "SessionEnd")
        )
        return "".join(groups)
    if kind is LANGUAGE:
        args = [*words[1:], "frames", sys.executable, "-S", str(ODD), "push", "/dev/null"]
        return f'[lsp.odd]\n{command}args = {json.dumps(args)}\nsuffixes = ["odd"]\n'
    mode = "legacy" if kind is LEGACY else "normal"
    return f"[mcp.h]\n{command}args = {json.dumps([*words[1:], 'lines', sys.executable, '-S', str(HOSTILE), mode])}\n"


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
def test_the_moments_are_all_that_there_are(opened: Callable[..., Stopped], kind: Kind) -> None:
    found = opened(kind)
    found.approve()
    found.prompt()
    assert found.workspace.ended("r1")["state"] == "completed"
    until(lambda: kind.use[-1] in found.moments or kind is LANGUAGE)
    found.server.stop()
    assert set(found.moments) == {*kind.start, *kind.use, *kind.end}
    assert not found.processes()


@pytest.mark.parametrize(("kind", "moment", "how"), list(cases()))
def test_m10_m11_l9_h5_no_process_is_left(opened: Callable[..., Stopped], kind: Kind, moment: str, how: str) -> None:
    found = reached(opened, kind, moment, how)
    found.server.may_log_errors = True
    is_ending = moment in kind.end  # then it goes on to end everything, and may be quicker than we are
    assert found.processes() or is_ending, "there is something to end"
    match how:
        case "cancel":
            found.workspace.cancel(found.session)
            assert found.workspace.ended("r1")["state"] in ("cancelled", "completed")
            if kind is HOOKS and "Notification" not in moment:
                found.gone()
            found.server.stop()
        case "shutdown":
            found.server.stop()
        case _:
            found.server.kill()
            assert found.processes() or is_ending, "they outlive it, as they ignore everything"
            found.server.start()
    found.gone()


def reached(opened: Callable[..., Stopped], kind: Kind, moment: str, how: str) -> Stopped:
    """One that has stopped at the moment. A run waits for it where there is one to be cancelled."""
    by_itself = kind in (MODERN, LEGACY) and moment in kind.start and how != "cancel"
    found = opened(kind, moment if by_itself else "")
    if not by_itself:
        found.approve()
        if kind in (MODERN, LEGACY) and moment in kind.start:
            found.restart()
        found.stop_at(moment)
        found.prompt()
    if moment in kind.end:
        found.workspace.ended("r1")
        found.server.signal(signal.SIGTERM)
    found.reached(moment)
    return found
