"""Outputs in bounded memory, looks at what is new, and files for what is too long."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tools import output
from covey.tools.output import CommandOutput, Output, Spill, Unread


@given(pieces=st.lists(st.binary(max_size=40)), limit=st.integers(0, 50))
def test_output_is_bounded_and_does_not_depend_on_how_it_arrives(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)
    in_pieces, at_once = Output(limit), Output(limit)
    for piece in pieces:
        in_pieces.add(piece)
        assert len(in_pieces._head) + len(in_pieces._tail) <= 2 * limit + 1
    at_once.add(whole)
    assert in_pieces.dropped == at_once.dropped == max(0, len(whole) - limit)
    assert in_pieces.size == len(whole)
    assert in_pieces.text() == at_once.text()
    if len(whole) <= limit:
        assert at_once.text() == whole.decode("utf-8", "replace")


class Memory(Spill):
    """A spill that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"), "x")
        self.kept = b""

    def write(self, data: bytes) -> None:
        self.kept += data


@given(pieces=st.lists(st.tuples(st.binary(max_size=40), st.booleans())), limit=st.integers(0, 50))
def test_all_is_put_aside_once_it_is_too_long_whenever_it_is_written(
    pieces: list[tuple[bytes, bool]], limit: int
) -> None:
    spill = Memory()
    shown, plain = Output(limit, spill), Output(limit)
    for piece, write in pieces:
        shown.add(piece)
        plain.add(piece)
        if write and (work := shown.work()):
            work()
    if work := shown.work():
        work()
    whole = b"".join(piece for piece, _ in pieces)
    assert spill.kept == (whole if len(whole) > limit else b"")
    assert shown.text() == plain.text()


@given(text=st.text(st.characters(exclude_characters="\x1b\r\b", codec="utf-8")), cuts=st.lists(st.integers(0, 400)))
def test_looks_at_what_is_new_never_tear_a_character(text: str, cuts: list[int]) -> None:
    unread, whole, seen = Unread(10_000, lambda data: None), text.encode("utf-8", "replace"), ""
    at = 0
    for cut in sorted(cuts):
        unread.add(whole[at:cut])
        seen += unread.take(last=False)
        at = max(at, cut)
    unread.add(whole[at:])
    assert seen + unread.take(last=True) == whole.decode()
    assert unread.take(last=True) == ""


def test_a_look_may_fall_into_an_escape_sequence() -> None:
    unread = Unread(100, lambda data: None)
    unread.add(b"10%\r20%\x1b[3")
    assert unread.take(last=False) == "20%"
    unread.add(b"1mred\x1b[")
    assert unread.take(last=False) == "red"
    assert unread.take(last=True) == ""


def test_a_command_that_is_handed_over_in_the_middle_of_an_escape_sequence_leaves_none_of_it() -> None:
    printed, heir = CommandOutput(100), Unread(100, lambda data: None)
    printed.add(b"one\x1b]0;ti")
    printed.hand_over(heir)
    printed.add(b"tle\x07two")
    assert (printed.text(), heir.take(last=True)) == ("one", "two")


def test_what_is_cut_out_never_goes_through_an_escape_sequence() -> None:
    printed = CommandOutput(20)
    for _ in range(50):
        printed.add(b"\x1b[1;31mab\x1b[0m")
    assert printed.text() == "ababababab\n[... 80 bytes are left out here ...]\nababababab"


def test_each_look_is_bounded_and_the_next_one_begins_anew() -> None:
    news: list[bytes] = []
    unread = Unread(10, news.append)
    unread.add(b"0123456789abcdef")
    assert unread.take(last=False) == "01234\n[... 6 bytes are left out here ...]\nbcdef"
    unread.add(b"new")
    unread.add(b"")
    assert unread.take(last=False) == "new"
    assert news == [b"0123456789abcdef", b"new"]


def test_what_comes_after_a_hand_over_goes_to_the_heir_alone() -> None:
    output, heir = Output(100), Output(100)
    output.add(b"before ")
    output.hand_over(heir)
    output.add(b"after")
    assert (output.text(), heir.text()) == ("before ", "after")


def test_a_file_is_only_for_its_owner_and_is_made_when_needed(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "a" / "b", "bash-c1")
    assert spill.note() == ""
    spill.close()
    assert not (tmp_path / "a").exists()
    spill.write(b"all")
    spill.close()
    assert spill.path and spill.path.read_bytes() == b"all"
    assert spill.path.name.startswith("bash-c1-")
    assert stat.S_IMODE(spill.path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert spill.note() == f"All of it is in {spill.path}: view it with offset, or search it."


def test_a_file_has_a_bound_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "FILE_LIMIT", 10)
    spill = Spill(tmp_path, "x")
    shown = Output(4, spill)
    for piece in (b"0123", b"4567", b"89ab", b"cdef"):
        shown.add(piece)
        if work := shown.work():
            work()
    spill.close()
    assert spill.path and spill.path.read_bytes() == b"0123456789"
    assert spill.is_full and not spill.is_whole
    assert spill.note().startswith("Its first ")
    assert len(shown._unspilled) == 0, "what will not be written is not held either"


def test_a_disk_that_refuses_costs_the_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spill = Spill(tmp_path / "file" / "below", "x")
    spill.write(b"all")
    spill.write(b"more")
    spill.close()
    assert (spill.path, spill.note(), spill.is_full) == (None, "", True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    spill = Spill(tmp_path, "x")
    spill.write(b"begins")
    assert spill.path and spill._file
    os.dup2(full := os.open("/dev/full", os.O_WRONLY), spill._file.fileno())
    os.close(full)
    spill.close()
    assert spill.path is None
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_files_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "FILES_LIMIT", 3)
    for number in range(5):
        spill = Spill(tmp_path, f"n{number}")
        spill.write(b"x")
        spill.close()
        assert spill.path
        os.utime(spill.path, (number, number))
    assert sorted(path.name[:2] for path in tmp_path.iterdir()) == ["n2", "n3", "n4"]
