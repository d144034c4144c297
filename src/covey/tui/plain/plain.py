"""`covey --plain`: a conversation by lines. The same server, view and words as every other face; no cursor moves."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from covey.client.client import Client
from covey.client.cwd import cwd_in
from covey.client.errors import ServerUnreachable
from covey.client.follower import Follower
from covey.client.view.inputs import ViewInput
from covey.client.view.records import AskRequest
from covey.client.view.view import Step
from covey.lines.line import StyledLine
from covey.lines.plain_text import one_line
from covey.protocol.errors import ApiError
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Mode
from covey.tui.door import Door
from covey.tui.places import plain_history
from covey.tui.plain import commands
from covey.tui.plain.choices import (
    Allowed,
    ApprovalChoices,
    AskedOn,
    Choices,
    Decided,
    PermissionChoices,
    QuestionChoices,
    QuestionsAnswered,
    is_meant_as_answer,
)
from covey.tui.plain.line_reader import LineReader
from covey.tui.plain.paper import Paper
from covey.tui.plain.story import LineStory

PROMPT = "> "
QUIET_S = 0.4
"""A line that comes so soon after a question was shown was typed before anybody could have read it."""


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
        self._asked: tuple[str, Choices] | None = None
        self._asked_at = 0.0
        self._decided: tuple[str, dict[str, str]] | None = None
        """An ask that was answered here, and what is said of its outcome when the server says that it counts."""
        self._mentioned: set[str] = set()
        """Asks that are not answered here."""
        self._beginners: set[str] = set()
        """Runs that began a session here."""
        self._continued = ""
        """Lines that ended with a backslash: the prompt goes on."""

    @property
    def follower(self) -> Follower:
        assert self._follower is not None
        return self._follower

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
        how = " Type a prompt and Enter; /help says what else there is." if self._reader.is_person else ""
        self.say(f"Covey in {self.root}.{how}", "dim")
        self.offer()
        try:
            await self._take_lines()
            if not self._stop.is_set() and not self.is_leaving and not self._reader.is_person:
                await self._until_idle()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)
            self._reader.close()
        if self._is_stuck() and (self._reader.is_person or self._stop.is_set()):
            self.say("The run still waits for an answer: `covey runs` shows what it asks.", "warning")
        if session_id := self.follower.view.current:
            self.say(f"To go on with this session: covey --plain -s {session_id}", "dim")
        if self._stop.is_set():
            return 128 + self._signal
        return int((self.has_failed or self.has_refusal) and not self._reader.is_person)

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
        if not self._reader.is_person:
            await self.loaded()
            await self.follower.until(lambda view: not self._is_busy or self._is_stuck())
            self._ask_next()
        return await self._reader.next()

    async def _watch(self) -> None:
        """Raises what no waiting will change. Puts the prompt back when all has been said."""
        seen = -1
        while True:
            seen = await self.follower.changed(seen)
            await self._report_refusals()
            self._ask_next()
            if not self._is_busy:
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

    def offer(self) -> None:
        """It is the user's turn, or could be: the prompt stands on the last row."""
        if self._reader.is_person:
            if self._reader.is_prompting:
                self.paper.prompt_again(PROMPT + self._reader.typed())
            else:
                self._reader.invite()

    def stepped(self, fed: ViewInput, step: Step) -> None:
        if self._story:
            self.paper.write(self._story.take(fed, step))

    def open(self, session_id: str, *, is_new: bool = False) -> None:
        """Another session is shown from now on; '': a new one, when there is a prompt for it."""
        self._asked = None
        self._story = self._told(is_new=is_new)
        self.follower.open(session_id)

    def _told(self, *, is_new: bool) -> LineStory:
        echoes = not self._reader.is_person
        return LineStory(self.follower.view, self.paper.columns, self.root, time.time, echoes=echoes, is_new=is_new)

    def _ask_next(self) -> None:
        view = self.follower.view
        if self._asked and self._asked[0] not in view.asks.open:
            closed = view.asks.closed.get(self._asked[0])
            if closed and closed.outcome != "closed":
                by = f" by {one_line(closed.by)}" if closed.by else ""
                self.say(f"It is {closed.outcome.replace('_', ' ')}{by}.", "dim")
            self._asked = None
        if self._decided and (decided := view.asks.closed.get(self._decided[0])):
            self.say(self._decided[1].get(decided.outcome, "No answer is needed any more."), "dim")
            self._decided = None
            self.offer()
        # What a run waits for goes before an extension, which nothing waits for.
        for ask_id, ask in sorted(view.asks.open.items(), key=lambda each: each[1].kind == "approval"):
            is_free = self._asked is None or isinstance(self._asked[1], ApprovalChoices)
            if not is_free or ask.is_being_answered or ask_id in self._mentioned:
                continue
            self._bring(ask_id, ask.request)

    def _bring(self, ask_id: str, request: AskRequest) -> None:
        """Ask it, or say where it can be answered."""
        match request:
            case PermissionRequest() | QuestionBatchRequest():
                if request.session_id != self.follower.view.current:
                    self._put_aside(ask_id, "Another session waits for an answer: /sessions shows which.")
                elif isinstance(request, PermissionRequest):
                    self._ask(ask_id, PermissionChoices(request))
                else:
                    self._ask(ask_id, QuestionChoices(request))
            case ApprovalRequest() if self._reader.is_person:
                if self._asked is None:
                    self._ask(ask_id, ApprovalChoices(request))
            case ApprovalRequest(text=str()):
                self._mentioned.add(ask_id)  # the run whose prompt names it fails, and says why
            case ApprovalRequest():
                # A number that was piped in was meant for something else: nobody has read this.
                self._put_aside(ask_id, f"The {request.kind} {one_line(request.name)} needs approval: `covey trust`.")
            case _:
                assert_never(request)

    def _put_aside(self, ask_id: str, why: str) -> None:
        self._mentioned.add(ask_id)
        self.say(why, "warning")

    def _ask(self, ask_id: str, choices: Choices) -> None:
        self._asked, self._asked_at = (ask_id, choices), time.monotonic()
        self.paper.write(choices.lines(self.paper.columns))
        self.offer()

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
            is_command = await commands.run(self, text, self._asked[1] if self._asked else None)
            if is_command or (self._asked and self._answer(text)):
                return
            if text.strip():
                await self.post(text)
            else:
                self.offer()
        except (ServerUnreachable, ApiError) as error:
            self.say(str(error), "warning")

    def _answer(self, text: str) -> bool:
        """Whether the line was for the question."""
        assert self._asked is not None
        ask_id, choices = self._asked
        if self._reader.is_person and time.monotonic() - self._asked_at < QUIET_S:
            if is_answer := is_meant_as_answer(text):
                self._ask(ask_id, choices)
            return is_answer
        understood = choices.hear(text, self.paper.columns)
        match understood:
            case None:
                return False
            case Allowed(action, reason, network, unsandboxed, edits_in):
                self._asked = None
                self._decided = (ask_id, understood.news) if understood.news else self._decided
                if edits_in:
                    self.follower.allow_edits(ask_id, edits_in)
                else:
                    self.follower.answer_permission(ask_id, action, reason, network=network, unsandboxed=unsandboxed)
            case Decided(approve):
                self._asked = None
                self._decide(ask_id, approve)
            case QuestionsAnswered(responses):
                self._asked = None
                self.follower.answer_questions(ask_id, responses)
            case AskedOn(lines):
                self.paper.write(lines)
                self.offer()
            case _:
                assert_never(understood)
        return True

    def _decide(self, ask_id: str, approve: bool | None) -> None:
        if approve is None:
            self._put_aside(ask_id, "Left for later: `covey trust` shows it, and so does the next start.")
            self.offer()
        else:
            self._decided = (ask_id, Decided.news)
            self.follower.answer_approval(ask_id, approve=approve)

    async def post(self, text: str, mode: Mode | None = None) -> None:
        """Send it as a prompt. `mode`: how it goes to a session that works; lines of a pipe wait for their turns."""
        follower = self.follower
        is_new = not follower.view.current
        if not self._is_busy or not self._reader.is_person:
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
        if self._asked:
            self.say("That is sent as a prompt. What was asked still waits for an answer.", "dim")
            self.offer()
