"""What is said to a model so that it sums a conversation up, and how the summary stands in the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from covey.context.prompt import summary_prompt
from covey.engine.messages import user_message
from covey.engine.world import World
from covey.lifecycle import history
from covey.protocol.messages import Message, Text, TextPart
from covey.protocol.runs import Run

PROMPT = "Summarise the conversation so far."
"""What a run that only summarises has as its prompt."""
PROMPT_CHARACTERS = 20_000
"""As much of each request stands behind the summary: a longer one brought along what the summary is to replace."""
ROOM = 0.7
"""The share of the context window that the conversation may take when it is read for its summary."""


def summary_request(
    visible: list[Message], context_window: int, *, overflown: bool, run: Run, world: World
) -> list[Message]:
    """The conversation, cut at its beginning if it is too long to be read at all, and the wish for a summary."""
    bound = int(context_window * ROOM)
    if overflown:
        half = sum(history.estimated_tokens(message) for message in visible) // 2
        bound = min(bound, half) if bound else half
    messages = list(history.shortened(visible, bound)) if bound else visible
    wish = user_message(structs.replace(run, prompt=summary_prompt()), (), world)
    return [*messages, wish]


def with_requests(summary: Message, prompts: Sequence[str]) -> Message:
    """The summary with what is being worked on, in the users' own words: a summary may lose their point."""
    words = "\n\n".join(prompt[:PROMPT_CHARACTERS] for prompt in prompts)
    text = TextPart(data=Text(text=f"\n\nThis is being worked on, in the user's words:\n{words}"))
    return structs.replace(summary, parts=(*summary.parts[:-1], text, *summary.parts[-1:]))
