"""The face as its shell uses it: feed it what came, carry out what it wants, and show its frames. No I/O, no clock.

It puts three things together: the state with its reducer, the conversation, which knows which rows are in sight, and
the layout, which knows where on the screen everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covey.client.view.view import View
from covey.lines.segments import last_code
from covey.tui.face import answering, looks, pointing
from covey.tui.face.editor import place_in, wrapped
from covey.tui.face.effects import CarriedEffect, Copy, Effect, Scroll, Search, ShellEffect
from covey.tui.face.facts import FaceInput, Pointed, SearchFound
from covey.tui.face.layout import Layout, Regions, lay_out
from covey.tui.face.notice_lines import notice_rows
from covey.tui.face.reduce import reduce
from covey.tui.face.sizes import composer_top, text_columns
from covey.tui.face.state import ALONE_S, FaceState, Picker
from covey.tui.face.status_lines import SPIN_S
from covey.tui.frame import ScreenFrame
from covey.tui.inputs import Key, Mouse
from covey.tui.transcript.anchoring import TranscriptPoint
from covey.tui.transcript.shown import ShownTranscript

WHEEL_ROWS = 3
CLOCK_S = 1.0
"""Where only a clock goes on, one frame a second is enough; so it is while nobody looks."""
OuterEffect = ShellEffect | CarriedEffect
"""What the shell has to do."""


class Face:
    def __init__(self, state: FaceState, *, client_id: str = "", me: str = "", utc_offset: int = 0) -> None:
        self.state = replace(state, me=me)
        self.view = View()
        """To be read. The follower has its own, which takes the place of this one."""
        self.client_id = client_id
        self.transcript = ShownTranscript(me=me, utc_offset=utc_offset)
        self._layout: Layout | None = None
        self._dragged_from: TranscriptPoint | None = None
        self._drags_prompt = False
        self._pointed: Pointed | None = None
        """What the mouse was pressed on."""

    # ── in ──

    def feed(self, fed: FaceInput, now: float) -> list[OuterEffect]:
        """Take one input in; gives what the shell must do."""
        if isinstance(fed, Mouse) and fed.action in ("press", "drag", "release"):
            return self._clicked(fed, now)
        if isinstance(fed, Key) and (copied := self._copied_selection(fed)):
            return [copied]
        if isinstance(fed, Key) and fed.name == "escape":
            self.transcript.select(None)
        self.state, effects = reduce(self.state, self.view, fed, now)
        return [effect for each in effects for effect in self._own(each, now)]

    def _copied_selection(self, key: Key) -> Copy | None:
        """ctrl+c on a selection of the conversation copies it, and does nothing else."""
        intent = self.state.preferences.keys.find(("everywhere",), key.name)
        if intent != "interrupt_or_quit" or not self.transcript.has_selection or self.state.overlay:
            return None
        text = self.transcript.selected_text()
        self.transcript.select(None)
        return Copy(text, "the selection") if text else None

    def _own(self, effect: Effect, now: float) -> list[OuterEffect]:
        """What concerns the conversation is done here; the rest is the shell's."""
        if isinstance(effect, Scroll):
            self.transcript.sync(self.view, now)
            return self._scroll(effect.intent)
        if isinstance(effect, Search):
            self.transcript.sync(self.view, now)
            self._search(effect.query, effect.step)
            found = SearchFound(*self.transcript.match_count)
            self.state, further = reduce(self.state, self.view, found, now)
            return [each for each in further if not isinstance(each, Scroll | Search)]
        return [effect]

    def _scroll(self, intent: str) -> list[OuterEffect]:
        transcript = self.transcript
        if action := _SCROLLS.get(intent):
            action(transcript)
        elif intent == "open":
            key = transcript.focused
            if not key:
                transcript.step(-1)
            elif not transcript.toggle(key):
                return []
        elif intent in ("copy_item", "copy_code", "copy_answer"):
            return self._copy(intent)
        elif intent == "unselect":
            transcript.select(None)
            transcript.focus("")
        return []

    def _copy(self, intent: str) -> list[OuterEffect]:
        transcript = self.transcript
        if intent == "copy_item" and transcript.has_selection:
            text, about = transcript.selected_text(), "the selection"
            transcript.select(None)
        elif intent == "copy_answer" or not transcript.focused:
            text, about = transcript.last_answer(), "the last answer"
        else:
            text, about = transcript.item_text(transcript.focused), "the item"
        if intent == "copy_code":
            text, about = last_code(text), "the code"
        return [Copy(text, about)] if text else []

    def _search(self, query: str, step: int) -> None:
        if step and query == self.transcript.words:
            if step > 0:
                self.transcript.next_match()
            else:
                self.transcript.previous_match()
        else:
            self.transcript.search(query)

    # ── the mouse ──

    def _clicked(self, mouse: Mouse, now: float) -> list[OuterEffect]:
        if self._layout is None or mouse.button not in ("left", "none"):
            return []
        self.state = replace(self.state, now=now)
        where = self._layout.regions
        if (pointed := self._points_at(mouse, where)) or self._pointed or self.state.overlay:
            return self._point(mouse, pointed, now)
        column = mouse.column - where.left
        if mouse.action == "press":
            self._drags_prompt = mouse.row in where.composer
        if self._drags_prompt:
            if mouse.action != "release":
                is_drag = mouse.action == "drag"
                self._place_caret(mouse.row - where.composer.start, column - 3, selecting=is_drag)
            return []
        row = max(where.conversation.start, min(mouse.row, where.conversation.stop - 1)) - where.conversation.start
        if mouse.action == "press":
            self.transcript.select(None)
            is_inside = mouse.row in where.conversation and 0 <= column < where.columns
            self._dragged_from = self.transcript.hit(row, column) if is_inside else None
        elif mouse.action == "drag" and self._dragged_from:
            if mouse.row <= where.conversation.start:
                self.transcript.scroll(-1)
            elif mouse.row >= where.conversation.stop:
                self.transcript.scroll(1)
            self.transcript.select(self._dragged_from, self.transcript.hit(row, column))
        elif mouse.action == "release" and self._dragged_from:
            return self._released(row, column)
        return []

    def _points_at(self, mouse: Mouse, where: Regions) -> Pointed | None:
        """What is chosen by a click. A drag that began in the conversation or in the prompt chooses nothing."""
        if mouse.action == "drag" or (mouse.action == "release" and not self._pointed):
            return None
        return pointing.target(self.state, self.view, where, mouse.row, mouse.column, client_id=self.client_id)

    def _point(self, mouse: Mouse, pointed: Pointed | None, now: float) -> list[OuterEffect]:
        """It counts where the button goes up on what it went down on."""
        pressed, is_press = self._pointed, mouse.action == "press"
        if mouse.action != "drag":
            self._pointed = pointed if is_press else None
        if is_press or pointed is None or pointed != pressed:
            return []
        self.state, effects = reduce(self.state, self.view, pointed, now)
        return [effect for each in effects for effect in self._own(each, now)]

    def _released(self, row: int, column: int) -> list[OuterEffect]:
        """The end of a drag copies; a click opens what it is on."""
        start, self._dragged_from = self._dragged_from, None
        if self.transcript.has_selection:
            text = self.transcript.selected_text()
            return [Copy(text, "the selection")] if text.strip() else []
        end = self.transcript.hit(row, column)
        if start and end and start.item == end.item:
            self.transcript.toggle(start.item)
        return []

    def _place_caret(self, row: int, column: int, *, selecting: bool) -> None:
        state, composer = self.state, self.state.composer
        columns = self._layout.regions.columns if self._layout else state.width
        rows = wrapped(composer.text, text_columns(columns), composer.label)
        row += composer_top(state, rows)[0] - max(len(notice_rows(state, columns)), 1)
        if 0 <= row < len(rows):
            to = place_in(composer.text, rows[row], max(column, 0), composer.label)
            moved = composer.with_editor(composer.editor.moved(to, selecting=selecting))
            self.state = replace(state, composers={**state.composers, state.session_id: moved}, focus="composer")

    # ── out ──

    @property
    def oldest_listed(self) -> str:
        """The last session of the list that is open; '': none is."""
        overlay = self.state.overlay
        is_list = isinstance(overlay, Picker) and overlay.kind == "sessions" and overlay.items
        return overlay.items[-1].id if is_list and isinstance(overlay, Picker) else ""

    def frame(self, now: float) -> ScreenFrame:
        self.state = replace(self.state, now=now)
        self.transcript.sync(self.view, now)
        self._layout = lay_out(self.state, self.view, self.transcript, self.client_id)
        return self._layout.frame

    def wakes_at(self, now: float) -> float | None:
        """When something on the screen changes although nothing comes; None: never."""
        state, found = self.state, looks.active(self.view)
        times = [each.until for each in (state.toast, state.armed) if each]
        if found or self.view.link.state == "lost" or self.transcript.is_live:
            is_heard = self.view.link.state == "connected" and state.is_focused
            turns = is_heard and found and not looks.is_asking(self.view, found.run) and not found.retry
            period = SPIN_S if turns else CLOCK_S
            times.append(now - now % period + period)
        if state.ask.pending:
            times.append(state.ask.pending.at + ALONE_S)
        if answering.shown(state, self.view) and now < answering.opens_at(state):
            times.append(answering.opens_at(state))
        return max(min(times), now) if times else None


_SCROLLS: dict[str, Callable[[ShownTranscript], object]] = {
    "page_up": lambda t: t.page(-1),
    "page_down": lambda t: t.page(1),
    "whole_up": lambda t: t.page(-1),
    "whole_down": lambda t: t.page(1),
    "half_up": lambda t: t.page(-0.5),
    "half_down": lambda t: t.page(0.5),
    "line_up": lambda t: t.scroll(-1),
    "line_down": lambda t: t.scroll(1),
    "wheel_up": lambda t: t.scroll(-WHEEL_ROWS),
    "wheel_down": lambda t: t.scroll(WHEEL_ROWS),
    "item_up": lambda t: t.step(-1),
    "item_down": lambda t: t.step(1),
    "select_more": lambda t: t.extend(1),
    "select_less": lambda t: t.extend(-1),
    "first": lambda t: t.to_start(),
    "to_top": lambda t: t.to_start(),
    "last": lambda t: t.to_end(),
    "to_end": lambda t: t.to_end(),
    "details": lambda t: t.fold_all(is_open=not t.all_open),
}
