"""The terminal UI: how soon it is there, what it costs while nothing happens, and while a lot does.

Beside it, in the same run, whichever of these is installed: `opencode`, `codex`, `gemini`, `posting`, `harlequin` (or
named by BENCH_OPENCODE, BENCH_CODEX, BENCH_GEMINI, BENCH_POSTING, BENCH_HARLEQUIN), and the smallest Textual program
(BENCH_TEXTUAL: a Python that has it). The last three are in Python: what is typed first is seen by turns with ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.processes import COVEY, TOKEN, covey_server, fast_model, scratch
from bench.report import Figure
from bench.rig import Options
from bench.terminal_program import TerminalProgram, found
from bench.wire import TERMINAL, Caller, Stream
from covey.protocol.messages import Finish, FinishPart, Message, Session, Text, TextPart
from covey.store.base import Change, PutMessage, PutSession, PutWorkspace, WorkspaceRow
from covey.store.sqlite import SqliteStore

EMPTY, SHORT, LONG = "0000001", "0000002", "0000003"
"""Sessions: without messages, of 100,000 tokens, and of a million."""
IN_PYTHON = ("posting", "harlequin", "the smallest Textual program")
MESSAGES, MANY_MESSAGES = 302, 3020
END = "the last word of this session"
ANSWER = (
    "## What was wrong\n\nThe feed **reads the clock twice**, so the test of `tail` fails now and then. I pass it:\n\n"
    "```python\ndef tail(feed, clock):\n    now = clock()  # once\n"
    "    return [event for event in feed if event.at > now - 60]\n```\n\n- `src/feed/feed.py`: takes a clock\n"
    "- `tests/test_feed.py`: gives it one that stands still\n\n| file | lines |\n|---|---|\n| feed.py | +4 -2 |\n\n"
    + "It is a small change, and nothing else calls it with the old arguments. "
    * 10
)
"""Some 1,300 characters: with 302 of them a session has 100,000 tokens."""
TURNS = """
import atexit, selectors, sys, time
left, turns = time.thread_time(), []
select = selectors.EpollSelector.select
def timed(self, timeout=None):
    global left
    turns.append(time.thread_time() - left)
    try:
        return select(self, timeout)
    finally:
        left = time.thread_time()
selectors.EpollSelector.select = timed
place, asked = sys.argv[1], sys.argv[2:]
def say():
    late = sorted(turns[20:]) or [0.0]
    open(place, "w").write(f"{late[-1]} {late[int(len(late) * 0.99)]}")
atexit.register(say)
sys.argv = ["covey", *asked]
from covey.cli.entry import main
sys.exit(main())
"""
"""Covey, with the CPU that each turn of its loop takes: on a busy machine the time tells of others."""
FIRST = """
import os, sys, time
place, asked = sys.argv[1], sys.argv[2:]
def first_frame(*size):
    open(place, "w").write(str(time.process_time()))
    os._exit(0)
import covey.tui.start
covey.tui.start.first_frame = first_frame
sys.argv = ["covey", *asked]
from covey.cli.entry import main
main()
"""
"""Covey until it draws, and the CPU that this took."""
TEXTUAL = """
from textual.app import App
from textual.widgets import Static, TextArea
class Smallest(App):
    def compose(self):
        yield Static("ready")
        yield TextArea()
    def on_mount(self):
        self.query_one(TextArea).cursor_blink = False
        self.query_one(TextArea).focus()
