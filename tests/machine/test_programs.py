"""Programs that Covey runs by itself: found outside of the project, and run within bounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.machine.programs import CannotRun, Ran, find_program, run_bounded
from tests.support.fake_keyring import make_program


def run(program: Path, given: bytes = b"", timeout_s: float = 30.0) -> Ran:
    return run_bounded([str(program)], env={"A": "1"}, timeout_s=timeout_s, limit=1000, given=given)


def test_what_a_program_reads_writes_and_how_it_ends(tmp_path: Path) -> None:
    program = tmp_path / "p"
    make_program(
        program,
        "import os, sys\nprint(sys.stdin.read(), os.getcwd(), os.environ.get('A'))\n"
        "print('oh', file=sys.stderr)\nsys.exit(3)",
    )
    assert run(program, b"hello") == (3, b"hello / 1\n", b"oh\n")
    make_program(program, "")
    assert run(program, b"nobody reads this") == (0, b"", b"")


def test_what_it_leaves_behind_is_neither_waited_for_nor_ended(tmp_path: Path) -> None:
    program, pid_file = tmp_path / "p", tmp_path / "pid"
    make_program(
        program,
        "import os, time\nif os.fork():\n    print('done', flush=True)\n    os._exit(0)\n"
        f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)",
    )
    assert run(program).output == b"done\n"
    while not (pid := pid_file.read_text() if pid_file.exists() else ""):
        os.sched_yield()
    os.kill(int(pid), 9)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import time\ntime.sleep(600)", "did not end within"),
        ("while True: print('x' * 100)", "wrote more than 1000 bytes"),
        ("import sys\nwhile True: print('x' * 100, file=sys.stderr)", "wrote more than 1000 bytes"),
        ("import os, time\nos.fork()\ntime.sleep(600)", "did not end within"),
    ],
)
def test_one_that_knows_no_bounds_is_ended(tmp_path: Path, source: str, said: str) -> None:
    make_program(tmp_path / "p", source)
    with pytest.raises(CannotRun, match=said):
        run(tmp_path / "p", timeout_s=0.5 if "sleep" in source else 30.0)


def test_one_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be started: No such file"):
        run(tmp_path / "nothing")
    (tmp_path / "text").write_text("x")
    with pytest.raises(CannotRun, match="cannot be started: Permission denied"):
        run(tmp_path / "text")


def test_a_program_is_found_on_path_and_never_inside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "bin"
    for directory in (inside, outside):
        directory.mkdir()
        make_program(directory / "p", "")
    assert find_program("p", f"{inside}::.:{outside}", inside) == str(outside / "p")
    assert find_program("p", str(inside), inside) is None
    assert find_program(str(outside / "p"), "", inside) == str(outside / "p")
    assert find_program(str(inside / "p"), "", inside) is None
    (outside / "q").symlink_to(inside / "p")
    assert find_program("q", str(outside), inside) is None
    (tmp_path / "other").symlink_to(inside)
    assert find_program("p", str(outside), tmp_path / "other") == str(outside / "p")
    assert find_program("p", str(inside), tmp_path / "other") is None, "the project may be named by a link"
