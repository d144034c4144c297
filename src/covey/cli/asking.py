"""Answers what one run asks for: by asking the person at the terminal or, where nobody is, with a no.

Requests of other runs are left to whoever started them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress

from covey.cli.asks import Answer, Heard, PermissionAnswer, PermissionAsk, QuestionAnswers, QuestionAsk
from covey.cli.request_text import visible
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.protocol.errors import CoveyError
from covey.protocol.events import (
    Event,
    PermissionNotification,
    PermissionRequest,
    QuestionBatchNotification,
    QuestionBatchRequest,
)

Ask = PermissionAsk | QuestionAsk


def find_terminal() -> int | None:
    """The descriptor on which a person can answer; None if nobody can.

    The question is on stderr, so that must be a terminal. The answer comes from stdin or, if the prompt came in there,
    from the terminal behind it. A job in the background would be stopped by the kernel if it read.
    """
    if not sys.stderr.isatty():
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        terminal = sys.stdin.fileno()
    else:
        try:
            terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
    with suppress(OSError):
        if os.tcgetpgrp(terminal) == os.getpgrp():
            return terminal
    return None


class Asking:
    """The open requests of one run. Fed with events; answers in tasks of its own."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, screen: Screen, *, how_to_allow: str) -> None:
        self._client = client
        self._how_to_allow = how_to_allow
        """Completes "Allow it ...", for whoever could not be asked."""
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._screen = screen
        self._terminal = find_terminal()
        self._open: dict[str, Ask] = {}
        """Only where somebody can be asked: what nobody has answered yet."""
        self._asked = ""
        """The id of the request that the person is looking at."""
        self._stopped = False
        self._told: set[str] = set()
        self._answering: set[asyncio.Task[None]] = set()

    def event(self, event: Event) -> None:
        payload = event.payload
        match payload:
            case PermissionRequest(run_id=None | self._run_id) if not self._stopped:
                self._requested(PermissionAsk(payload))
            case QuestionBatchRequest(run_id=None | self._run_id) if not self._stopped:
                self._requested(QuestionAsk(payload))
            case PermissionNotification(permission_id=str(request_id)) if request_id in self._open:
                self._resolved(request_id, "allowed" if payload.granted else "denied")
            case QuestionBatchNotification(batch_id=request_id) if request_id in self._open:
                self._resolved(request_id, "answered" if payload.answered else "not answered")

    def stop(self) -> None:
        """The run is being cancelled, which closes its requests: there is nothing to ask any more."""
        if self._asked:
            self._screen.clear()
        self._stopped, self._asked = True, ""
        self._open.clear()
        self.close()

    def close(self) -> None:
        if self._terminal is not None:
            asyncio.get_running_loop().remove_reader(self._terminal)

    def _requested(self, ask: Ask) -> None:
        """May come again after a reconnect, if our answer was lost: then it is answered again."""
        if self._terminal is None:
            self._answer(ask.id, ask.refusal)
            self._tell_refused(ask)
        else:
            self._open.setdefault(ask.id, ask)
            if not self._asked:
                self._ask_next()

    def _tell_refused(self, ask: Ask) -> None:
        if ask.id in self._told:
            return
        self._told.add(ask.id)
        if isinstance(ask, QuestionAsk):
            questions = " ".join(item.question for item in ask.request.questions)
            self._screen.warn(f"not answered, because nobody is here to be asked: {questions}")
            return
        request = ask.request
        self._screen.warn(
            f"denied, because nobody is here to be asked: {request.tool_name}: {visible(request.description)}\n"
            f"Allow it {self._how_to_allow}{_as_rules(request)}"
        )

    def _resolved(self, request_id: str, how: str) -> None:
        """Somebody answered: we did, or another client, or the run was cancelled meanwhile."""
        del self._open[request_id]
        if self._asked == request_id:
            self._screen.say(f"answered elsewhere: {how}")
            self._asked = ""
            self._ask_next()

    def _ask_next(self) -> None:
        assert self._terminal is not None
        loop = asyncio.get_running_loop()
        ask = next(iter(self._open.values()), None)
        if ask is None:
            loop.remove_reader(self._terminal)
            return
        self._asked = ask.id
        # What was typed before the question was there is no answer to it.
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        self._screen.ask(ask.text)
        loop.add_reader(self._terminal, self._read)

    def _read(self) -> None:
        """A line was typed. The end of input (Ctrl-D) is a no."""
        assert self._terminal is not None
        line = os.read(self._terminal, 4096).decode("utf-8", "replace")
        ask = self._open[self._asked]
        heard = ask.hear(line) if line else ask.refusal
        if line.endswith("\n"):
            self._screen.answered()
        else:
            self._screen.clear()
        match heard:
            case Heard.AGAIN:
                self._screen.ask(ask.question)
            case Heard.MORE:
                self._screen.ask(ask.text)
            case _:
                answered, self._asked = self._asked, ""
                self._open.pop(answered, None)
                self._answer(answered, heard)
                self._ask_next()

    def _answer(self, request_id: str, answer: Answer) -> None:
        async def send() -> None:
            # If it gets lost, the server asks again when the stream reconnects.
            with suppress(ServerUnreachable):
                try:
                    await self._send(request_id, answer)
                except CoveyError as error:
                    self._screen.warn(error.message)

        task = asyncio.create_task(send())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _send(self, request_id: str, answer: Answer) -> None:
        match answer:
            case PermissionAnswer(action, reason):
                await self._client.answer_permission(self._workspace_id, request_id, action, reason)
                if action == "allow_always":
                    self._screen.say("A rule for this is in your config.toml now. It holds in this directory only.")
            case QuestionAnswers(None):
                await self._client.refuse_questions(self._workspace_id, request_id)
            case QuestionAnswers(tuple(responses)):
                await self._client.answer_questions(self._workspace_id, request_id, responses)


def _as_rules(request: PermissionRequest) -> str:
    """The end of a sentence that tells how to allow it, with the lines that would do so in this directory."""
    if not request.rules:
        return "."
    from covey.config.edit import rule_lines  # late: seldom needed

    lines = rule_lines(request.path, "allow", request.rules).split("\n")
    return "\n".join((", or in this directory with these lines in your config.toml:", *map(visible, lines)))
