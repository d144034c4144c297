"""Results that are too long: cut for the model, whole in a file that only the user can read, and bounded there too."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from covey.tools import spill
from covey.tools.base import ToolContext
from covey.tools.files import FileReads
from covey.tools.spill import bounded
from covey.tools.view import ViewParams, view_tool

LONG = "".join(f"line {number}\n" for number in range(1000))


@pytest.fixture
def spilling(context: ToolContext, tmp_path: Path) -> ToolContext:
    return replace(context, spill_dir=tmp_path / "data" / "spilled")


def kept(context: ToolContext) -> list[Path]:
    assert context.spill_dir is not None
    return sorted(context.spill_dir.iterdir())


def test_what_fits_is_left_alone(spilling: ToolContext) -> None:
    assert bounded("x" * 100, spilling, 100) == "x" * 100
    assert spilling.spill_dir is not None and not spilling.spill_dir.exists()


def test_the_beginning_and_the_end_are_shown_and_all_is_kept(spilling: ToolContext) -> None:
    text = bounded(LONG, spilling, 500)
    (path,) = kept(spilling)
    head, note, tail = text.partition(" characters are left out here. ")
    assert path.read_text() == LONG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert note and f"The whole text is in {path}: view it with offset" in tail
    shown, _, count = head.rpartition("\n[... ")
    end = tail.partition(" ...]\n")[2]
    assert LONG.startswith(shown + "\n") and LONG.endswith("\n" + end)
    assert len(shown) + len(end) + int(count) == len(LONG)
    assert 375 <= len(shown) + len(end) <= 500


def test_lines_without_an_end_are_cut_anywhere(spilling: ToolContext) -> None:
    text = bounded("a" * 1000 + "z" * 1000, spilling, 100)
    assert text.startswith("a" * 50 + "\n[... 1900 ") and text.endswith("...]\n" + "z" * 50)


@pytest.mark.parametrize("call_id", ["../../etc/passwd", "a/b", "", ".", "x" * 500, "\0", "ü\n"])
def test_an_id_from_a_model_leads_nowhere_else(spilling: ToolContext, call_id: str) -> None:
    text = bounded(LONG, replace(spilling, call_id=call_id), 100)
    (path,) = kept(spilling)
    assert str(path) in text and path.name.isascii() and len(path.name) < 100


def test_results_of_one_id_are_kept_apart(spilling: ToolContext) -> None:
    first, second = bounded(LONG, spilling, 100), bounded(LONG + "x", spilling, 100)
    assert first != second and len(kept(spilling)) == 2
    bounded(LONG, spilling, 100)
    assert len(kept(spilling)) == 2


def test_one_file_and_all_files_are_bounded(spilling: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "FILE_LIMIT", 1024 * 1024)
    monkeypatch.setattr(spill, "FILES_LIMIT", 3)
    assert "The first 1 MB are in" in bounded("x" * 2_000_000, spilling, 100)
    (path,) = kept(spilling)
    assert path.stat().st_size == 1024 * 1024
    os.utime(path, (1, 1))
    for number in range(3):
        bounded(LONG + str(number), spilling, 100)
    assert len(kept(spilling)) == 3 and path not in kept(spilling)


def test_without_a_place_it_is_only_cut(context: ToolContext) -> None:
    assert "left out here. Ask for less to see them. ...]" in bounded(LONG, context, 100)


def test_a_full_disk_costs_the_rest_only(spilling: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    text = bounded(LONG, spilling, 100)
    assert text.startswith("line 0\n") and "could not be kept in a file (No space left on device)" in text
    assert kept(spilling) == []


def test_halves_of_characters_are_kept_as_marks(spilling: ToolContext) -> None:
    bounded("\udce9" * 1000, spilling, 100)
    assert kept(spilling)[0].read_text() == "?" * 1000


@pytest.mark.anyio
async def test_what_was_spilled_may_be_viewed_without_asking(spilling: ToolContext) -> None:
    bounded(LONG, spilling, 100)
    (path,) = kept(spilling)
    view = view_tool(FileReads())
    params = ViewParams(file_path=str(path), offset=900)
    assert view.intent(params, spilling).harmless
    assert not view.intent(ViewParams(file_path=f"{path}/../../x"), spilling).harmless
    content = (await view.run(params, spilling)).content
    assert content.startswith("   900\tline 899\n")
    assert bounded(content, spilling, view.result_limit) == content


def test_a_link_out_of_the_spilled_results_is_asked_about(spilling: ToolContext) -> None:
    bounded(LONG, spilling, 100)
    (path,) = kept(spilling)
    path.with_name("link").symlink_to("/etc/passwd")
    assert not view_tool(FileReads()).intent(ViewParams(file_path=str(path.with_name("link"))), spilling).harmless
