"""What waits for an answer of a person in a workspace: permission requests, questions and approvals."""

from __future__ import annotations

from collections.abc import Sequence

from covey.engine.asks.approvals import ApprovalDesk
from covey.engine.asks.permissions import PermissionDesk
from covey.engine.asks.questions import QuestionDesk
from covey.engine.keeping import Keeping
from covey.permissions.reach import reach_of
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import Grant, QuestionResponse
from covey.protocol.who import NOBODY, Who


class Asks:
    """The desks, as those see them who answer."""

    def __init__(
        self, permissions: PermissionDesk, questions: QuestionDesk, approvals: ApprovalDesk, keeping: Keeping
    ) -> None:
        self._permissions = permissions
        self._keeping = keeping
        self._questions = questions
        self._approvals = approvals

    def waiting(self, session_id: str = "") -> list[PermissionRequest | QuestionBatchRequest | ApprovalRequest]:
        """All that waits for an answer, or what does so in one session. An approval concerns every session."""
        asked: list[PermissionRequest | QuestionBatchRequest]
        asked = [*self._permissions.pending, *self._questions.pending]
        return [*(request for request in asked if session_id in ("", request.session_id)), *self._approvals.pending]

    def permissions(self) -> list[PermissionRequest]:
        return self._permissions.pending

    async def grant(self, answer: Grant, who: Who = NOBODY) -> bool:
        """Answer a permission request; False: somebody else was first. Raises as `PermissionDesk.grant` does."""
        reach = reach_of(network=answer.network, unsandboxed=answer.unsandboxed)
        return await self._permissions.grant(
            answer.permission.id, answer.action, answer.reason, who, reach, unattended=answer.unattended
        )

    def skips(self) -> bool:
        """Whether everything is approved without asking."""
        return self._permissions.skip

    async def set_skip(self, skip: bool) -> None:
        await self._keeping.set_yolo(skip)
        await self._permissions.set_skip(skip)

    def questions(self) -> list[QuestionBatchRequest]:
        return self._questions.pending

    def answer(self, batch_id: str, responses: Sequence[QuestionResponse], who: Who = NOBODY) -> bool:
        """Answer a batch of questions; False: somebody else was first. Raises BadRequest if an answer is missing."""
        return self._questions.answer(batch_id, responses, who)

    def refuse(self, batch_id: str, who: Who = NOBODY) -> bool:
        """Answer none of a batch; False: somebody else was first."""
        return self._questions.refuse(batch_id, who)