Smallest().run()
"""


def measure(options: Options) -> Iterator[Figure]:
    times = options.size(7, 3)
    with scratch() as place, fast_model(place) as model:
        _fill(place)
        with covey_server(place, model.line.strip(), options.server) as server:
            face = _Face(place, server.port)
            yield from _starts(face, options.size(15, 5))
            yield from _idle(face, options.size(20, 5))
            yield from _opening(face, times)
            yield from _streams(face, options)
            yield from _peers(face, place, options)


class _Face:
    """`covey` at a terminal, for a server and a workspace."""

    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        self.workspace = place / "workspace"
        self._env = os.environ | {"COVEY_TOKEN": TOKEN, "XDG_STATE_HOME": str(place / "state")}
        self._where = ["--host", f"tcp://127.0.0.1:{port}", "--cwd", str(self.workspace)]
        self.port = port

    @contextlib.contextmanager
    def caller(self) -> Iterator[tuple[Caller, str]]:
        """A connection, and the path of the workspace on it; one that waits for long is closed by the server."""
        caller = Caller(self.port)
        body = {"path": str(self.workspace), "client_id": "00000000-0000-4000-8000-000000000001"}
        yield caller, f"/v1/workspaces/{caller.call('POST', '/v1/workspaces', body)['id']}"
        caller.close()

    def first_cpu_s(self) -> float:
        """CPU until the first frame is made."""
        place = self.place / "first"
        command = [sys.executable, "-c", FIRST, str(place), *self._where]
        with TerminalProgram(command, cwd=self.workspace, env=self._env) as program:
            program.popen.wait(60)
        return float(place.read_text())

    def open(
        self, session_id: str, *, typed: bytes = b"", turns: Path | None = None, echoes: bool = True
    ) -> TerminalProgram:
        before = [sys.executable, "-c", TURNS, str(turns)] if turns else COVEY
        command = [*before, *self._where, "-s", session_id]
        return TerminalProgram(command, cwd=self.workspace, env=self._env, typed=typed, echoes=echoes)


def _import_asyncio() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio"], check=True)
    return time.perf_counter() - began


def _import_asyncio_cpu() -> float:
    said = subprocess.run(
        [sys.executable, "-c", "import asyncio, time; print(time.process_time())"], check=True, capture_output=True
    )
    return float(said.stdout)


def _starts(face: _Face, times: int) -> Iterator[Figure]:
    """By turns with the yardstick, so that what else the machine does meets all of them."""
    yardstick, first, echo = [], [], []
    bare_cpu, own_cpu = [], []
    for _ in range(times):
        bare_cpu.append(_import_asyncio_cpu())
        own_cpu.append(face.first_cpu_s())
        yardstick.append(_import_asyncio())
        with face.open(EMPTY) as program:
            first.append(program.until(_is_drawn, "the first frame", on_own_screen=True))
        with face.open(EMPTY, typed=b"zqzq") as program:
            typed = program.until(lambda text: b"zqzq" in text, "what was typed before", on_own_screen=True)
            echo.append(typed)
    least = min(yardstick)
    yield Figure("python -c 'import asyncio'", least * 1e3, "ms", note=f"the yardstick; best of {times}")
    for name, took in (("the first frame", first), ("a frame with the keys typed before it", echo)):
        target = 2.0 if took is first else None
        yield Figure(f"start to {name}", min(took) / least, "x", target, note=f"{min(took) * 1e3:.0f} ms")
    cpu_note = f"{min(own_cpu) * 1e3:.0f} ms beside {min(bare_cpu) * 1e3:.0f}"
    yield Figure(
        "CPU to the first frame, beside importing asyncio", min(own_cpu) / min(bare_cpu), "x", 2, note=cpu_note
    )
    with face.open(EMPTY) as program:
        program.until(_is_drawn, "the first frame")
        program.settle()
        echoes = [program.echo_s(b"k") for _ in range(20)]
    yield Figure("key -> echo, nothing else going on", statistics.median(echoes) * 1e3, "ms", 50)


def _is_drawn(text: bytes) -> bool:
    return "─".encode() in text


def _idle(face: _Face, seconds: int) -> Iterator[Figure]:
    with face.open(EMPTY) as program:
        program.until(_is_drawn, "the first frame")
        program.settle(2.0)
        cpu, bytes_before, wake_ups = program.cpu_s(), program.byte_count, program.wake_ups()
        program.read_for(seconds)
        yield Figure("idle: share of a core", (program.cpu_s() - cpu) / seconds * 100, "%", 0.2)
        yield Figure("idle: bytes written", program.byte_count - bytes_before, "B", note=f"in {seconds} s")
        yield Figure("idle: wake-ups", (program.wake_ups() - wake_ups) / seconds, "1/s")


def _opening(face: _Face, times: int) -> Iterator[Figure]:
    empty = 0.0
    for session_id, name, most_mb in (
        (EMPTY, "nothing", 60),
        (SHORT, "100,000 tokens", 80),
        (LONG, "1,000,000 tokens", 150),
    ):
        costs, walls = [], []
        memory = 0.0
        for _ in range(times):
            with face.open(session_id) as program:
                shown = END.encode() if session_id != EMPTY else "─".encode()
                walls.append(program.until(lambda text, shown=shown: shown in text, "the end"))  # type: ignore[misc]
                program.settle()
                costs.append(program.cpu_s())
                memory = program.memory_mb()
        cost, wall = min(costs), min(walls)
        empty = empty or cost
        yield Figure(f"memory with {name}", memory, "MB", most_mb, note="with its guard process")
        if session_id != EMPTY:
            yield Figure(
                f"CPU of opening {name}", max(cost - empty, 0.0), "s", 0.3, note=f"end shown after {wall * 1e3:.0f} ms"
            )


def _streams(face: _Face, options: Options) -> Iterator[Figure]:
    seconds = options.size(10, 4)
    for rate in (50, 500, 5000):
        with face.caller() as (caller, workspace):
            yield from _streamed(face, caller, workspace, rate, seconds)


def _streamed(face: _Face, caller: Caller, workspace: str, rate: int, seconds: int) -> Iterator[Figure]:
    session_id = str(caller.call("POST", f"{workspace}/sessions", {"title": "x"})["id"])
    turns = face.place / f"turns-{rate}"
    with face.open(session_id, turns=turns) as program:
        program.until(_is_drawn, "the first frame")
        program.settle()
        stream = Stream(face.port, workspace.rpartition("/")[2], session_id)
        cpu, bytes_before, began = program.cpu_s(), program.byte_count, time.perf_counter()
        prompt = f"@bench chunks={rate * seconds} gap={1 / rate}@"
        caller.call("POST", f"{workspace}/agent", {"session_id": session_id, "prompt": prompt})
        with _draining(program):
            stream.until(TERMINAL)
        took = time.perf_counter() - began
        stream.close()
        program.settle(0.3)
        share = (program.cpu_s() - cpu) / took
        written = (program.byte_count - bytes_before) / (rate * seconds)
        program.type(b"\x04")
        program.read_for(1.0)
    longest, p99 = (float(part) * 1e3 for part in turns.read_text().split())
    real = f"{rate * seconds / took:.0f} deltas/s came"
    yield Figure(f"{rate} deltas/s: share of a core", share * 100, "%", note=real)
    yield Figure(f"{rate} deltas/s: bytes for each delta", written, "B")
    target = {500: 25.0, 5000: 50.0}.get(rate)
    yield Figure(
        f"{rate} deltas/s: turn of the loop, CPU, p99", p99, "ms", target, note=f"the longest of all {longest:.1f} ms"
    )


@contextlib.contextmanager
def _draining(program: TerminalProgram) -> Iterator[None]:
    """A terminal reads all the time."""
    import threading

    done = threading.Event()

    def drain() -> None:
        while not done.is_set():
            program.read(0.05)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# ── others ──


def _peers(face: _Face, place: Path, options: Options) -> Iterator[Figure]:
    textual = os.environ.get("BENCH_TEXTUAL", "")
    known: list[tuple[str, Sequence[str]]] = [
        ("posting", [found("posting", "BENCH_POSTING")]),
        ("harlequin", [found("harlequin", "BENCH_HARLEQUIN")]),
        ("opencode", [found("opencode", "BENCH_OPENCODE")]),
        ("codex", [found("codex", "BENCH_CODEX")]),
        ("gemini", [found("gemini", "BENCH_GEMINI")]),
        ("the smallest Textual program", [textual, "-c", TEXTUAL] if textual else [""]),
    ]
    home = place / "home"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "CI": "", "LC_ALL": "C.UTF-8"}
    others = {name: command for name, command in known if command[0] and name in IN_PYTHON}
    yield from _first_echoes(face, others, env, options.size(7, 3))
    for name, command in known:
        if command[0]:
            yield from _peer(name, command, env, place / "workspace", options)
    _end_left(home)


def _first_echoes(
    face: _Face, others: Mapping[str, Sequence[str]], env: dict[str, str], times: int
) -> Iterator[Figure]:
    """From the start to the first key that is seen, of ours and of others in Python, by turns."""
    took: dict[str, list[float]] = {name: [] for name in ("Covey", *others)}
    for _ in range(times):
        with face.open(EMPTY, echoes=False) as program:
            took["Covey"].append(program.first_echo_s())
        for name, command in others.items():
            try:
                with TerminalProgram(command, cwd=face.workspace, env=env, echoes=False) as program:
                    took[name].append(program.first_echo_s())
            except RuntimeError as error:
                print(f"  {name}: {error}"[:200])
    best = {name: min(values) for name, values in took.items() if values}
    yield Figure("start to the first key that is seen", best.pop("Covey") * 1e3, "ms", note=f"best of {times}")
    for name, seconds in best.items():
        yield Figure(f"the same, beside {name}", min(took["Covey"]) / seconds, "x", 0.5, note=f"{seconds * 1e3:.0f} ms")


def _end_left(home: Path) -> None:
    """Some leave processes of their own behind, which live in the home that they were given."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(home).encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGTERM)


