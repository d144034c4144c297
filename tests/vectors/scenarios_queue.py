"""Prompts that wait: folded, interrupting, parked, moved, edited, dropped; and prompts on their way."""

from __future__ import annotations

from typing import Any

from tests.support.fake_model import Reply
from tests.vectors.recording import Recording
from tests.vectors.scripts import LOOK, PROMPT, steps, streamed


def fold(r: Recording) -> None:
    """Two prompts join the turn under way at its next step, and end with it."""
    (r.server.project / "notes.txt").write_text("ein Zettel 📝\n")
    r.model.on(steps(Reply(text="", tools=(LOOK,), gates={0: "go"}), streamed(3)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_state("r1", "active")
    r.prompt("und auch das 🧩", "r2", mode="fold")
    r.prompt("以上", "r3", mode="fold")
    r.until_state("r3", "queued")
    r.model.release("go")
    r.until_ended("r1", "r2", "r3")


def interrupt(r: Recording) -> None:
    """A prompt that stops the active run and takes its place."""
    r.model.on(lambda request: streamed(3) if "sofort" in request.prompt else streamed(20, {8: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_text()
    r.prompt("sofort ⚡", "r2", mode="interrupt")
    r.until_ended("r1", "r2")


def park_and_unpark(r: Recording) -> None:
    """Another client edits a queued prompt: it is passed over until it is put back."""
    session = _queue(r)
    _edit(r, session, "r2", {"park": True})
    r.until(lambda view: (record := view.find_run("r2")) and record.run.parked_by)
    r.model.release("go")
    r.until_ended("r1", "r3", "r4")
    _edit(r, session, "r2", {"prompt": "geändert ✏️", "unpark": True})
    r.until_ended("r2")


def parked_is_left(r: Recording) -> None:
    """Only a parked prompt is left: the session is not busy, and the prompt waits."""
    session = _queue(r)
    _edit(r, session, "r2", {"park": True})
    r.model.release("go")
    r.until_ended("r1", "r3", "r4")


def moved_queue(r: Recording) -> None:
    """The last prompt is moved to the front, and another one after it."""
    session = _queue(r)
    _edit(r, session, "r4", {"first": True})
    _edit(r, session, "r2", {"after": "r3"})
    r.catch_up()


def edited_and_dropped(r: Recording) -> None:
    """One queued prompt gets another text, one is dropped."""
    session = _queue(r)
    _edit(r, session, "r2", {"prompt": "anders 🔁 漢字"})
    r.other.request("DELETE", f"/agent/sessions/{session}/prompts/r3?client_id={r.other.client_id}").ok()
    r.model.release("go")
    r.until_ended("r1", "r2", "r3", "r4")


def cleared_queue(r: Recording) -> None:
    """The queue is emptied; the active run goes on."""
    session = _queue(r)
    r.other.request("POST", f"/agent/sessions/{session}/prompts/clear?client_id={r.other.client_id}").ok()
    r.until_ended("r2", "r3", "r4")
    r.model.release("go")
    r.until_ended("r1")


def _queue(r: Recording) -> str:
    """One active run, which waits for `go`, and three prompts after it."""
    r.model.on(lambda _: streamed(3, {1: "go"}))
    r.connect()
    session = r.session()
    for number, prompt in enumerate((PROMPT, "zwei 2️⃣", "drei 三", "vier e\u0301"), 1):
        r.prompt(prompt, f"r{number}")
    r.until_state("r4", "queued")
    return session


def _edit(r: Recording, session: str, run_id: str, change: dict[str, Any]) -> None:
    path = f"/agent/sessions/{session}/prompts/{run_id}?client_id={r.other.client_id}"
    r.other.request("PATCH", path, change).ok()


def refused_prompt(r: Recording) -> None:
    """The server will not have it: it stays with the reason, until the user takes it back."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    r.session()
    r.prompt("", "r1")
    r.prompt(PROMPT, "r2")
    r.until_ended("r2")


def prompt_answer_lost(r: Recording) -> None:
    """The 202 gets lost with the connection: the prompt is sent again by its id, and runs once."""
    r.model.on(lambda _: streamed(4, {2: "go"}))
    r.connect()
    r.session()
    r.disconnect()
    r.loses_answers = True
    r.prompt(PROMPT, "r1")
    r.prompt(PROMPT, "r1")
    r.loses_answers = False
    r.connect()
    r.model.release("go")
    r.until_ended("r1")
