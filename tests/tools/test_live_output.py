"""What people see of a call while it runs: at once, in order, whole characters, and never more than they can follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tools import live_output
from covey.tools.base import ToolContext, ToolOutput
from covey.tools.bash import OUTPUT_LIMIT, BashParams, bash_tool
from covey.tools.jobs import Jobs
from covey.tools.live_output import INTERVAL_S, PIECE_BYTES, LiveOutput, OutputSink
from covey.tools.processes import LocalProcesses

pytestmark = pytest.mark.anyio


class Screen:
    """A sink that somebody looks at."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, bytes]] = []
        self.closed = 0
        self.opened: list[bool] = []
        self._news = asyncio.Event()

    def open(self, *, outlives_call: bool = False) -> OutputSink:
        self.opened.append(outlives_call)
        return self

    def publish(self, offset: int, data: bytes) -> None:
        assert not self.closed, "something comes after the end"
        assert data and offset >= self.end
        data.decode()  # whole characters
        self.pieces.append((offset, data))
        self._news.set()

    def close(self) -> None:
        self.closed += 1
        self._news.set()

    @property
    def end(self) -> int:
        return self.pieces[-1][0] + len(self.pieces[-1][1]) if self.pieces else 0

    @property
    def text(self) -> str:
        return b"".join(data for _, data in self.pieces).decode()

    @property
    def dropped(self) -> int:
        return self.end - len(self.text.encode())

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                self._news.clear()
                await self._news.wait()