def _peer(name: str, command: Sequence[str], env: dict[str, str], cwd: Path, options: Options) -> Iterator[Figure]:
    """To the first words on the screen, whatever they are; then what it costs to wait."""
    seconds, times = options.size(20, 5), options.size(5, 2)
    starts, yardstick = [], []
    idle, written, memory = 0.0, 0, 0.0
    try:
        for number in range(times):
            yardstick.append(_import_asyncio())
            with TerminalProgram(command, cwd=cwd, env=env) as program:
                starts.append(program.until(lambda text: len(text.split()) > 2 or b"ready" in text, "anything"))
                if number == times - 1:
                    program.read_for(seconds / 2)  # some load things in the background first
                    cpu, bytes_before, memory = program.cpu_s(), program.byte_count, program.memory_mb()
                    program.read_for(seconds)
                    idle, written = (program.cpu_s() - cpu) / seconds, program.byte_count - bytes_before
    except RuntimeError as error:
        print(f"  {name}: {error}"[:200])
        return
    yield Figure(
        f"{name}: start to the first words", min(starts) / min(yardstick), "x", note=f"{min(starts) * 1e3:.0f} ms"
    )
    yield Figure(f"{name}: memory", memory, "MB", note="with its children")
    yield Figure(f"{name}: idle, share of a core", idle * 100, "%", note=f"{written} bytes in {seconds} s")


