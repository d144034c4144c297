"""The desk where tool calls ask and people answer. Whether to ask at all is decided by `permissions.judge`.

The first answer wins. A request outlives the client that saw it: whoever attaches later gets it too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_never

import msgspec

from covey.engine.asks.pending import Pending
from covey.engine.confining import Permit, Refusal
from covey.engine.recorder import Batch, Recorder, confirmed
from covey.engine.session_book import SessionBook
from covey.permissions.judge import Intent, Judgement, Rules, judge
from covey.permissions.reach import Reach
from covey.protocol.endings import THE_USER_SAYS
from covey.protocol.events import ConfigChanged, PermissionNotification, PermissionRequest, created, updated
from covey.protocol.messages import SessionMode
from covey.protocol.requests import PermissionAction
from covey.protocol.runs import RunOptions
from covey.protocol.who import NOBODY, Who
from covey.store.journal import WorkspaceJournal

DENIED = "The user denied this call."
WITHOUT_WORDS = "Do not try it again in another way; ask, or go on without it."
"""Only there: whoever says what to do instead must not be contradicted."""
UNATTENDED = (
    "This call needs permission, and nobody could be asked. Nothing was done, and nobody has decided against it. "
    "Other calls that need permission will end the same way: do what needs none, and say at the end what is left and "
    "what must be allowed."
)


NO_OPTIONS = RunOptions()
GRANTS_LIMIT = 500
"""Kept for each session; the oldest is asked about again."""


@dataclass(frozen=True, slots=True)
class PermissionReply:
    action: PermissionAction
    reason: str = ""
    by: str | None = None
    """Who answered, if it is known."""
    reach: Reach = Reach.WORKSPACE
    """If it is allowed: how far a command may get."""
    unattended: bool = False
    """If it is denied: because nobody could be asked."""

    @property
    def refusal(self) -> str:
        """Why the call may not run, in words for the model."""
        if self.unattended:
            return UNATTENDED
        return f"{DENIED}{THE_USER_SAYS}{self.reason}" if self.reason else f"{DENIED} {WITHOUT_WORDS}"


Remember = Callable[[Intent, Reach, bool], Awaitable[None]]
"""Writes down that such an intent is granted from now on: exactly it, or (if the third is true) by its prefix."""


async def _forget(intent: Intent, reach: Reach, by_prefix: bool) -> None:
    """Nowhere to write a rule."""


class PermissionDesk:
    """The pending requests of one workspace, and what was granted for each session."""

    def __init__(
        self,
        journal: WorkspaceJournal,
        workspace_id: str,
        rules: Rules,
        sessions: SessionBook,
        recorder: Recorder,
        *,
        skip: bool,
        always: Remember = _forget,
    ) -> None:
        self._journal = journal
        self._workspace_id = workspace_id
        self._pending: Pending[PermissionRequest, PermissionReply] = Pending()
        self._sessions = sessions
        self._recorder = recorder
        self._intents: dict[str, Intent] = {}
        self._always = always
        """Writes down that such an intent is granted from now on, in every session."""
        self.rules = rules
        self.skip = skip

    @property
    def pending(self) -> list[PermissionRequest]:
        return self._pending.requests

    def decide(
        self,
        intent: Intent,
        session_id: str,
        options: RunOptions = NO_OPTIONS,
        *,
        mode: SessionMode = "ask",
        confines: bool = True,
    ) -> Judgement:
        """What the rules say, with what whoever sent the prompt has allowed its run."""
        granted = frozenset(self._granted(session_id))
        rules = self.rules.allowing(options.allow)
        return judge(intent, rules, granted, skip=self.skip or options.yolo, mode=mode, confines=confines)

    async def ask(self, request: PermissionRequest, intent: Intent) -> Permit | Refusal:
        """Wait until somebody answers: what the call may do, or why it is refused, in words for the model.

        If the call is cancelled meanwhile, the request is closed for everybody.
        """
        answer = PermissionReply("deny")
        self._intents[request.id] = intent
        try:
            # v1 clients show by the first one that the call waits.
            self._journal.write((), (created(_waits(request)), created(request)))
            answer = await self._pending.wait(request.id, request)
        finally:
            del self._intents[request.id]
            self._notify(request, answer)
        match answer.action:
            case "deny":
                return Refusal(answer.refusal, by="nobody" if answer.unattended else "person")
            case "allow_session" | "allow_always" | "allow_prefix":
                self._grant(request.session_id, intent, answer.reach)
                return Permit(approved=True, reach=answer.reach, to_the_letter=True)
            case "allow":
                return Permit(approved=True, reach=answer.reach, to_the_letter=True)
            case _:
                assert_never(answer.action)

    def _granted(self, session_id: str) -> tuple[tuple[str, ...], ...]:
        session = self._sessions.find(session_id)
        return tuple(map(tuple, (session.granted if session else None) or ()))

    def _grant(self, session_id: str, intent: Intent, reach: Reach) -> None:
        """For as long as the session is there, whatever becomes of this server."""
        new = (each.granted_as(reach) for each in intent.each)
        granted = tuple(dict.fromkeys((*self._granted(session_id), *new)))[-GRANTS_LIMIT:]
        if session := self._sessions.change(session_id, granted=granted):
            batch = Batch()
            batch.update_session(session)
            self._recorder.write(batch)

    async def grant(
        self,
        request_id: str,
        action: PermissionAction,
        reason: str = "",
        who: Who = NOBODY,
        reach: Reach = Reach.WORKSPACE,
        *,
        unattended: bool = False,
    ) -> bool:
        """An answer from outside; False: somebody else was first.

        Raises ConfigError if a rule could not be written: then the answer counts for the session all the same.
        """
        intent = self._intents.get(request_id)
        if not self.answer(request_id, action, reason, who, reach, unattended=unattended):
            return False
        if action in ("allow_always", "allow_prefix") and intent:
            await self._always(intent, reach, action == "allow_prefix")
        return True

    def answer(
        self,
        request_id: str,
        action: PermissionAction,
        reason: str = "",
        who: Who = NOBODY,
        reach: Reach = Reach.WORKSPACE,
        *,
        unattended: bool = False,
    ) -> bool:
        """False: somebody else was first, or the request is closed."""
        reply = PermissionReply(action, reason.strip(), who.label, reach, unattended)
        return self._pending.answer(request_id, reply)

    async def set_skip(self, skip: bool) -> None:
        """Approve everything from now on, or stop doing so. What waits for an answer is approved too."""
        self.skip = skip
        if skip:
            for request in self.pending:
                self.answer(request.id, "allow", reach=Reach.NETWORK)
        change = ConfigChanged(workspace_id=self._workspace_id, skip_permissions=skip)
        await confirmed(self._journal.write((), (updated(change),)))

    def _notify(self, request: PermissionRequest, answer: PermissionReply) -> None:
        granted = answer.action != "deny"
        notification = msgspec.structs.replace(
            _waits(request), granted=granted, denied=not granted, permission_id=request.id, answered_by=answer.by
        )
        self._journal.write((), (created(notification),))


def _waits(request: PermissionRequest) -> PermissionNotification:
    """Somebody is asked. It names no request: clients take every notification that does for its answer."""
    return PermissionNotification(
        tool_call_id=request.tool_call_id,
        granted=False,
        denied=False,
        session_id=request.session_id,
        run_id=request.run_id,
    )
