"""Connections that break, servers that go, and histories with a gap."""

from __future__ import annotations

from tests.support.fake_model import Reply
from tests.vectors.recording import Recording
from tests.vectors.scripts import ECHO, PROMPT, WORDS, steps, streamed


def reconnect_with_last_id(r: Recording) -> None:
    """The connection breaks in the middle of the text, and the stream resumes."""
    r.model.on(lambda _: streamed(40, {12: "more", 24: "rest"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_text(len(WORDS))
    r.disconnect()
    r.model.release("more")
    r.connect()
    r.until_text(20 * len(WORDS))
    r.model.release("rest")
    r.until_ended("r1")


def reconnect_after_the_end(r: Recording) -> None:
    """Everything happened while the connection was lost: the stream replays it."""
    r.model.on(lambda _: streamed(6, {3: "go"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.prompt("danach 漢字", "r2")
    r.until_text()
    r.disconnect()
    r.model.release("go")
    r.other.ended("r2")
    r.connect()
    r.until_ended("r1", "r2")


def gap(r: Recording) -> None:
    """The id of the client is not kept any more: everything is loaded again, while the answer goes on."""
    r.model.on(lambda _: streamed(20, {8: "more"}))
    r.connect()
    r.session("Lücke 🕳️")
    r.prompt(PROMPT, "r1")
    r.until_text()
    r.disconnect()
    r.other.session("inzwischen 新")
    r.connect("77.1")
    r.model.release("more")
    r.until_ended("r1")


def gap_after_the_end(r: Recording) -> None:
    """A run ended and another waits for an answer: both are found by loading, not by events."""
    r.model.on(lambda request: steps(Reply(text="", tools=(ECHO,)), streamed(2))(request))
    r.connect()
    session = r.session()
    r.prompt(PROMPT, "r1", yolo=True)
    r.until_state("r1", "active")
    r.disconnect()
    r.other.ended("r1")
    r.other.prompt(session, "frag mich ❓", run_id="r2")
    r.model.wait_for(lambda: len(r.model.requests) >= 3)
    r.connect("77.1")
    r.until(lambda view: view.asks.open)


def kill_while_streaming(r: Recording) -> None:
    """The server is killed in the middle of the text: that run is interrupted, and the queued one runs."""
    r.model.on(lambda request: streamed(3) if "danach" in request.prompt else streamed(40, {20: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.prompt("danach 漢字", "r2")
    r.until_state("r2", "queued")
    r.until_text(len(WORDS))
    r.restart_server(kill=True)
    r.connect()
    r.until_ended("r1", "r2")


def kill_while_asking(r: Recording) -> None:
    """The server is killed while a permission is asked for: nobody asks any more."""
    r.model.on(steps(Reply(text="", tools=(ECHO,)), streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until(lambda view: view.asks.open)
    r.restart_server(kill=True)
    r.connect()
    r.until_ended("r1")


def shutdown_and_restart(r: Recording) -> None:
    """The server is stopped in an orderly way: the run was cancelled by it."""
    r.model.on(lambda _: streamed(40, {20: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_text(len(WORDS))
    r.restart_server(kill=False)
    r.connect()
    r.until_ended("r1")
