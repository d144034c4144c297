"""Composes how a run ends: from its turn, or from what a crash left of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from covey.engine import last_words
from covey.engine.last_words import Ending
from covey.engine.recorder import Batch
from covey.engine.turn import Turn, TurnParts
from covey.lifecycle.runs import Outcome
from covey.protocol.messages import Message
from covey.protocol.runs import Run, RunComplete

log = logging.getLogger(__name__)


def close(
    run: Run, outcome: Outcome, turn: Turn | None, leftover: Sequence[Message], batch: Batch, parts: TurnParts
) -> tuple[Run, RunComplete]:
    """Last words: of the turn under way, of one that a crash cut off, or of one cancelled on entry."""
    try:
        ending = _ending(ending_of(run, outcome, parts), turn, leftover, batch, parts)
    except Exception as error:  # a bug of ours must not keep a run from ending
        log.exception("the last words of run %s could not be composed", run.run_id)
        outcome = outcome if outcome is Outcome.CANCELLED else Outcome.FAILED
        answer = turn.reply.message(parts.world.now_s()) if turn and turn.reply else None
        text = "" if outcome is Outcome.CANCELLED else f"internal error: {error!r}"
        ending = Ending(run, outcome, error=text, answer=answer)
    return last_words.close_turn(ending, batch, parts.world)


def ending_of(run: Run, outcome: Outcome, parts: TurnParts) -> Ending:
    """How a run ended, before anything is known of its answer but who would have given it."""
    choice = parts.agent.known_choice(parts.model_of(run))
    return Ending(run, outcome, model=choice.model.id, provider=choice.provider_id) if choice else Ending(run, outcome)


def _ending(ending: Ending, turn: Turn | None, leftover: Sequence[Message], batch: Batch, parts: TurnParts) -> Ending:
    if turn:
        ending = turn.ending(ending)
        session = parts.sessions.spend(ending.run.session_id, turn.speaker.last_usage, turn.speaker.usage)
        if session:
            batch.update_session(session)
            ending = replace(ending, session_title=session.title)
    elif ending.run.state == "active":
        ending = last_words.cut_off(ending, leftover)
    return ending
