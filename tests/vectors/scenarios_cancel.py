"""A cancel in each window of a run's life."""

from __future__ import annotations

from tests.support.fake_model import Reply
from tests.vectors.recording import Recording
from tests.vectors.scripts import PROMPT, SLEEP, WORDS, steps, streamed


def cancel_before_entry(r: Recording) -> None:
    """The prompt is accepted but not recorded when the cancel comes: it leaves a record, and no model is called."""
    r.connect()
    r.session()
    with r.server.blocked_store():
        r.waits_for_store = True
        r.prompt(PROMPT, "r1")
        r.cancel()
    r.answer_pending()
    r.until_ended("r1")


def cancel_before_the_answer(r: Recording) -> None:
    """The run is active, and the model has not said a word."""
    r.model.on(lambda _: Reply(gates={-1: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.model.wait_for(lambda: len(r.model.requests) == 1)
    r.cancel()
    r.until_ended("r1")


def cancel_while_streaming(r: Recording) -> None:
    """In the middle of the text."""
    r.model.on(lambda _: streamed(30, {12: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_text(len(WORDS))
    r.cancel()
    r.until_ended("r1")


def cancel_in_a_tool_call(r: Recording) -> None:
    """While a command runs: its call is closed."""
    r.model.on(steps(Reply(text="Los 🚀", tools=(SLEEP,)), streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1", yolo=True)
    r.until(lambda view: any(call.finished for m in view.conversation.messages for call in m.tool_calls))
    r.cancel()
    r.until_ended("r1")


def cancel_one_queued(r: Recording) -> None:
    """One prompt in the queue, by its id: the active run goes on."""
    r.model.on(lambda _: streamed(4, {2: "go"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.prompt("später 🕓", "r2")
    r.until_state("r2", "queued")
    r.cancel("r2")
    r.until_ended("r2")
    r.model.release("go")
    r.until_ended("r1")


def cancel_active_and_queued(r: Recording) -> None:
    """All that is open in the session; a prompt after the cancel is not touched by it."""
    r.model.on(lambda request: streamed(3) if "danach" in request.prompt else streamed(8, {4: "never"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.prompt("später 🕓", "r2")
    r.until_state("r2", "queued")
    r.cancel()
    r.prompt("danach", "r3")
    r.until_ended("r1", "r2", "r3")


def cancel_after_the_end(r: Recording) -> None:
    """Nothing is covered, and the next prompt runs."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    r.cancel()
    r.prompt("weiter ▶️", "r2")
    r.until_ended("r2")


def cancel_by_another_client(r: Recording) -> None:
    """Another client cancels: no error, and it is known who did."""
    r.model.on(lambda _: streamed(30, {12: "never"}))
    r.connect()
    session = r.session()
    r.prompt(PROMPT, "r1")
    r.until_text(len(WORDS))
    r.other.request("POST", f"/agent/sessions/{session}/cancel?client_id={r.other.client_id}").ok()
    r.until_ended("r1")