# ── the store ──


def _fill(place: Path) -> None:
    (place / "workspace").mkdir()
    (place / "data").mkdir(mode=0o700)
    store = SqliteStore(place / "data" / "covey.db")
    row = WorkspaceRow("w", str((place / "workspace").resolve()), 1, 1)
    store.commit([Change("w", (PutWorkspace(row), *(PutSession(_session(each)) for each in (EMPTY, SHORT, LONG))))])
    for session_id, count, first in ((SHORT, MESSAGES, 100_000), (LONG, MANY_MESSAGES, 200_000)):
        messages = [_message(session_id, first, number, is_last=number == count - 1) for number in range(count)]
        for at in range(0, count, 500):
            store.commit([Change("w", tuple(PutMessage(each) for each in messages[at : at + 500]))])
    store.close()


def _session(session_id: str) -> Session:
    return Session(
        id=session_id,
        parent_session_id="",
        title=f"session {session_id}",
        message_count=0,
        prompt_tokens=0,
        completion_tokens=0,
        summary_message_id="",
        cost=0.0,
        created_at=1,
        updated_at=1,
        is_busy=False,
        attached_clients=0,
    )


def _message(session_id: str, first: int, number: int, *, is_last: bool) -> Message:
    text = f"{ANSWER}\n\n{END}" if is_last else ANSWER if number % 2 else f"Question {number}: why does it fail?"
    parts = (TextPart(data=Text(text=text)), FinishPart(data=Finish(reason="end_turn", time=1)))
    return Message(
        id=f"{first + number:07}",
        session_id=session_id,
        role="assistant" if number % 2 else "user",
        parts=parts if number % 2 else parts[:1],
        model="m",
        provider="p",
        created_at=number + 1,
        updated_at=number + 1,
    )
