"""The list of things to do: as a checklist, and in words for whoever hears it read out."""

from __future__ import annotations

from collections.abc import Iterator

from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut_line
from covey.lines.wrap import wrap

_BOXES: dict[str, tuple[str, Style]] = {"completed": ("☑", "dim"), "in_progress": ("▸", "strong"), "pending": ("☐", "")}
_WORDS = {"completed": "done", "in_progress": "under way", "pending": "to do"}


def todo_lines(todos: object, columns: int) -> list[StyledLine]:
    """The list as a checklist."""
    lines: list[StyledLine] = []
    for status, content in _items(todos):
        box, style = _BOXES[status]
        lines += wrap([Span(content, style)], columns, (Span(f"  {box} ", "marker"),), (Span("    "),))
    return lines


class SpokenTodos:
    """The list of one session, where lines are never taken back: only what has changed is said."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def news(self, todos: object, columns: int) -> list[StyledLine]:
        """Each item that is new, or stands otherwise than before, on a line of its own."""
        items = list(_items(todos))
        known, self._known = self._known, set(items)
        fresh = [item for item in items if item not in known]
        return [cut_line(line(f"{_WORDS[status]}: {content}"), columns) for status, content in fresh]


def _items(todos: object) -> Iterator[tuple[str, str]]:
    for todo in todos if isinstance(todos, list) else ():
        if isinstance(todo, dict):
            status = str(todo.get("status"))
            yield status if status in _BOXES else "pending", one_line(str(todo.get("content", "")))
