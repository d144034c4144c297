"""What is said to a model so that it sums a conversation up, and how the summary stands in the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from covey.context.prompt import summary_prompt
from covey.engine.turns.messages import attachment_part, hook_words, user_message
from covey.engine.world import World
from covey.lifecycle import history
from covey.protocol.custom import COMMAND_TYPE
from covey.protocol.messages import BinaryPart, FinishPart, Message, Part, Text, TextPart
from covey.protocol.runs import Run

PROMPT = "Summarise the conversation so far."
"""What a run that only summarises has as its prompt."""
PROMPT_CHARACTERS = 20_000
"""As much of each request stands behind the summary: a longer one brought along what the summary is to replace."""
SAID = "\n\nWhat the user said before, in their own words, the newest last:\n"
SAID_CHARACTERS = 20_000
"""Of all that the user said before: some 5,000 tokens. The newest is kept."""
SAID_ONCE_CHARACTERS = 4_000
"""Of one message: a longer one brought along what the summary is to replace."""
BEGINNING = "(The beginning of this conversation is left out. It was about this:)"
ROOM = 0.7
"""The share of the context window that the conversation may take when it is read for its summary."""


def summary_request(
    visible: list[Message], context_window: int, *, overflown: bool, run: Run, world: World
) -> list[Message]:
    """The conversation, cut at its beginning if it is too long to be read at all, and the request for a summary."""
    bound = int(context_window * ROOM)
    if overflown:
        half = sum(history.estimated_tokens(message) for message in visible) // 2
        bound = min(bound, half) if bound else half
    messages = list(history.shortened(visible, bound)) if bound else visible
    if messages and messages[0].role != "user":  # every provider wants the user to have the first word
        messages = [
            user_message(structs.replace(run, prompt=f"{BEGINNING}\n{run.prompt[:PROMPT_CHARACTERS]}"), (), world),
            *messages,
        ]
    request = user_message(structs.replace(run, prompt=summary_prompt(summary_focus(run))), (), world)
    return [*messages, request]


def summary_focus(run: Run) -> str:
    """What whoever asked for a summary wants to keep above all."""
    return run.prompt.removeprefix(PROMPT).strip() if run.effective_options.summarize else ""


def with_words(summary: Message, visible: Sequence[Message], requests: Sequence[Message]) -> Message:
    """The summary with what the user said before it, word by word: a summary may lose what mattered to them.

    What was stopped, failed or was cut off is left to the summary, which says so.

    `requests`, which are still being worked on, stand after it by themselves.
    """
    known = {request.id for request in requests}
    said = [_said_before(message) for message in visible[:1]]
    said += [_said(message) for message in history.answered_prompts(visible) if message.id not in known]
    words = "\n\n".join(filter(None, said))
    if not words:
        return summary
    kept = words if len(words) <= SAID_CHARACTERS else f"(...) {words[-SAID_CHARACTERS:]}"
    text = TextPart(data=Text(text=f"{SAID}{kept}"))
    return structs.replace(summary, parts=(*summary.parts[:-1], text, *summary.parts[-1:]))


def with_hooks(summary: Message, told: str) -> Message:
    """The summary with what hooks tell the model where a conversation begins anew."""
    if not told:
        return summary
    part = attachment_part(hook_words(told))
    return structs.replace(summary, parts=(*summary.parts[:-1], part, *summary.parts[-1:]))


def _said(message: Message) -> str:
    return "" if message.is_command else message.text[:SAID_ONCE_CHARACTERS].strip()


def _said_before(summary: Message) -> str:
    """What an earlier summary had kept of it."""
    texts = [part.data.text for part in summary.parts if isinstance(part, TextPart)]
    return next((text.removeprefix(SAID) for text in texts if text.startswith(SAID)), "")


def only_words(summary: Message) -> Message:
    """A summary is words: a tool that the model called on the way is not run."""
    kept = tuple(part for part in summary.parts if isinstance(part, TextPart | FinishPart))
    return structs.replace(summary, parts=kept)


def with_requests(summary: Message, requests: Sequence[Message]) -> Message:
    """The summary with what is being worked on, in the users' own words and pictures: it may lose their point."""
    words = "\n\n".join(request.text[:PROMPT_CHARACTERS] + history.place_words(request) for request in requests)
    text = TextPart(data=Text(text=f"\n\nThis is being worked on, in the user's words:\n{words}"))
    kept = [part for request in requests for part in request.parts if _is_kept(part)]
    return structs.replace(summary, parts=(*summary.parts[:-1], text, *kept, *summary.parts[-1:]))


def _is_kept(part: Part) -> bool:
    """A picture, which no words replace; or the command that was asked for, which the words only name."""
    return isinstance(part, BinaryPart) and part.data.MIMEType.startswith(("image/", COMMAND_TYPE))
