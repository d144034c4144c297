"""What a run is doing, written to stderr: the spinner's words, and a line for each tool call."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from covey.cli.screen import Screen
from covey.cli.terminal_text import one_line
from covey.protocol.endings import CallEnd, call_end
from covey.protocol.events import AgentEvent, Event, MessageDelta
from covey.protocol.messages import Message, ToolResult
from covey.protocol.runs import PromptReceipt, Run

INPUT_SHOWN = 100
"""How much of a tool call's input fits on a line."""


AFTER_A_KILL = (
    "If the server was killed, the run ends as interrupted when it has started again; "
    "`covey runs wait {}` says so later, too."
)


CUT_SHORT = {
    "max_tokens": "the answer is cut off: the model has reached the longest answer that it may give (max_tokens).",
    "content_filter": "the answer is cut off by the provider's content filter.",
}


class Progress:
    """Fed with the events of a session; reports those of one run."""

    def __init__(self, screen: Screen, run_id: str) -> None:
        self._screen = screen
        self._run_id = run_id
        self._calls: set[str] = set()

    def accepted(self, receipt: PromptReceipt) -> None:
        self._screen.wait_for("queued" if receipt.state == "queued" else "thinking")

    def connection(self, connected: bool, why: str) -> None:
        if not connected:
            self._screen.say(f"The connection was lost ({why}); reconnecting. {AFTER_A_KILL.format(self._run_id)}")
            self._screen.wait_for("reconnecting")

    def event(self, event: Event) -> None:
        match event.payload:
            case MessageDelta(run_id=self._run_id, kind="text"):
                self._screen.wait_for("writing")
            case Message(run_id=self._run_id, role="assistant") as message:
                self._message(message)
            case Message(run_id=self._run_id, role="tool") as message:
                self._results(message)
                self._screen.wait_for("thinking")
            case Run(run_id=self._run_id, state="active"):
                self._screen.wait_for("thinking")
            case AgentEvent(run_id=self._run_id, type="warning", reason=str(text)):
                self._screen.warn(text)
            case AgentEvent(run_id=self._run_id, type="retry") as retry:
                why = retry.reason or retry.error or "The model failed"
                self._screen.say(f"{why}; trying again{_in(retry.retry_at)} (attempt {retry.attempt}).")

    def _message(self, message: Message) -> None:
        if message.finish and (text := CUT_SHORT.get(message.finish.reason)):
            self._screen.warn(text)
        for call in message.tool_calls:
            if call.finished and call.id not in self._calls:
                self._calls.add(call.id)
                self._screen.say(f"· {one_line(call.name)} {_shorten(call.input)}")
                self._screen.wait_for(f"running {call.name}")

    def _results(self, message: Message) -> None:
        """What failed is reported: else it looks like success. Whoever cancelled a call knows."""
        for result in message.tool_results:
            if result.is_error and call_end(result) is not CallEnd.CANCELLED:
                first = result.content.strip().partition("\n")[0]
                self._screen.say(f"✗ {one_line(result.name)}: {_shorten(first)}")
                continue
            metadata = _metadata(result)
            if isinstance(code := metadata.get("exit_code"), int) and code:
                self._screen.say(f"  exit code {code}")
            if refused := _refused(metadata):
                self._screen.say(f"  {one_line(refused)}")


def _in(retry_at: float | None) -> str:
    """How long it is until then, where that is worth mentioning."""
    seconds = round(retry_at - time.time()) if retry_at else 0
    return f" in {seconds} s" if seconds > 0 else ""


def _metadata(result: ToolResult) -> dict[str, Any]:
    try:
        metadata = msgspec.json.decode(result.metadata or "{}")
    except msgspec.DecodeError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


def _refused(metadata: dict[str, Any]) -> str:
    """What the sandbox has refused to a command, with what a person could allow; empty if it was not in the way."""
    sandbox = metadata.get("sandbox")
    denied = sandbox.get("denied") if isinstance(sandbox, dict) else None
    if not isinstance(denied, dict):
        return ""
    return f"sandbox: {denied.get('what', '')} If you are asked again: {denied.get('offer', '')}."


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= INPUT_SHOWN else line[: INPUT_SHOWN - 1] + "…"
