"""The shell of the face: feeds it from the terminal and the server, draws its frames, and carries out what it wants.

Frames are drawn when something has changed, at most twenty in a second (four while nobody looks), and an app in which
nothing goes on has no timer.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

from covey.client.connect import user_name
from covey.client.view.inputs import CancelAnswered, CancelFailed, Received, ViewInput
from covey.client.view.view import Step
from covey.lines.theme import NONE, SHAPES, THEMES
from covey.protocol.extensions import McpEvent, SkillsEvent
from covey.protocol.runs import RunComplete
from covey.tui.carrying import Carrier
from covey.tui.door import Door, FaceWishes, Farewell
from covey.tui.face import lists, looks
from covey.tui.face.composer import draft_of
from covey.tui.face.effects import Do, LoadList, SaveDraft, SaveHistory, Settle
from covey.tui.face.face import Face, OuterEffect
from covey.tui.face.facts import CancelDone, DraftFound, FaceInput, HistoryLoaded, Looked, RunEnded, Said
from covey.tui.face.state import FaceState
from covey.tui.keeping import Keeper
from covey.tui.link import ServerLink
from covey.tui.places import state_dir
from covey.tui.terminal.terminal import Terminal

FRAME_S, UNFOCUSED_FRAME_S = 0.05, 0.25


class FaceApp:
    def __init__(self, terminal: Terminal, door: Door, settings: FaceWishes) -> None:
        self.terminal = terminal
        self.door = door
        wanted = THEMES.get(settings.theme)
        if wanted and not os.environ.get("NO_COLOR"):
            terminal.use_theme(wanted)
        if terminal.theme == NONE:
            terminal.use_theme(SHAPES)
        if not settings.mouse:
            terminal.use_mouse(False)
        self._has_mouse = settings.mouse
        state = FaceState(width=terminal.width, height=terminal.height, preferences=settings.preferences)
        offset = time.localtime().tm_gmtoff
        self.face = Face(state, me=user_name(), utc_offset=offset)
        self.link = ServerLink(self, door)
        self._carrier = Carrier(self)
        self._keeper: Keeper | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._has_offered_start = False

    async def run(self) -> Farewell:
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self.link.run())]
        try:
            await asyncio.wait([*tasks, self._ended], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._carrier.close()
            if self._timer:
                self._timer.cancel()
        view = self.face.view
        known = looks.session(view)
        unsent = [sent for sent in view.outbox.prompts.values() if sent.state != "accepted"]
        count = len(unsent) + bool(self.face.state.unsent)
        return Farewell(0, view.current, known.title if known else "", count)

    def quit(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def _read(self) -> None:
        async for given in self.terminal:
            self.feed(given)

    # ── in ──

    def feed(self, fed: FaceInput) -> None:
        for effect in self.face.feed(fed, time.time()):
            self._do(effect)
        self._schedule(at_once=not isinstance(fed, Looked))

    def stepped(self, fed: ViewInput, step: Step) -> None:
        """What the face must hear of each input of the view, and cannot see in it afterwards."""
        match fed:
            case Received(event=event) if isinstance(event.payload, RunComplete):
                self.feed(RunEnded(event.payload))
            case Received(event=event) if isinstance(event.payload, McpEvent | SkillsEvent):
                self._carrier.begin(LoadList("commands"))
            case CancelAnswered(receipt=receipt):
                self.feed(CancelDone(len(receipt.covered)))
            case CancelFailed():
                self.feed(CancelDone(None))

    def looked(self) -> None:
        """The view has changed."""
        before = self.face.state.session_id
        self.feed(Looked())
        if self.face.state.session_id != before:
            self._bring_draft(self.face.state.session_id)
        if self.face.transcript.older_wanted and self.link.follower:
            self.link.follower.load_older()
        if not self._has_offered_start and self.face.view.workspace and not looks.model(self.face.view):
            self._has_offered_start = True
            self.face.state = replace(self.face.state, overlay=lists.start())

    def joined(self, workspace_path: str) -> None:
        """The workspace is known, and with it where drafts and earlier prompts are kept."""
        self._keeper = Keeper(Path(state_dir(os.environ)), workspace_path)
        self.feed(HistoryLoaded(self._keeper.history()))
        self._carrier.begin(LoadList("commands"))
        self._bring_draft(self.face.state.session_id)
        composer = self.face.state.composer
        if not composer.is_empty:  # typed while it started
            self._keeper.save_draft(self.face.state.session_id, draft_of(composer))

    def _bring_draft(self, session_id: str) -> None:
        if self._keeper and (draft := self._keeper.take_draft(session_id)):
            self.feed(DraftFound(session_id, draft.text, tuple(draft.tokens.items())))

    # ── out ──

    def _do(self, effect: OuterEffect) -> None:
        match effect:
            case SaveDraft(session_id, draft):
                if self._keeper:
                    self._keeper.save_draft(session_id, draft)
            case SaveHistory(text):
                if self._keeper:
                    self._keeper.add_history(text)
            case Settle(name, value):
                self._settle(name, value)
            case Do(what):
                {"quit": self.quit, "redraw": self.terminal.redraw, "suspend": self.terminal.suspend}[what]()
            case _:
                self._carrier.begin(effect)

    def _settle(self, name: str, value: str) -> None:
        if name == "theme":
            theme = THEMES.get(value)
            if theme is None:
                self.feed(Said(f"there is no theme {value}: {', '.join(THEMES)}", "warning"))
            else:
                self.terminal.use_theme(SHAPES if theme == NONE else theme)
                self.feed(Said(f"for this window; `covey config set tui.theme {value}` keeps it"))
        else:
            self._has_mouse = not self._has_mouse
            self.terminal.use_mouse(self._has_mouse)
            whose = "Covey's" if self._has_mouse else "the terminal's: its own selection works"
            self.feed(Said(f"the mouse is {whose}"))

    # ── frames ──

    def _schedule(self, *, at_once: bool = False) -> None:
        """Draw when the next frame is due; without a change nothing is scheduled."""
        now = self._loop.time()
        due = max(self._drawn_at + self._frame_s, now)
        if self._timer and self._timer.when() <= due:
            return
        if self._timer:
            self._timer.cancel()
        if at_once and due <= now and not self.terminal.waiting:
            self._draw()
        else:
            self._timer = self._loop.call_at(due, self._draw)

    @property
    def _frame_s(self) -> float:
        return FRAME_S if self.face.state.is_focused else UNFOCUSED_FRAME_S

    def _draw(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._drawn_at = self._loop.time()
        now = time.time()
        self.face.transcript.show_pictures(self.terminal.picture_types)
        self.terminal.show(self.face.frame(now))
        wakes_at = self.face.wakes_at(now)
        if wakes_at is not None:
            self._timer = self._loop.call_at(self._drawn_at + max(wakes_at - now, self._frame_s), self._wake)

    def _wake(self) -> None:
        self._timer = None
        for effect in self.face.feed(Looked(), time.time()):
            self._do(effect)
        self._draw()
