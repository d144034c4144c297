"""The driver, in a pseudo-terminal, with the smallest face there is (`tests/tui/demo_face.py`)."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.tui.terminal.mode_guard import stty_words
from tests.tui.program import WAIT_S, PtyProgram

DEMO = [sys.executable, "-m", "tests.tui.demo_face"]
ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[PtyProgram]:
    with PtyProgram(DEMO, cwd=ROOT, env=os.environ | {"DEMO_LOG": str(tmp_path / "log")}) as program:
        program.wait_for("ready")
        yield program


def _settle(program: PtyProgram) -> None:
    """Until nothing is written any more: the answers to its questions have come too."""
    program.wait_until(lambda: not program.read(0.2), "it never stops writing")


def _is_restored(program: PtyProgram) -> bool:
    """All modes and the screen are as before, and so is the line discipline."""
    return program.screen.is_as_before and program.attributes() == program.attributes_before


# ── frames ──


def test_row_1_and_2_two_thousand_deltas_are_frames_without_a_clear(demo: PtyProgram) -> None:
    _settle(demo)
    before, frames = demo.screen.counts.bytes, demo.screen.counts.frames
    demo.screen.counts.outside = 0
    demo.type("\x13")
    demo.wait_for("delta 2000")
    counts = demo.screen.counts
    assert counts.clears == 0
    assert counts.outside == 0, "every frame is held together"
    assert counts.frames > frames
    assert (counts.bytes - before) / 2000 < 60


def test_row_2_a_terminal_that_answers_nothing_gets_no_synchronized_output() -> None:
    with PtyProgram(DEMO, cwd=ROOT, answers=False) as program:
        program.wait_for("ready")
        program.type("x")
        program.wait_for("> x")
        assert program.screen.counts.frames == 0


def test_row_7_while_the_window_is_dragged_the_last_size_wins_and_frames_stay_few(demo: PtyProgram) -> None:
    _settle(demo)
    frames = demo.screen.counts.frames
    demo.screen.is_dragged = True
    for step in range(50):
        demo.resize(60 + step % 20, 10 + step % 9)
    demo.resize(71, 13)
    demo.wait_for("71x13")
    demo.screen.is_dragged = False
    _settle(demo)
    assert demo.screen.rows[11] == "─" * 71
    assert demo.screen.counts.frames - frames <= 50, "not one for each signal"


def _wake_ups(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_row_8_while_nothing_happens_nothing_is_written_and_nothing_wakes_up(demo: PtyProgram) -> None:
    demo.type("\x1b")  # whose patience runs out
    demo.wait_for("<escape>")
    _settle(demo)
    bytes_before, wake_ups = demo.screen.counts.bytes, _wake_ups(demo.process.pid)
    assert not demo.read(1.0)
    assert demo.screen.counts.bytes == bytes_before
    assert _wake_ups(demo.process.pid) == wake_ups


def test_a_terminal_that_takes_nothing_stops_neither_the_program_nor_its_newest_frame(tmp_path: Path) -> None:
    """Two thousand frames while nobody reads: the loop goes on, and what is shown then is the last one."""
    os.mkfifo(tmp_path / "log")
    log = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    with PtyProgram(DEMO, cwd=ROOT, env=os.environ | {"DEMO_LOG": str(tmp_path / "log")}) as demo:
        demo.wait_for("ready")
        _settle(demo)
        demo.type("\x13")
        demo.type("\x10")  # taken after all of them: it prints to the log
        assert select.select([log], [], [], WAIT_S)[0], "the loop was stopped"
        assert os.read(log, 100).startswith(b"a library")
        demo.wait_for("delta 2000")
    os.close(log)


# ── input ──


def test_row_17_a_megabyte_is_pasted_at_once(demo: PtyProgram) -> None:
    demo.type(b"\x1b[200~" + b"0123456789abcdef" * 65_536 + b"\x1b[201~")
    demo.wait_for("[pasted 1048576]")
    demo.type("\r")
    demo.wait_for("sent [pasted 1048576]")


def test_row_18_lines_without_marks_are_not_sent(demo: PtyProgram) -> None:
    demo.type("y\r?\rn\r")
    demo.wait_for("> y⏎?⏎n⏎")
    assert "sent" not in demo.screen.text


def test_row_19_keys_that_are_typed_while_it_starts_are_not_lost() -> None:
    with PtyProgram(DEMO, cwd=ROOT) as program:
        program.type("early")
        program.wait_for("> early")


def test_row_22_the_real_cursor_stands_at_the_caret(demo: PtyProgram) -> None:
    demo.type("abc")
    demo.wait_for("> abc")
    _settle(demo)
    assert (demo.screen.row, demo.screen.column) == (23, 5)
    assert "?25" in demo.screen.modes


def test_row_23_late_answers_are_not_typed(demo: PtyProgram) -> None:
    demo.type(b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c\x1bP>|XTerm(1)\x1b\\\x1b_G;OK\x1b\\\x1b[<NaN;NaN;NaNM")
    demo.type("x")
    demo.wait_for("> x")
    assert demo.screen.rows[-1] == "> x"


# ── the way out ──


@pytest.mark.parametrize("way", ["quit", "exception", "SIGTERM", "SIGHUP", "SIGINT", "kill -9"])
def test_row_24_however_it_ends_the_terminal_is_as_before(demo: PtyProgram, way: str) -> None:
    _settle(demo)
    assert not _is_restored(demo)
    assert {"?1049", "?2004", "?1004", "?1002", "?1006"} <= demo.screen.modes
    if way.startswith("SIG"):
        demo.send_signal(getattr(signal, way))
    else:
        demo.type({"quit": "\x03", "exception": "\x05", "kill -9": "\x02"}[way])
    code = demo.finish()
    expected = {"quit": 0, "exception": 1, "SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130, "kill -9": -9}
    assert code == expected[way]
    demo.wait_until(lambda: _is_restored(demo), f"{demo.screen.modes}")
    assert demo.screen.title == ""
    if way == "exception":
        assert "as asked for" in demo.screen.text, "what went wrong is said where it can be read"


def test_row_24_a_second_signal_ends_a_program_that_does_not_listen(demo: PtyProgram) -> None:
    _settle(demo)
    demo.type("\x07")  # a child has the terminal, and waits
    demo.wait_for("in the editor")
    while demo.process.poll() is None:  # two that come at once are one
        demo.send_signal(signal.SIGTERM)
        demo.read(0.05)
    assert demo.finish() == 143
    assert demo.screen.is_as_before


@pytest.mark.skipif(not shutil.which("stty") or sys.platform != "linux", reason="the form is that of Linux")
def test_the_guard_writes_attributes_as_stty_does() -> None:
    ours, theirs = os.openpty()
    try:
        said = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, text=True, check=True)
        assert stty_words(termios.tcgetattr(theirs)) == said.stdout.strip()
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs job control")
def test_row_25_ctrl_z_and_fg() -> None:
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with PtyProgram(shell, cwd=ROOT, env=os.environ | {"PS1": "$ ", "HISTFILE": ""}) as program:
        program.wait_for("$")
        program.type(f"{sys.executable} -m tests.tui.demo_face\r")
        program.wait_for("ready")
        program.type("draft")
        program.wait_for("> draft")
        _settle(program)
        program.type("\x1a")
        program.wait_for("Stopped")
        assert not program.screen.modes & {"?1049", "?1002", "?1004"}
        program.type("echo wor''king\r")
        program.wait_for("\nworking")
        program.type("fg\r")
        program.wait_for("> draft")
        assert "ready" in program.screen.rows[0] and program.screen.rows[22] == "─" * 80
        program.type("!\x03")
        program.wait_for("working")
        program.type("exit\r")
        program.finish()
        assert program.screen.keyboard == {False: [], True: []}
        assert not program.screen.modes & {"?1049", "?1002", "?1004"}


def test_row_26_what_is_printed_meanwhile_goes_to_the_log(demo: PtyProgram, tmp_path: Path) -> None:
    demo.type("a\x10b")
    demo.wait_for("> ab")
    assert "library" not in demo.screen.text
    assert (tmp_path / "log").read_text() == "a library says something\nand so does another\n"


def test_a_program_has_the_terminal_to_itself_and_gives_it_back(demo: PtyProgram) -> None:
    demo.type("kept\x07")
    demo.wait_for("in the editor")
    assert _is_restored(demo), "no mode of ours is on meanwhile"
    demo.type("\r")
    demo.wait_for("editor 0")
    assert demo.screen.rows[-1] == "> kept"
