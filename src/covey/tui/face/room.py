"""How many rows are left above the prompt for a page, and for what is asked about. Pure."""

from __future__ import annotations

from covey.tui.face.notice_lines import notice_rows
from covey.tui.face.sizes import body_columns, foot_rows, head_rows, is_low, prompt_rows
from covey.tui.face.state import FaceState

FEWEST_OF_TALK, TALK_SHARE = 3, 8
"""Rows of the conversation, and of what is pinned below it, that stay beside an ask: so many, or such a share."""
FEWEST_OF_ASK = 3
"""Rows of what is asked about that are shown on the smallest screen; the keys below them give way."""


def _above_prompt(state: FaceState) -> int:
    """A sentence that was said takes the place of the rule above the prompt, and of more if it is long."""
    columns = body_columns(state)
    prompt = prompt_rows(state, columns) - 1 + max(len(notice_rows(state, columns)), 1)
    return state.height - head_rows(state) - foot_rows(state) - prompt


def page_rows_left(state: FaceState) -> int:
    """Rows for the text of a page, below its title."""
    return max(_above_prompt(state) - 1, 1)


def fewest_of_talk(state: FaceState) -> int:
    """Rows of the conversation that are there whatever an ask needs."""
    return 0 if is_low(state) else 1


def ask_rows_left(state: FaceState, below: int) -> int:
    """Rows for what is asked about, with so many of the panel below it: all that the conversation can give."""
    room = _above_prompt(state)
    talk = 0 if is_low(state) else max(FEWEST_OF_TALK, state.height // TALK_SHARE)
    frame = 1 if is_low(state) else 2
    return max(room - talk - frame - below, min(FEWEST_OF_ASK, room - fewest_of_talk(state) - 1), 1)
