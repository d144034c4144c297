"""What a session has changed, as a page: `/diff`."""

from __future__ import annotations

import pytest

from covey.lines.changes import ROWS_SHOWN, changes_shown
from covey.lines.widths import width
from covey.protocol.changes import ChangedFile, FileDiff, FileTurn, Maker, MissedChanges, SessionChanges
from covey.tui.face.effects import LoadChanges
from covey.tui.face.facts import ChangesLoaded
from tests.demo.transcript import DIFF
from tests.tui.face.desk import SID, Desk


def changed(path: str, diff: str = DIFF, *, label: str = "edit", **facts: object) -> ChangedFile:
    change = FileDiff(status="modified", additions=4, deletions=3, diff=diff, **facts)  # type: ignore[arg-type]
    turn = FileTurn(run_id="r", at=1, change=change, made_by=(Maker(made_by="tool", label=label),), can_undo=True)
    return ChangedFile(path=path, change=change, turns=(turn,))


CHANGES = SessionChanges(
    files=(
        changed("/w/tests/test_feed.py"),
        changed("/w/b.py", label="write"),
        changed("/w/c.bin", "", is_binary=True),
    ),
    missed=(MissedChanges(run_id="r", at=1, label="make", reason="too many files"),),
)


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_each_file_has_its_headline_and_its_diff_at_any_width(columns: int) -> None:
    found = changes_shown(CHANGES, columns, "/w")
    texts = [row.text for row in found.lines]
    assert texts[0] == "3 files changed  +12 −9" and texts[1].startswith("not all could be looked at after")
    assert [texts[row].split()[0] for row in found.files] == ["tests/test_feed.py", "b.py", "c.bin"]
    assert len(found.hunks) == 4 and all(
        "feed" in texts[row] or "11" in texts[row] or "9" in texts[row] for row in found.hunks
    )
    assert all(width(text) <= columns for text in texts)
    assert ("modified, edit" in texts[found.files[0]]) == (columns > 40)


def test_a_page_is_bounded_and_says_so() -> None:
    long = "@@ -0,0 +1,9000 @@\n" + "+line\n" * 9000
    found = changes_shown(SessionChanges(files=(changed("a", long), changed("b"))), 80)
    assert len(found.lines) < ROWS_SHOWN + 10 and "covey diff" in found.lines[-1].text
    assert [found.lines[row].text.split()[0] for row in found.files] == ["a", "b"]
    assert "no file" in changes_shown(SessionChanges(files=()), 80).lines[0].text


def test_diff_shows_it_and_keys_go_from_file_to_file_and_from_change_to_change() -> None:
    desk = Desk(height=16)
    desk.write("/diff")
    desk.keys("enter")
    assert desk.did(LoadChanges) == [LoadChanges(SID)]
    desk.feed(ChangesLoaded(CHANGES))
    assert "3 files changed" in desk.text and "n N files" in desk.text
    desk.keys("n")
    assert "tests/test_feed.py" in desk.screen[2]
    desk.keys("n")
    assert "b.py" in desk.screen[2]
    desk.keys("N")
    assert "tests/test_feed.py" in desk.screen[2]
    desk.keys("]", "]")
    assert "feed = Feed(0)" in desk.screen[2]
    desk.keys("[")
    assert "test_tail" in desk.screen[3]
    desk.keys("escape")
    assert "3 files changed" not in desk.text
