"""What a model is asked about a conversation as a whole: for its summary, or for a last word at a bound. Pure.

Such a request comes when the conversation is about to be too long, or is already. So it is shortened until the model
can read it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs

from covey.engine.agent import ReadyModel
from covey.engine.turns.messages import user_message
from covey.engine.turns.summary import PROMPT_CHARACTERS
from covey.engine.world import World
from covey.lifecycle.fitting import clip, fitted
from covey.lifecycle.history import CHARACTERS_PER_TOKEN
from covey.models.base import ToolSpec
from covey.protocol.messages import Message
from covey.protocol.runs import Run

BEGINNING = "(The beginning of this conversation is left out.)"
ABOUT = " It is about this:"
SHARE = 0.8
"""Of the room, as much is used: tokens are estimated, and some texts have more of them than most."""
LEAST = 0.25
"""The share of the window that is used in any case, where our own words would leave less."""


_encode = msgspec.json.encode


def room_of(model: ReadyModel, system: str, tools: Sequence[ToolSpec]) -> int:
    """Tokens that a conversation may have which this model is asked about; 0: not known."""
    window = model.context_window
    described = sum(len(tool.name) + len(tool.description) + len(_encode(tool.parameters)) for tool in tools)
    ours = (len(system) + described) // CHARACTERS_PER_TOKEN
    answer = min(model.max_tokens or 0, window // 4)  # some servers keep room for the longest one
    return max(int((window - ours - answer) * SHARE), int(window * LEAST))


def request_about(seen: Sequence[Message], room: int, words: str, run: Run, world: World) -> list[Message]:
    """The conversation, in so many tokens if there is a bound, and after it what is asked about it."""
    shown = fitted(seen, room) if room else None
    messages = list(shown.messages if shown else seen)
    if shown and shown.left_out:
        is_there = any(message.role == "user" and message.run_id == run.run_id for message in messages)
        about = "" if is_there else f"{ABOUT}\n{clip(run.prompt, min(PROMPT_CHARACTERS, room))}"
        messages.insert(0, user_message(structs.replace(run, prompt=f"{BEGINNING}{about}"), (), world))
    return [*messages, user_message(structs.replace(run, prompt=words), (), world)]
