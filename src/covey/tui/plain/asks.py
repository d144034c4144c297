"""What is asked in a conversation by lines: one thing at a time is brought, and lines answer it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, assert_never

from covey.client.view.records import AskRequest
from covey.lines.plain_text import one_line
from covey.lines.words import called
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.tui.plain.choices import (
    Allowed,
    ApprovalChoices,
    AskedOn,
    Choices,
    Decided,
    PermissionChoices,
    QuestionChoices,
    QuestionsAnswered,
    is_late_answer,
    is_meant_as_answer,
    not_sent,
)

if TYPE_CHECKING:
    from covey.tui.plain.plain import Talk

NOT_NEEDED = "No answer is needed any more."
QUIET_S = 0.4
"""A line that comes so soon after a question was shown was typed before anybody could have read it."""


class LineAsks:
    """Those of the session that is shown, and extensions that need approval."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._current: tuple[str, Choices] | None = None
        self._shown_at = 0.0
        self._decided: tuple[str, dict[str, str]] | None = None
        """An ask that was answered here, and what is said of its outcome when the server says that it counts."""
        self._mentioned: set[str] = set()
        """Asks that are not answered here."""
        self.has_gone = False
        """What was asked last was not answered here, and nothing was said since: an answer may still be on its way."""

    @property
    def choices(self) -> Choices | None:
        """Of what is asked now."""
        return self._current[1] if self._current else None

    def forget(self) -> None:
        """Another session is shown from now on."""
        self._current, self.has_gone = None, False

    def look(self) -> None:
        """Say what became of what was asked, and ask what is next."""
        view = self._talk.follower.view
        self._let_go()
        if self._decided and (decided := view.asks.closed.get(self._decided[0])):
            self._talk.say(self._decided[1].get(decided.outcome, NOT_NEEDED), "dim")
            self._decided = None
            self._talk.offer()
        # What a run waits for goes before an extension, which nothing waits for.
        for ask_id, ask in sorted(view.asks.open.items(), key=lambda each: each[1].kind == "approval"):
            is_free = self._current is None or isinstance(self._current[1], ApprovalChoices)
            if is_free and not ask.is_being_answered:
                self._bring(ask_id, ask.request)

    def hear(self, text: str) -> bool:
        """Whether the line was for what is asked, or was."""
        self._let_go()
        if self._current:
            return self._answer(*self._current, text)
        if is_late := self.has_gone and is_late_answer(text):
            self._talk.refuse(not_sent(text))
        return is_late

    # ── asking ──

    def _let_go(self) -> None:
        """What nobody can answer any more is not asked any more."""
        asks = self._talk.follower.view.asks
        if self._current is None or self._current[0] in asks.open:
            return
        closed = asks.closed.get(self._current[0])
        self._current, self.has_gone = None, True
        if closed is None or closed.outcome == "closed":
            self._talk.say(NOT_NEEDED, "dim")
        elif closed.by:  # else its run was cancelled, or a rule decides now: that is said where it happened
            self._talk.say(
                f"It is {closed.outcome.replace('_', ' ')} by {called(closed.by, self._talk.client.name)}.", "dim"
            )

    def _bring(self, ask_id: str, request: AskRequest) -> None:
        """Ask it, or say where it can be answered."""
        match request:
            case PermissionRequest() | QuestionBatchRequest():
                if request.session_id != self._talk.follower.view.current:
                    self._put_aside(ask_id, "Another session waits for an answer: /sessions shows which.")
                elif isinstance(request, PermissionRequest):
                    self._ask(ask_id, PermissionChoices(request))
                else:
                    self._ask(ask_id, QuestionChoices(request))
            case ApprovalRequest() if self._talk.is_person:
                if self._current is None and ask_id not in self._mentioned:
                    self._ask(ask_id, ApprovalChoices(request))
            case ApprovalRequest(text=str()):
                pass  # the run whose prompt names it fails, and says why
            case ApprovalRequest():
                # A number that was piped in was meant for something else: nobody has read this.
                self._put_aside(ask_id, f"The {request.kind} {one_line(request.name)} needs approval: `covey trust`.")
            case _:
                assert_never(request)

    def _put_aside(self, ask_id: str, why: str) -> None:
        if ask_id not in self._mentioned:
            self._mentioned.add(ask_id)
            self._talk.say(why, "warning")

    def _ask(self, ask_id: str, choices: Choices) -> None:
        self._current, self._shown_at, self.has_gone = (ask_id, choices), time.monotonic(), False
        self._talk.write(choices.lines(self._talk.paper.columns))
        self._talk.offer()

    # ── answers ──

    def _answer(self, ask_id: str, choices: Choices, text: str) -> bool:
        if self._talk.is_person and time.monotonic() - self._shown_at < QUIET_S:
            if is_answer := is_meant_as_answer(text):
                self._ask(ask_id, choices)
            return is_answer
        follower = self._talk.follower
        understood = choices.hear(text, self._talk.paper.columns)
        match understood:
            case None:
                return False
            case Allowed(action, reason, network, unsandboxed, edits_in):
                self._current = None
                self._decided = (ask_id, understood.news) if understood.news else self._decided
                if edits_in:
                    follower.allow_edits(ask_id, edits_in)
                else:
                    follower.answer_permission(ask_id, action, reason, network=network, unsandboxed=unsandboxed)
            case Decided(approve):
                self._current = None
                self._decide(ask_id, approve)
            case QuestionsAnswered(responses):
                self._current = None
                follower.answer_questions(ask_id, responses)
            case AskedOn(lines):
                self._talk.write(list(lines))
                self._talk.offer()
            case _:
                assert_never(understood)
        return True

    def _decide(self, ask_id: str, approve: bool | None) -> None:
        if approve is None:
            self._put_aside(ask_id, "Left for later: `covey trust` shows it, and so does the next start.")
            self._talk.offer()
        else:
            self._decided = (ask_id, Decided.news)
            self._talk.follower.answer_approval(ask_id, approve=approve)
