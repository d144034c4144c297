"""Answers what one run asks for: by asking the person at the terminal or, where nobody is, as `Unattended` says.

Requests of other runs are left to the clients that started them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, assert_never

from covey.cli.asks import (
    Answer,
    ApprovalAnswer,
    ApprovalAsk,
    Ask,
    PermissionAnswer,
    PermissionAsk,
    QuestionAnswers,
    QuestionAsk,
)
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.client.view.inputs import AnswerGiven
from covey.client.view.records import AskOutcome, AskRequest
from covey.client.view.view import View
from covey.lines.plain_text import visible
from covey.protocol.errors import ApiError
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import UpdateSession

if TYPE_CHECKING:
    from covey.cli.allowing import Advice
    from covey.cli.questioner import Questioner

OUTCOMES: dict[AskOutcome, str] = {
    "allowed": "allowed",
    "denied": "denied",
    "answered": "answered",
    "not_answered": "left unanswered",
}
CLOSED = "no answer is needed any more"
LOOK_AGAIN_S = 5.0
"""How soon it is noticed that nobody watches any more, should no event have reported it."""


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


def can_ask() -> bool:
    """Whether a person can be asked here."""
    terminal = find_terminal()
    if terminal is not None and (sys.stdin is None or terminal != sys.stdin.fileno()):
        os.close(terminal)
    return terminal is not None


class Unattended(Enum):
    """What becomes of a request where there is no terminal to ask on."""

    WATCH = "left to others"
    DENY = "denied"
    DENY_IF_ALONE = "denied, unless somebody else could answer it"


class Asking:
    """Answers the open requests of one run, which are in the view; answers in tasks of its own.

    A client that can ask somebody is present in the session for as long as the run is active: clients without a
    terminal count on that. Before, requests of another run would be left to a client that does not show them.
    """

    def __init__(
        self,
        client: Client,
        view: View,
        workspace_id: str,
        run_id: str,
        screen: Screen,
        *,
        unattended: Unattended,
        how_to_allow: Callable[[PermissionRequest], str],
    ) -> None:
        self._client = client
        self.view = view
        self._unattended = unattended
        self._how_to_allow = how_to_allow
        self._advice: Advice | None = None
        """Once something was denied, because nobody could be asked."""
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._speaker = run_id
        """The run in whose turn this one is: its own, or the one that it has joined."""
        self._screen = screen
        self._questioner = self._find_questioner()
        """None: nobody can be asked here."""
        self._begun: dict[str, Ask] = {}
        """What has been shown or left to others, with the answers given so far to a part of it."""
        self._stopped = False
        self._connected = False
        self._active_in = ""
        """The session in which the run is active."""
        self._reported: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits_for_others: dict[str, asyncio.Task[None]] = {}
        self._presence = asyncio.Event()
        """Somebody came or went."""
        self._comings = view.comings

    def _find_questioner(self) -> Questioner | None:
        terminal = find_terminal()
        if terminal is None:
            return None
        from covey.cli.questioner import Questioner  # late: scripts need none of it

        return Questioner(terminal, self._screen, self._answered, self._lost)

    def update(self) -> None:
        """Something happened, and the view has it."""
        if self.view.comings != self._comings:
            self._comings = self.view.comings
            self._presence.set()
        record = self.view.find_run(self._run_id)
        if record and record.run.folded_into:
            self._speaker = record.run.folded_into
        if record and record.run.state in ("active", "folded"):
            self.active(record.run.session_id)
        for request_id in [each for each in self._begun if each not in self.view.asks.open]:
            self._resolved(request_id)
        for ask in self._open():
            self._requested(ask)

    def _open(self) -> list[Ask]:
        """What this run asks, and nobody has answered yet."""
        if self._stopped:
            return []
        return [
            self._begun.setdefault(request_id, _begin(ask.request))
            for request_id, ask in self.view.asks.open.items()
            if ask.run_id in (None, self._run_id, self._speaker) and not ask.is_being_answered
        ]

    def _is_open(self, ask: Ask) -> bool:
        return any(each.id == ask.id for each in self._open())

    def active(self, session_id: str) -> None:
        """The run has begun: from now on it may ask."""
        if not self._active_in:
            self._active_in = session_id
            self._announce_presence()

    def connection(self, connected: bool) -> None:
        """The event stream was opened or lost. With it the server forgets who was present."""
        self._connected = connected
        self._announce_presence()

    def stop(self) -> None:
        """The run is being cancelled, which closes its requests: there is nothing to ask any more."""
        self._stopped = True
        self._begun.clear()
        if self._questioner:
            self._questioner.withdraw()
        self.close()

    def close(self) -> None:
        for task in self._waits_for_others.values():
            task.cancel()
        if self._questioner:
            self._questioner.close()

    def restore_terminal(self) -> None:
        """The process ends at once."""
        if self._questioner:
            self._questioner.restore()

    def _requested(self, ask: Ask) -> None:
        """May come again after a reconnect, if our answer was lost: then it is answered again."""
        if not isinstance(ask, ApprovalAsk):
            self.active(ask.request.session_id)
        if self._questioner is None:
            self._leave_or_refuse(ask)
        elif not self._questioner.asked:
            self._ask_next(self._questioner)

    # ── where nobody can be asked ──

    def _leave_or_refuse(self, ask: Ask) -> None:
        if isinstance(ask, ApprovalAsk):
            self._leave_out(ask)
            return
        match self._unattended:
            case Unattended.WATCH:
                self._report_once(
                    ask,
                    f"nobody can be asked here, and the run waits for an answer: {_in_short(ask)}\n"
                    f"Answer it at a terminal with `covey runs wait {self._run_id}`, or from anywhere with "
                    f"`covey runs {_answered_by(ask)}`. With --deny it is denied.",
                )
            case Unattended.DENY:
                self._refuse(ask)
            case Unattended.DENY_IF_ALONE:
                if ask.id not in self._waits_for_others:
                    task = self._waits_for_others[ask.id] = asyncio.create_task(self._refuse_if_alone(ask))
                    task.add_done_callback(lambda _: self._waits_for_others.pop(ask.id))
            case _:
                assert_never(self._unattended)

    def _leave_out(self, ask: ApprovalAsk) -> None:
        """The run goes on without it, and it stays open for somebody who can decide.

        A skill, a command or an agent is asked about only if a prompt names it: that run fails, and says why itself.
        """
        if ask.request.text is not None:
            return
        self._report_once(
            ask,
            f"left out, because nobody has approved it: {_in_short(ask)}\n"
            "Look at it and approve it at a terminal with `covey trust`, or for MCP servers `covey mcp approve`.",
        )

    async def _refuse_if_alone(self, ask: PermissionAsk | QuestionAsk) -> None:
        """Refuse as soon as nobody else could answer. Those who could come and go: nobody is waited for in vain."""
        while self._is_open(ask):
            self._presence.clear()
            # If it cannot be sent, the stream is in trouble as well: it comes back, or the run is gone.
            with suppress(ServerUnreachable, ApiError):
                # We ourselves do not look at it, as there is nobody here to do so.
                others = (await self._client.session(self._workspace_id, ask.request.session_id)).attached_clients
                if not others and self._is_open(ask):
                    self._refuse(ask)
                    return
                self._report_once(ask, f"waits for somebody else who looks at this session to answer: {_in_short(ask)}")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._presence.wait(), LOOK_AGAIN_S)

    def _refuse(self, ask: PermissionAsk | QuestionAsk) -> None:
        self._answer(
            ask.id, PermissionAnswer("deny", unattended=True) if isinstance(ask, PermissionAsk) else ask.refusal
        )
        if isinstance(ask, QuestionAsk):
            self._report_once(ask, f"not answered, because nobody is here to be asked: {_in_short(ask)}", "refused")
            return
        denied = f"denied, because nobody is here to be asked: {_in_short(ask)}"
        from covey.cli.allowing import Advice  # late: seldom needed

        self._advice = self._advice or Advice(self._how_to_allow)
        how = self._advice.sentence(ask.request)
        self._report_once(ask, f"{denied}\n{how}" if how else denied, "refused")

    @property
    def allowing_lines(self) -> str:
        """The lines for config.toml that would have allowed what was denied here; '' if there are none."""
        return self._advice.lines() if self._advice else ""

    def _report_once(self, ask: Ask, text: str, what: str = "open") -> None:
        if (what, ask.id) not in self._reported:
            self._reported.add((what, ask.id))
            self._screen.warn(text)

    def _announce_presence(self) -> None:
        """Tell the server that somebody here looks at the session of the run, and could answer."""
        if self._connected and self._active_in and self._questioner:
            self._in_background(self._client.set_current_session(self._workspace_id, self._active_in))

    # ── at a terminal ──

    def _resolved(self, request_id: str) -> None:
        """Another client answered, or the run was cancelled meanwhile."""
        ask = self._begun.pop(request_id)
        closed = self.view.asks.closed.get(request_id)
        is_shown = self._questioner is not None and self._questioner.asked is ask
        if closed and (is_shown or ("open", request_id) in self._reported):
            from covey.lines.words import called  # late: most are answered here

            by = f"by {called(closed.by, self._client.name)}" if closed.by else "elsewhere"
            self._screen.say(f"{OUTCOMES[closed.outcome]} {by}" if closed.outcome in OUTCOMES else CLOSED)
        if self._questioner and is_shown:
            self._ask_next(self._questioner)

    def _ask_next(self, questioner: Questioner) -> None:
        if ask := next(iter(self._open()), None):
            questioner.ask(ask)
        else:
            questioner.withdraw()

    def _answered(self, ask: Ask, answer: Answer) -> None:
        self._answer(ask.id, answer)
        if self._questioner:
            self._ask_next(self._questioner)

    def _lost(self) -> None:
        """The terminal is gone, and with it whoever could have been asked."""
        self._questioner = None
        self._in_background(self._client.set_current_session(self._workspace_id, ""))
        for ask in self._open():
            self._leave_or_refuse(ask)

    def _answer(self, request_id: str, answer: Answer) -> None:
        self._begun.pop(request_id, None)
        self.view.apply(AnswerGiven(request_id))

        async def send() -> None:
            try:
                await self._send(request_id, answer)
            except ApiError as error:
                self._screen.warn(error.message)

        self._in_background(send())  # if it gets lost, the server asks again when the stream reconnects

    def _in_background(self, request: Coroutine[Any, Any, None]) -> None:
        """Send something that nobody waits for, and that is sent again where it matters."""

        async def send() -> None:
            with suppress(ServerUnreachable, ApiError):
                await request

        task = asyncio.create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, request_id: str, answer: Answer) -> None:
        match answer:
            case PermissionAnswer(action, reason, network, unsandboxed, unattended, edits_in):
                if edits_in:
                    change = UpdateSession(mode="accept_edits")
                    await self._client.update_session(self._workspace_id, edits_in, change)
                    self._screen.say(f"Edits are accepted now. `covey sessions mode {edits_in} ask` takes that back.")
                further = {"network": network, "unsandboxed": unsandboxed, "unattended": unattended}
                await self._client.answer_permission(self._workspace_id, request_id, action, reason, **further)
                if action in ("allow_always", "allow_prefix"):
                    self._screen.say("A rule for this is in your config.toml now. It holds in this directory only.")
            case QuestionAnswers(responses):
                if responses is None:
                    await self._client.refuse_questions(self._workspace_id, request_id)
                else:
                    await self._client.answer_questions(self._workspace_id, request_id, responses)
            case ApprovalAnswer(approve):
                if approve is not None:
                    await self._client.answer_approval(self._workspace_id, request_id, approve=approve)
            case _:
                assert_never(answer)


def _begin(request: AskRequest) -> Ask:
    match request:
        case PermissionRequest():
            return PermissionAsk(request)
        case QuestionBatchRequest():
            return QuestionAsk(request)
        case ApprovalRequest():
            return ApprovalAsk(request)
        case _:
            assert_never(request)


def _in_short(ask: Ask) -> str:
    if isinstance(ask, ApprovalAsk):
        from covey.cli.approval_text import in_short  # late: seldom needed

        return in_short(ask.request)
    if isinstance(ask, QuestionAsk):
        return visible(" ".join(item.question for item in ask.request.questions))
    return visible(f"{ask.request.tool_name}: {ask.request.description}")


def _answered_by(ask: PermissionAsk | QuestionAsk) -> str:
    """The words after `covey runs` that answer it."""
    if isinstance(ask, PermissionAsk):
        return f"allow {ask.id}"
    return f"answer {ask.id}{' TEXT' * len(ask.request.questions)}"
