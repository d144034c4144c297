"""An extension that waits for an approval as rows: as much of it as fits, and the keys. Pure."""

from __future__ import annotations

from covey.lines.approval import all_rows
from covey.lines.line import StyledLine
from covey.protocol.extensions import ApprovalRequest
from covey.tui.face.key_rows import flowed, key_spans
from covey.tui.face.permission_rows import Subject, cut_rows, gap, panel_columns
from covey.tui.face.room import ask_rows_left
from covey.tui.face.state import FaceState


def extension(state: FaceState, request: ApprovalRequest) -> Subject:
    """As much as there is room for: all of it may be executed, or told to the model."""
    columns = panel_columns(state)
    most = ask_rows_left(state, len([*gap(state), *approval_keys(state, columns, is_cut=True)]))
    rows = all_rows(request, columns)
    is_cut = len(rows) > most
    return Subject(cut_rows(rows, most), is_cut, is_whole=not is_cut)


def approval_keys(state: FaceState, columns: int, *, is_cut: bool) -> list[StyledLine]:
    keys = state.preferences.keys
    spans = key_spans(keys, ("approve", "use it, as it is"), ("refuse", "do not"))
    return flowed(spans + key_spans(keys, ("whole", "see all of it")) if is_cut else spans, columns)
