"""The first row and the last one: where one is, what goes on, and what can be done. Pure."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from covey.client.view.records import RunRecord
from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.widths import cut, width
from covey.lines.words import dollars
from covey.tui.face import answering, looks
from covey.tui.face.boxes import fit, line_width, spread
from covey.tui.face.keys import shown
from covey.tui.face.state import FaceState, Picker, TextPage

SPIN = "◐◓◑◒"
SPIN_S = 0.25
"""One cell turns four times a second, and only while a run is active."""
NEEDED = 3
"""Hints of the last row that come before the one on help: how to stop what runs is among them."""
WARN_AT = 0.75
"""A context as full as this is about to be summarised."""


def status_line(state: FaceState, view: View, columns: int, client_id: str) -> StyledLine:
    """What matters most stays when there is little room: a lost connection, what runs, who asks."""
    right: list[StyledLine] = []
    for piece in _pieces(state, view, client_id):
        candidate = _joined([*right, piece])
        if line_width(candidate) > columns * 2 // 3:
            continue
        right.append(piece)
    joined = _joined(right)
    room = columns - line_width(joined) - 1
    where = _place(view) if columns >= 90 else ""
    prefix = width(where) + 3 if where else 0
    title = cut(one_line(looks.title(view)), max(room - 12 - prefix, 8))
    left = line(Span(" covey", "accent"), Span(" · ", "dim"))
    if where:
        left = line(*left.spans, Span(f"{where} · ", "dim"))
    return spread(line(*left.spans, Span(title, "strong")), line(" ", *joined.spans, " "), columns)


def _joined(pieces: list[StyledLine]) -> StyledLine:
    """As they are shown: in the order of the screen, not of their weight."""
    spans: list[Span] = []
    for piece in reversed(pieces):
        if spans:
            spans.append(Span("   "))
        spans += piece.spans
    return StyledLine(tuple(spans))


def _place(view: View) -> str:
    path = view.workspace.path if view.workspace else ""
    return cut(one_line(path.rstrip("/").rpartition("/")[2] or path), 30)


def _pieces(state: FaceState, view: View, client_id: str) -> list[StyledLine]:
    """The weightiest first."""
    found = [_link(state, view), _run(state, view), _asks(view)]
    if (share := looks.context_share(view)) is not None:
        style: Style = "warning" if share >= WARN_AT else "dim"
        found.append(line(Span(f"{share:.0%} full", style)))
    found.append(_here(view, client_id, state.me))
    if (meters := looks.meters(view)) and meters.cost:
        found.append(line(Span(dollars(meters.cost), "dim")))
    if model := looks.model(view):
        found.append(line(Span(cut(model.rpartition("/")[2], 24), "dim")))
    return [piece for piece in found if piece.spans]


def _link(state: FaceState, view: View) -> StyledLine:
    if state.is_starting:
        return line(Span(state.is_starting, "dim"))
    if view.link.state == "lost":
        return line(Span(f"connection lost {clock(state.now - view.link.since)}", "error"))
    if view.link.state == "connecting":
        return line(Span("connecting", "dim"))
    return line(Span("loading what was missed", "dim")) if view.link.gap else StyledLine()


def _asks(view: View) -> StyledLine:
    elsewhere = {ask.session_id for ask in looks.asks_elsewhere(view)}
    if not elsewhere:
        return StyledLine()
    return line(Span(f"? {len(elsewhere)} {'session asks' if len(elsewhere) == 1 else 'sessions ask'}", "warning"))


def _run(state: FaceState, view: View) -> StyledLine:
    found = looks.active(view)
    if found is None:
        waiting = len(looks.queue(view))
        return line(Span(f"{waiting} parked", "dim")) if waiting and not looks.is_busy(view) else StyledLine()
    words, style = doing(found, view, state.now)
    since = clock(state.now - (found.run.started_at or found.run.accepted_at))
    sign = spinner(found, view, state.now)
    return line(Span(f"{sign} ", style), Span(f"{words} ", "dim"), Span(since, style))


def spinner(found: RunRecord, view: View, now: float) -> str:
    """Derived from the run alone: what waits for a person, or of which nothing is heard, does not turn."""
    if looks.is_asking(view, found.run):
        return "?"
    if found.retry or view.link.state == "lost":
        return "◌"
    return SPIN[int((now - found.run.accepted_at) / SPIN_S) % len(SPIN)]


def doing(found: RunRecord, view: View, now: float) -> tuple[str, Style]:
    """What an active run does now, in a word or two."""
    if found.run.is_being_cancelled:
        return "stopping", "warning"
    if found.retry and found.retry.retry_at:
        return f"tries again in {max(found.retry.retry_at - now, 0):.0f} s", "warning"
    if looks.is_asking(view, found.run):
        return "waits for you", "warning"
    match (found.run.waiting_on or "").partition(":"):
        case ("tool", _, name):
            return cut(one_line(name), 16), "accent"
        case ("model", _, _):
            return "writes" if looks.is_speaking(view, found.run) else "thinks", "accent"
        case ("store", _, _):
            return "waits for the disk", "warning"
    return "works", "accent"


def clock(seconds: float) -> str:
    whole = max(int(seconds), 0)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _here(view: View, client_id: str, me: str) -> StyledLine:
    others = [p for p in looks.present(view, client_id, me) if p.is_here and not p.is_you]
    if not others:
        return StyledLine()
    names = Counter(one_line(other.name) for other in others if not other.is_yours)
    places = 1 + sum(other.is_yours for other in others)
    if len(names) > 2:
        return line(Span(f"{len(others) + 1} here", "dim"))
    shown_names = [name if count == 1 else f"{name} ×{count}" for name, count in (*names.items(), ("you", places))]
    return line(Span(", ".join(shown_names), "dim"))


# ── the last row ──


def footer_line(state: FaceState, view: View, columns: int) -> StyledLine:
    """What the keys do here."""
    keys = state.preferences.keys
    if state.armed and state.armed.what != "quit":
        words = "cancels what runs" if state.armed.what == "cancel" else "goes back in time"
        return fit(line(" ", Span(shown("escape"), "key"), Span(f" again {words}", "warning")), columns)
    hints = _hints(state, view)
    right = line(Span(keys.shown("help"), "key"), Span(" keys ", "dim"))
    if _fitting(hints[:NEEDED], columns - line_width(right)) < len(hints[:NEEDED]):
        right = StyledLine()
    spans = [Span(" ")]
    for name, about in hints[: _fitting(hints, columns - line_width(right))]:
        spans += [Span(name, "key"), Span(f" {about}   ", "dim")]
    return spread(StyledLine(tuple(spans)), right, columns)


def _fitting(hints: list[tuple[str, str]], columns: int) -> int:
    """How many of them there is room for."""
    ends = accumulate(width(name) + width(about) + 4 for name, about in hints)
    return sum(1 + end <= columns for end in ends)


def _hints(state: FaceState, view: View) -> list[tuple[str, str]]:
    keys = state.preferences.keys
    escape = shown("escape")
    found: list[tuple[str, str]]
    if isinstance(state.overlay, Picker):
        found = [("pick", "choose"), ("escape", "close"), ("pick_up", "up"), ("pick_down", "down")]
    elif isinstance(state.overlay, TextPage):
        found = [("escape", "close"), ("page_line_down", "scroll"), ("page_page_down", "page")]
    elif state.search:
        if state.search.is_typing:
            return [("↑ ↓", "hits"), ("⏎", "to the text"), (escape, "end")]
        found = [("find_next", "next"), ("find_previous", "before"), ("copy_item", "copy"), ("open", "open")]
        found += [("find", "other words"), ("escape", "end")]
    elif state.focus == "ask":
        found = [("escape", answering.behind_escape(state, view)), ("page_up", "look further up")]
    elif state.focus == "queue":
        found = [("queue_edit", "edit"), ("queue_earlier", "up"), ("queue_later", "down"), ("queue_drop", "drop")]
        found += [("queue_park", "park"), ("queue_now", "next"), ("escape", "back")]
    elif state.focus == "transcript":
        found = [("open", "open"), ("copy_item", "copy"), ("copy_code", "copy code"), ("find", "search")]
        found += [("item_up", "items"), ("last", "end"), ("leave", "prompt")]
    elif state.composer.editing:
        found = [("send", "change it"), ("escape", "leave it")]
    elif state.composer.completion and state.composer.completion.items:
        found = [("suggest_take", "take it"), ("suggest_next", "next"), ("escape", "close")]
    elif state.composer.is_shell:
        found = [("send", "run it")] if view.current else []
        found += [("newline", "new line")]
    elif looks.is_busy(view):
        can_steer = looks.can_be_steered(view)
        steers = state.preferences.busy == "steer" and can_steer
        other = "answer" if state.ask.ask_id else "queue" if steers else "steer" if can_steer else ""
        found = [("send", "steer" if steers else "queue"), *([("send_other", other)] if other else [])]
        pairs = [(keys.shown(intent), about) for intent, about in found]
        # How to stop it must be there on a narrow screen too; the rest goes first.
        pairs += [(f"{escape} {escape}", "cancel"), (keys.shown("send_now"), "interrupt")]
        return [(name, about) for name, about in [*pairs, (keys.shown("palette"), "commands")] if name]
    else:
        found = [("send_other", "answer")] if state.ask.ask_id else []
        found += [("send", "send"), ("newline", "new line"), ("palette", "commands"), ("sessions", "sessions")]
        found += [("models", "model"), ("next_mode", "mode")]
    return [(keys.shown(intent), about) for intent, about in found if keys.shown(intent)]
