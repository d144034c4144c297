"""A title for a new session, by the small model while a turn is under way: never delays a turn, never fails one.

Without a small model the one that does the work is asked, once it has begun to answer: the work comes first.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import assert_never

from covey.context.prompt import title_prompt
from covey.engine.agent import Agent, ReadyModel
from covey.engine.recorder import Batch, Recorder
from covey.engine.session_book import SessionBook
from covey.engine.turns.messages import user_message
from covey.engine.turns.speaker import Speaker
from covey.engine.world import World
from covey.lifecycle.reply import ReasoningDelta, Stopped, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.base import ModelFailed, ModelRequest
from covey.protocol.messages import Message
from covey.protocol.runs import Run, Usage

log = logging.getLogger(__name__)

PROMPT_CHARACTERS = 2_000
"""As much of the prompt is shown: a title does not need more."""
ANSWER_TOKENS = 1_000
"""Room for a model that thinks before it speaks; the title itself needs ten."""
STOP_S = 0.5
"""How long the end of a turn waits for a model that does not stop."""
ANSWER_CHARACTERS = 2_000
"""A model that says more has not understood."""


@asynccontextmanager
async def titled(
    run: Run, agent: Agent, sessions: SessionBook, recorder: Recorder, world: World, speaker: Speaker
) -> AsyncIterator[None]:
    """While the block runs, look for a title. When it ends first, the next turn tries again."""
    small = agent.small() if sessions.wants_title(run.session_id) else None
    model = small or speaker.model
    if not sessions.wants_title(run.session_id) or not (small or model.answers_aside):
        yield
        return

    async def work() -> None:
        prompt = user_message(run, (), world)
        try:
            if small is None:
                await speaker.heard.wait()
            title = await _ask(model, prompt, speaker.spend)
        except ModelFailed as error:
            log.info("no title for session %s: %s", run.session_id, error)
            return
        if title and (session := sessions.retitle(run.session_id, title)):
            batch = Batch()
            batch.update_session(session)
            recorder.write(batch)

    task = asyncio.create_task(work(), name=f"title {run.session_id}")
    task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_S)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Whatever went wrong with a title, no run fails of it."""
    if not task.cancelled() and (error := task.exception()):
        log.warning("a title was not found: %r", error)


async def _ask(model: ReadyModel, prompt: Message, spend: Callable[[Usage], None]) -> str:
    request = ModelRequest(
        model=model.model_id,
        system=title_prompt(),
        messages=[prompt],
        max_tokens=ANSWER_TOKENS,
        sees_images=False,
    )
    text, used = "", UsageReported(0, 0)
    try:
        async with aclosing(model.client.stream(request)) as facts:
            async for fact in facts:
                match fact:
                    case TextDelta(piece):
                        text += piece
                    case UsageReported():
                        used = fact  # the last report holds
                    case ReasoningDelta() | ToolCallBegun() | ToolInputDelta() | Stopped():
                        pass
                    case _:
                        assert_never(fact)
                if len(text) > ANSWER_CHARACTERS:
                    return ""
    finally:
        spend(model.price.usage(used))
    return clean(text)


def clean(text: str) -> str:
    """The title in what a model says: the first line, without thoughts, quotes and marks."""
    text = re.sub(r"(?s)<think>.*?(</think>|$)", "", text).strip()
    line = text.partition("\n")[0].strip()
    line = re.sub(r"(?i)^title:\s*", "", line).strip("#*_`\"' .")
    return " ".join(line.split())