class Timers:
    """In the place of the loop: timers fire when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], Any]] = []
        self.delays: list[float] = []

    def call_later(self, delay: float, call: Callable[[], Any]) -> Timers:
        self.delays.append(delay)
        self.due.append(call)
        return self

    def cancel(self) -> None:
        self.due.clear()

    def fire(self) -> None:
        due, self.due = self.due, []
        for call in due:
            call()


def shown(screen: Screen) -> tuple[LiveOutput, Timers]:
    live, timers = LiveOutput(screen), Timers()
    live._loop = timers  # type: ignore[assignment] # all that it uses of it
    return live, timers


# ── pieces ──


async def test_the_first_bytes_are_seen_at_once_and_what_follows_together_after_a_pause() -> None:
    screen = Screen()
    live, timers = shown(screen)
    live.add(b"a")
    assert screen.pieces == [(0, b"a")]
    for _ in range(1000):
        live.add(b"bc")
    assert len(screen.pieces) == 1
    timers.fire()
    assert screen.pieces[1:] == [(1, b"bc" * 1000)]
    timers.fire()
    assert timers.due == [], "no timer runs for a call that prints nothing"
    live.add(b"d")
    assert screen.pieces[-1] == (2001, b"d")
    assert timers.delays == [INTERVAL_S] * 3


async def test_the_end_shows_what_still_waits_and_closes_once() -> None:
    screen = Screen()
    live, timers = shown(screen)
    live.add(b"a")
    live.add(b"b\xe2\x82")
    live.close()
    live.close()
    assert (screen.text, screen.closed, timers.due) == ("ab\ufffd", 1, [])
    live.add(b"late")
    assert screen.text == "ab\ufffd"


async def test_a_character_that_comes_in_pieces_is_shown_when_it_is_whole() -> None:
    screen = Screen()
    live, timers = shown(screen)
    for byte in "naïve 👋語\n".encode():
        live.add(bytes([byte]))
        timers.fire()
        timers.fire()
    live.close()
    assert screen.text == "naïve 👋語\n"
    assert screen.dropped == 0


@given(pieces=st.lists(st.tuples(st.binary(max_size=12), st.booleans()), max_size=30))
def test_what_is_shown_is_what_a_result_would_say_however_it_arrives(pieces: list[tuple[bytes, bool]]) -> None:
    async def check() -> None:
        screen = Screen()
        live, timers = shown(screen)
        for data, pause in pieces:
            live.add(data)
            if pause:
                timers.fire()
        live.close()
        assert screen.text == b"".join(data for data, _ in pieces).decode("utf-8", "replace")
        assert screen.dropped == 0

    asyncio.run(check())


@given(pieces=st.lists(st.tuples(st.text("añ語👋", max_size=30), st.booleans()), max_size=30))
def test_of_too_much_the_end_is_shown_and_every_byte_is_accounted_for(pieces: list[tuple[str, bool]]) -> None:
    async def check() -> None:
        screen = Screen()
        live, timers = shown(screen)
        whole = ""
        for text, pause in pieces:
            whole += text
            live.add(text.encode())
            assert len(live._pending) <= 10
            if pause:
                timers.fire()
        live.close()
        assert all(len(data) <= 10 for _, data in screen.pieces)
        assert screen.end == len(whole.encode())
        assert not whole or whole.endswith(screen.pieces[-1][1].decode())
        for offset, data in screen.pieces:
            assert whole.encode()[offset:].startswith(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_output, "PIECE_BYTES", 10)
        asyncio.run(check())


def test_all_that_a_result_shows_of_an_output_fits_into_one_piece() -> None:
    assert OUTPUT_LIMIT <= PIECE_BYTES


# ── commands ──


async def run(context: ToolContext, screen: Screen, command: str, timeout_s: float = 60) -> ToolOutput:
    watched = replace(context, open_sink=screen.open)
    return await bash_tool(LocalProcesses()).run(BashParams(command=command, timeout_s=timeout_s), watched)


def gated(root: Path, rest: str) -> str:
    """A command that prints a line, waits until somebody writes to the fifo `gate`, and goes on."""
    return f"mkfifo gate; printf 'wörd\\n'; read -r word < gate; {rest}"


async def let_go(root: Path) -> None:
    await asyncio.to_thread((root / "gate").write_text, "go\n")


async def test_what_a_command_prints_is_seen_while_it_waits(context: ToolContext, root: Path) -> None:
    screen = Screen()
    running = asyncio.create_task(run(context, screen, gated(root, "echo got $word; exit 3")))
    await screen.until(lambda: screen.text == "wörd\n")
    assert not running.done() and screen.closed == 0
    await let_go(root)
    result = await asyncio.wait_for(running, 30)
    assert screen.text == "wörd\ngot go\n"
    assert result.content == "wörd\ngot go\n\nexit code 3"
    assert (screen.closed, screen.opened) == (1, [False])


@pytest.mark.parametrize("lines", [0, 1, 3000])
async def test_below_the_bounds_all_of_the_result_is_seen(context: ToolContext, lines: int) -> None:
    screen = Screen()
    result = await run(context, screen, f"seq 1 {lines}")
    assert screen.dropped == 0
    assert result.content == f"{screen.text.rstrip() or '(no output)'}\n\nexit code 0"


async def test_of_a_flood_the_end_is_seen_in_pieces_that_are_bounded(context: ToolContext) -> None:
    screen = Screen()
    result = await run(context, screen, "seq 1 1000000")
    assert screen.end == len("".join(f"{number}\n" for number in range(1, 1_000_001)))
    assert screen.text.endswith("999999\n1000000\n")
    assert all(len(data) <= PIECE_BYTES for _, data in screen.pieces)
    assert result.metadata["truncated_bytes"] > 0


async def test_a_command_that_is_ended_has_shown_all_that_its_result_says(context: ToolContext, tmp_path: Path) -> None:
    """The last bytes are taken when it has ended: also where a file is involved."""
    screen = Screen()
    watched = replace(context, spill_dir=tmp_path / "spill")
    command = "trap 'echo last; exit' TERM; echo first; while :; do sleep 0.01; done"
    result = await run(watched, screen, command, timeout_s=0.5)
    output = screen.text.rstrip() or "(no output)"
    assert result.content.startswith(f"{output}\n\nNot finished after 0.5 s")


async def test_a_cancelled_command_ends_its_output(context: ToolContext) -> None:
    screen = Screen()
    running = asyncio.create_task(run(context, screen, "echo on; sleep 60"))
    await screen.until(lambda: screen.text == "on\n")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert screen.closed == 1


# ── jobs ──


async def test_what_a_job_prints_is_seen_after_its_call_until_it_ends(
    context: ToolContext, root: Path, tag: str
) -> None:
    screen, jobs = Screen(), Jobs(LocalProcesses(), tag)
    watched = replace(context, process_tag=f"{tag}-r1", open_sink=screen.open)
    params = BashParams(command=gated(root, "echo got $word"), background=True)
    await bash_tool(LocalProcesses(), jobs).run(params, watched)
    assert screen.opened == [True]
    await screen.until(lambda: screen.text == "wörd\n")
    assert jobs.get("s1", "job-1").take() == "wörd\n", "what the model reads does not depend on it"
    await let_go(root)
    await screen.until(lambda: screen.closed == 1)
    assert screen.text == "wörd\ngot go\n"
    assert jobs.get("s1", "job-1").take() == "got go\n"
    await jobs.close()


async def test_the_output_of_a_job_that_is_ended_or_cannot_start_is_closed(context: ToolContext, tag: str) -> None:
    screen, jobs = Screen(), Jobs(LocalProcesses(), tag)
    job = await jobs.start("s1", "sleep 60", context.root, context.env, live=LiveOutput(screen))
    await job.end()
    assert screen.closed == 1
    other = Screen()
    with pytest.raises(OSError):
        await jobs.start("s1", "true", context.root / "nowhere", context.env, live=LiveOutput(other))
    await other.until(lambda: other.closed == 1)
    await jobs.close()
