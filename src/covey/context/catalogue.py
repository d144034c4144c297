"""What the model is told of skills and agents before it asks for one: names and what they are for, within a bound.

The system prompt holds it, so it is the same bytes as long as the files are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from covey.context.clean_text import visible_line
from covey.context.texts import TextFile, Texts

MAX_BYTES = 8 * 1024
"""Of a catalogue. Every step pays for it, whether the model needs a skill or not."""
SHARE = 0.02
"""Of the context window, for models with a small one."""
BYTES_PER_TOKEN = 4
MIN_BYTES = 512
SHORTEST = 20
"""Characters of a description that still say something; below that, names alone are told."""


def skill_lines(texts: Texts, window: int = 0) -> str:
    """The skills that a model may ask for, one on a line. `window`: tokens that fit into it; 0: not known."""
    return bounded_lines([(file.name, file.description) for file in texts.all("skill") if file.is_for_models], window)


def agent_lines(texts: Texts, window: int = 0) -> str:
    """The agents that can be sent."""
    return bounded_lines([(file.name, file.description) for file in texts.all("agent")], window)


def bounded_lines(entries: Sequence[tuple[str, str]], window: int) -> str:
    """`- name: description` for each; where that is too much, with shorter descriptions, then with names alone."""
    bound = min(MAX_BYTES, max(MIN_BYTES, int(window * SHARE * BYTES_PER_TOKEN))) if window else MAX_BYTES
    longest = max((len(description) for _, description in entries), default=0)
    length = next((length for length in _lengths(longest) if _size(entries, length) <= bound), 0)
    if length or not entries:
        return "\n".join(_line(name, description, length) for name, description in entries)
    return _names([name for name, _ in entries], bound)


def _lengths(longest: int) -> list[int]:
    """Bounds of a description that are tried, each some tenth shorter than the one before."""
    lengths = [longest]
    while lengths[-1] > SHORTEST:
        lengths.append(max(SHORTEST, lengths[-1] * 9 // 10))
    return lengths


def _size(entries: Sequence[tuple[str, str]], length: int) -> int:
    return sum(len(_line(name, description, length).encode()) + 1 for name, description in entries)


def _line(name: str, description: str, length: int) -> str:
    return f"- {name}: {visible_line(description, length)}"


def _names(names: Sequence[str], bound: int) -> str:
    kept: list[str] = []
    left = bound - 60  # for the words about the others
    for name in names:
        left -= len(name) + 2
        if left < 0:
            break
        kept.append(name)
    more = f"; and {len(names) - len(kept)} more" if len(kept) < len(names) else ""
    return f"Only their names fit here: {', '.join(kept)}{more}."


def named(files: Sequence[TextFile]) -> str:
    """Their names, for an error message."""
    return ", ".join(file.name for file in files[:50]) or "none"
