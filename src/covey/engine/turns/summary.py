"""How a summary stands in the conversation that it replaces, and what is kept beside it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from covey.engine.turns.messages import attachment_part, hook_words
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
