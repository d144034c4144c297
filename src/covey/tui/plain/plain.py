"""`covey --plain`: a conversation by lines. The same server, view and words as every other face; no cursor moves."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from covey.client.client import Client
from covey.client.cwd import cwd_in
from covey.client.errors import ServerUnreachable
from covey.client.follower import Follower
from covey.client.view.inputs import ViewInput
from covey.client.view.view import Step
from covey.lines.line import StyledLine
from covey.protocol.errors import ApiError
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Mode
from covey.tui.door import Door
from covey.tui.places import plain_history
from covey.tui.plain import commands
from covey.tui.plain.asks import LineAsks
from covey.tui.plain.line_reader import LineReader
from covey.tui.plain.paper import Paper
from covey.tui.plain.story import LineStory

PROMPT = "> "


def start(door: Door) -> int:
    """Until the user leaves, or all that was piped in is answered. Gives the exit code."""
    return asyncio.run(_run(door))


async def _run(door: Door) -> int:
    paper = Paper()
    async with door.connect(lambda text: paper.say(text, "warning")) as client:
        workspace = await door.join(client)
        session_id = await door.choose(client, workspace.id)
        talk = Talk(client, workspace.path, paper, door.settings().preferences.busy == "steer")
        follower = Follower(client, workspace.id, session_id=session_id, on_step=talk.stepped)
        talk.begin(follower)
        async with follower:
            return await talk.run()


class Talk:
    """One conversation: lines in, lines out."""

    def __init__(self, client: Client, root: str, paper: Paper, steers: bool) -> None:
        """`steers`: what is typed while the session works joins its turn."""
        self._steers = steers
        self.client = client
        self.paper = paper
        self.root = root
        self.is_leaving = False
        self.has_refusal = False
        self._follower: Follower | None = None
        self._interrupts = 0
        self._is_posting = False
        self._stop = asyncio.Event()
        self._signal = signal.SIGINT
        """Why it stopped, if it did."""
        self._listen()  # before the reader changes how the terminal takes keys
        self._reader = LineReader(PROMPT, Path(plain_history(os.environ)), paper.prompted)
        self._story: LineStory | None = None
        self._asks = LineAsks(self)
        self._beginners: set[str] = set()
        """Runs that began a session here."""
        self._continued = ""
        """Lines that ended with a backslash: the prompt goes on."""

    @property
    def follower(self) -> Follower:
        assert self._follower is not None
        return self._follower

    @property
    def is_person(self) -> bool:
        """Somebody types here; else lines come out of a pipe."""
        return self._reader.is_person

    @property
    def has_failed(self) -> bool:
        record = self.follower.view.sessions.get(self.follower.view.current)
        return bool(record and record.has_failed)

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended_by, number)

    def begin(self, follower: Follower) -> None:
        self._follower = follower
        self._story = self._told(is_new=False)

    async def run(self) -> int:
        how = " Type a prompt and Enter; /help says what else there is." if self.is_person else ""
        self.say(f"Covey in {self.root}.{how}", "dim")
        try:
            await self._take_lines()
            if not self._stop.is_set() and not self.is_leaving and not self.is_person:
                await self._until_idle()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)
            self._reader.close()
        if self._is_stuck() and (self.is_person or self._stop.is_set()):
            self.say("The run still waits for an answer: `covey runs` shows what it asks.", "warning")
        if session_id := self.follower.view.current:
            self.say(f"To go on with this session: covey --plain -s {session_id}", "dim")
        if self._stop.is_set():
            return 128 + self._signal
        return int((self.has_failed or self.has_refusal) and not self.is_person)

    async def _take_lines(self) -> None:
        stopped = asyncio.create_task(self._stop.wait())
        watched = asyncio.create_task(self._watch())
        try:
            while not self._stop.is_set() and not self.is_leaving:
                typed = asyncio.create_task(self._next_line())
                await asyncio.wait({typed, stopped, watched}, return_when=asyncio.FIRST_COMPLETED)
                if watched.done():
                    watched.result()
                if not typed.done():
                    typed.cancel()
                    return
                if typed.result() is None:
                    return
                await self._line(typed.result() or "")
        finally:
            stopped.cancel()
            watched.cancel()
            await asyncio.wait({stopped, watched})

    async def _next_line(self) -> str | None:
        """Out of a pipe, one after the other: the next is for when this one is answered, or for what it asks."""
        if not self.is_person:
            await self.loaded()
            await self.follower.until(lambda view: not self._is_busy or self._is_stuck())
            self._asks.look()
        return await self._reader.next()

    async def _watch(self) -> None:
        """Raises what no waiting will change. Puts the prompt back when all has been said."""
        seen = -1
        while True:
            seen = await self.follower.changed(seen)
            await self._report_refusals()
            if self._is_caught_up:
                self._asks.look()
                if self._asks.choices or not self._is_busy:
                    self.offer()

    @property
    def _is_busy(self) -> bool:
        view = self.follower.view
        record = view.sessions.get(view.current)
        is_sending = any(prompt.state != "refused" for prompt in view.outbox.prompts.values())
        return self._is_posting or is_sending or bool(record and record.is_busy)

    async def _report_refusals(self) -> None:
        for run_id, prompt in list(self.follower.view.outbox.prompts.items()):
            if prompt.state == "refused":
                self.say(f"Not sent: {prompt.error}", "warning")
                self.has_refusal = True
                self.follower.drop(run_id)
                if run_id in self._beginners:
                    await self._leave_empty(prompt.prompt.session_id)

    async def _leave_empty(self, session_id: str) -> None:
        """A session whose only prompt was refused is none: the next prompt begins one."""
        if self.follower.view.current == session_id:
            self.open("")
        with suppress(ServerUnreachable, ApiError):  # then it stays, and is empty
            await self.client.delete_session(self.follower.workspace_id, session_id)

    async def _until_idle(self) -> None:
        """All that was piped in has been answered, or somebody interrupts."""
        stopped = asyncio.create_task(self._stop.wait())
        idle = asyncio.create_task(self.follower.until(lambda view: not self._is_busy or self._is_stuck()))
        done, _ = await asyncio.wait({stopped, idle}, return_when=asyncio.FIRST_COMPLETED)
        for task in {stopped, idle} - done:
            task.cancel()
        if idle in done and self._is_stuck():
            self.say("Nobody is here to answer; the run waits for an answer elsewhere, and is left to it.", "warning")

    @property
    def _is_caught_up(self) -> bool:
        """Whatever was loaded has been told: what is asked comes below it, and then the prompt."""
        view = self.follower.view
        return view.link.state == "lost" or (view.link.state == "connected" and not list(view.loads))

    async def loaded(self) -> None:
        """All that was asked for is there, or the connection is not."""
        await self.follower.until(lambda view: view.link.state != "connected" or not list(view.loads))

    def _is_stuck(self) -> bool:
        """It waits for an answer, which only somebody can give: nothing is on the way that ends it."""
        view = self.follower.view
        waiting = [ask for ask in view.asks.open.values() if ask.kind != "approval" and not ask.is_being_answered]
        is_cancelled = (view.current, "") in view.outbox.cancels
        return not is_cancelled and any(ask.session_id == view.current for ask in waiting)

    # ── out ──

    def say(self, text: str, style: str = "") -> None:
        self.paper.say(text, "dim" if style == "dim" else "warning" if style else "")

    def write(self, lines: list[StyledLine]) -> None:
        self.paper.write(lines)

    def refuse(self, why: str) -> None:
        """The line goes nowhere; out of a pipe, that is a failure."""
        self.has_refusal = True
        self.say(why, "warning")
        self.offer()

    def offer(self) -> None:
        """It is the user's turn, or could be: the prompt stands on the last row."""
        if self.is_person:
            if self._reader.is_prompting:
                self.paper.prompt_again(PROMPT + self._reader.typed())
            else:
                self._reader.invite()

    def stepped(self, fed: ViewInput, step: Step) -> None:
        if self._story:
            self.paper.write(self._story.take(fed, step))

    def open(self, session_id: str, *, is_new: bool = False) -> None:
        """Another session is shown from now on; '': a new one, when there is a prompt for it."""
        self._asks.forget()
        self._story = self._told(is_new=is_new)
        self.follower.open(session_id)

    def _told(self, *, is_new: bool) -> LineStory:
        echoes = not self.is_person
        return LineStory(self.follower.view, self.paper.columns, self.root, time.time, echoes=echoes, is_new=is_new)

    # ── in ──

    def _interrupted(self) -> None:
        """Ctrl-C: cancel what runs; again, or with nothing to cancel, leave."""
        self._interrupts += 1
        if self._interrupts > 1:
            self._stop.set()
        elif self._follower and self._is_busy:
            self._follower.cancel()
            self.say("Cancelling. Ctrl-C again leaves.", "warning")
        else:
            self.say("Ctrl-C again leaves; so does /quit.", "warning")
            self.offer()

    def _ended_by(self, number: signal.Signals) -> None:
        self._signal = number
        self._stop.set()

    async def _line(self, text: str) -> None:
        self._interrupts = 0
        self.paper.entered()
        if text.endswith("\\"):
            self._continued += f"{text[:-1]}\n"
            self.offer()
            return
        text, self._continued = self._continued + text, ""
        try:
            if await commands.run(self, text, self._asks.choices) or self._asks.hear(text):
                return
            if text.strip():
                await self.post(text)
            else:
                self.offer()
        except (ServerUnreachable, ApiError) as error:
            self.say(str(error), "warning")

    async def post(self, text: str, mode: Mode | None = None) -> None:
        """Send it as a prompt. `mode`: how it goes to a session that works; lines of a pipe wait for their turns."""
        follower = self.follower
        is_new = not follower.view.current
        if not self._is_busy or not self.is_person:
            mode = None
        elif mode is None:
            mode = "fold" if self._steers else "own_turn"
        if is_new:
            self._is_posting = True
            try:
                session = await self.client.create_session(follower.workspace_id)
            finally:
                self._is_posting = False
            self.open(session.id, is_new=True)
        run_id = follower.post(PostPrompt(prompt=text, mode=mode, cwd=cwd_in(self.root)))
        if is_new:
            self._beginners.add(run_id)
        if self._story:
            self._story.posted(run_id)
        if mode:
            self.say(commands.how_it_goes(mode, follower.view), "dim")
        self._asks.has_gone = False
        if self._asks.choices:
            self.say("That is sent as a prompt. What was asked still waits for an answer.", "dim")
            self.offer()
