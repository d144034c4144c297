"""A line that is being edited, as a row: it moves sideways so that the caret is seen. Pure."""

from __future__ import annotations

from covey.lines.line import Span, StyledLine
from covey.lines.widths import clusters, head, width
from covey.tui.face.editor import Editor


def line_with_caret(editor: Editor, columns: int, label: str) -> tuple[StyledLine, int]:
    """The row, and the column of the caret."""
    room = max(columns - width(label) - 1, 4)
    before = editor.text[: editor.caret]
    start = 0
    if width(before) > room:
        excess = width(before) - room
        for cluster, needed in clusters(before):
            if excess <= 0:
                break
            start += len(cluster)
            excess -= needed
    shown = head(editor.text[start:], room + 1)
    spans = [Span(label, "dim")]
    if editor.selection:
        first, last = (max(place - start, 0) for place in editor.selection)
        spans += [Span(shown[:first]), Span(shown[first:last], "selected"), Span(shown[last:])]
    else:
        spans.append(Span(shown))
    return StyledLine(tuple(spans)), width(label) + width(before[start:])
