"""How a run ended, as the answer to the prompt that made it. Pure."""

from __future__ import annotations

from covey.acp.content import Json
from covey.protocol.messages import Message
from covey.protocol.runs import RunComplete
from covey.rpc.messages import INTERNAL_ERROR, RpcError

_STOP_REASONS = {"max_tokens": "max_tokens", "content_filter": "refusal"}
INTERRUPTED = "The server ended while this ran. What it did until then is there; prompt again to go on."


def prompt_answer(terminal: RunComplete, answer: Message | None) -> Json:
    """`answer`: the last message of the run, if it is known. Raises RpcError if the run failed."""
    facts = {"runId": terminal.run_id, "outcome": terminal.outcome}
    if terminal.cancelled:
        return {"stopReason": "cancelled", "_meta": {"covey": facts}}
    if terminal.interrupted:
        raise RpcError(INTERNAL_ERROR, terminal.error or INTERRUPTED, facts)
    finish = answer.finish if answer else None
    reason = _STOP_REASONS.get(finish.reason if finish else "")
    if terminal.error and not reason:
        raise RpcError(INTERNAL_ERROR, terminal.error, facts)
    return {"stopReason": reason or "end_turn", "_meta": {"covey": facts}}
