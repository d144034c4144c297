"""Patches: how they are read, where they apply, and that all of one is applied or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, judge, session_rule
from covey.tools import apply_patch, file_set
from covey.tools.base import FileVersion, ToolContext, ToolFailed, ToolOutput
from covey.tools.files import FileReads
from covey.tools.patch import AddFile, DeleteFile, Hunk, UpdateFile, parse_patch
from covey.tools.patch_hunks import apply_hunks
from covey.tools.registry import make_tools

pytestmark = pytest.mark.anyio

CODE = "import a\n\nclass A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def updated(text: str, *lines: str) -> str:
    (operation,) = parse_patch(patch("*** Update File: a", *lines))
    assert isinstance(operation, UpdateFile)
    return apply_hunks(text, operation.hunks, "a")


# ── reading ──


def test_all_that_a_patch_can_say() -> None:
    text = patch(
        *(
            "*** Update File: a b.py",
            "*** Move to: c.py",
            "@@ class A",
            "@@ def f",
            " x",
            "",
            "-y",
            "+z",
            "*** End of File",
        ),
        *("*** Add File: new.py", "+one", "+", "", "*** Delete File: gone.py", ""),
    )
    lines = ((" ", "x"), (" ", ""), ("-", "y"), ("+", "z"))
    assert parse_patch(f"\n{text}\n") == [
        UpdateFile("a b.py", "c.py", (Hunk(("class A", "def f"), lines, at_end=True),)),
        AddFile("new.py", "one\n\n"),
        DeleteFile("gone.py"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("--- a\n+++ b", 'begins with the line "[*][*][*] Begin Patch"'),
        ("*** Begin Patch\n*** Delete File: a", 'ends with the line "[*][*][*] End Patch"'),
        ("*** Begin Patch", "ends with"),
        (patch(), "empty"),
        (patch("x"), "Line 2 of the patch is not valid: 'x' Here a file must begin"),
        (patch("*** Add File: a", "x"), "Line 3 .* Each line of a new file begins with"),
        (patch("*** Delete File: a", "-x"), "Nothing follows a file that is deleted"),
        (patch("*** Update File: a"), "Nothing is changed in it"),
        (patch("*** Update File: a", "@@", " x"), "changes nothing"),
        (patch("*** Update File: a", "@@", "x"), "Line 4 .* starts with a space"),
        (patch("*** Update File: a", "@@", "-x", "*** Remove File: b"), "Line 5"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(ToolFailed, match=error):
        parse_patch(text)


# ── applying ──


def test_a_change_is_found_by_its_lines() -> None:
    assert updated("a\nb\nc\n", "@@", " a", "-b", "+B", " c") == "a\nB\nc\n"
    assert updated("a\nb\nc", " a", "-b", " c") == "a\nc", "without @@ too, and the end of the file stays as it is"
    assert updated("a\nb\nc\nd\n", "@@", "-a", "@@", " c", "+x") == "b\nc\nx\nd\n"


def test_the_line_above_says_which_place_is_meant() -> None:
    after = updated(CODE, "@@ class B", "-        return 1", "+        return 2")
    assert after == CODE[::-1].replace("1 nruter", "2 nruter", 1)[::-1]
    nested = updated(CODE, "@@ class B:", "@@ def f(self):", "-        return 1", "+        return 2")
    assert nested == after
    assert updated("class Bird:\n1\nclass B(A):\n1\n", "@@ class B", "-1") == "class Bird:\n1\nclass B(A):\n"
    assert updated("x\n1\nx\n", "@@ -1,2 +1,2 @@", "-1", "+2") == "x\n2\nx\n", "numbers are passed over"


def test_a_place_that_is_not_unique_or_not_there_is_refused() -> None:
    with pytest.raises(ToolFailed, match="more than once, on lines 5, 9: add more lines"):
        updated(CODE, "@@", "-        return 1", "+        return 2")
    with pytest.raises(ToolFailed, match=r"(?s)its lines are not in a\. Nothing was changed.*     5\t        return 1"):
        updated(CODE, "@@", "-        return 12", "+x")
    with pytest.raises(ToolFailed, match="'class C', is not in a"):
        updated(CODE, "@@ class C", "-        return 1")
    with pytest.raises(ToolFailed, match="Change 2 of 2 of a cannot be made: its lines are not in a after line 9"):
        updated(CODE, "@@ class B:", "-        return 1", "@@", "-import a")
    with pytest.raises(ToolFailed, match="not at the end of the file"):
        updated("a\nb\n", "-a", "*** End of File")


def test_lines_without_old_ones_come_after_the_line_above_or_at_the_end() -> None:
    assert updated("a\nb\n", "@@ a", "+x") == "a\nx\nb\n"
    assert updated("a\nb\n", "+x") == "a\nb\nx\n"
    assert updated("", "+x") == "x\n"


def test_blanks_at_the_ends_of_lines_and_windows_line_ends_stay() -> None:
    assert updated("a  \nb\n", " a", "-b", "+c") == "a  \nc\n"
    assert updated("a\r\nb\r\n", " a", "-b", "+c") == "a\r\nc\r\n"


# ── the tool ──


class Desk:
    """The tools of one session, and short ways to use them."""

    def __init__(self, context: ToolContext) -> None:
        self.tools = make_tools()
        self.context = context

    async def seen(self, name: str, text: str) -> Path:
        path = self.context.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        view = self.tools["view"]
        await view.run(view.decode(f'{{"file_path": "{name}"}}'), self.context)
        return path

    async def patch(self, *lines: str) -> ToolOutput:
        tool = self.tools["apply_patch"]
        return await tool.run(apply_patch.ApplyPatchParams(patch(*lines)), self.context)

    def intents(self, *lines: str) -> list[tuple[str, str]]:
        tool = self.tools["apply_patch"]
        intent = tool.intent(apply_patch.ApplyPatchParams(patch(*lines)), self.context)
        return [(each.tool, each.subject) for each in intent.each]


@pytest.fixture
def desk(context: ToolContext) -> Desk:
    return Desk(context)


EVERYTHING = (
    *("*** Update File: a", "-one", "+1"),
    *("*** Update File: b", "*** Move to: sub/c", "-two", "+2"),
    *("*** Add File: new", "+n", "*** Delete File: d"),
)


async def test_a_patch_over_several_files(desk: Desk, root: Path) -> None:
    a, b, d = [await desk.seen(name, text) for name, text in (("a", "one\n"), ("b", "two\n"), ("d", "four\n"))]
    b.chmod(0o750)
    await desk.seen("b", "two\n")
    output = await desk.patch(*EVERYTHING)
    assert sorted(os.listdir(root)) == ["a", "new", "sub"]
    assert (a.read_text(), (root / "new").read_text(), (root / "sub/c").read_text()) == ("1\n", "n\n", "2\n")
    assert stat.S_IMODE((root / "sub/c").stat().st_mode) == 0o750, "what is moved stays executable"
    assert output.content.startswith("Applied the patch:\n- updated a. Now there is:\n     1\t1\n- added sub/c")
    assert (output.metadata["additions"], output.metadata["removals"]) == (3, 3)
    kept = {file.path.name: (file.before, file.after, file.mode) for file in output.files}
    assert kept["b"] == (b"two\n", None, 0o750) and kept["c"] == (None, b"2\n", 0)
    assert kept["d"][:2] == (b"four\n", None) and d not in [file.path for file in output.files if file.after]
    await desk.patch("*** Update File: sub/c", "-2", "+3")  # what it has written it has seen
    assert (root / "sub/c").read_text() == "3\n"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (("*** Update File: b", "-nothing like it", "+2"), "its lines are not in b"),
        (("*** Update File: unseen", "-x", "+y"), "you have not viewed it"),
        (("*** Delete File: unseen",), "you have not viewed it"),
        (("*** Update File: missing", "-x", "+y"), "missing does not exist"),
        (("*** Add File: b", "+x"), "b exists already"),
        (("*** Update File: b", "*** Move to: unseen", "-two"), "unseen exists already"),
        (("*** Delete File: a",), "a is in the patch twice"),
    ],
)
async def test_all_or_nothing(desk: Desk, root: Path, lines: tuple[str, ...], error: str) -> None:
    a, b = await desk.seen("a", "one\n"), await desk.seen("b", "two\n")
    (root / "unseen").write_text("x\n")
    with pytest.raises(ToolFailed, match=error):
        await desk.patch("*** Update File: a", "-one", "+1", *lines)
    assert (a.read_text(), b.read_text(), sorted(os.listdir(root))) == ("one\n", "two\n", ["a", "b", "unseen"])


async def test_a_disk_that_fails_in_the_middle_leaves_everything_as_it_was(
    desk: Desk, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("a", "one\n"), ("b", "two\n"), ("d", "four\n")):
        await desk.seen(name, text)
    put = file_set._put

    def fails(change: file_set.PlannedChange, reads: FileReads, session_id: str) -> FileVersion:
        if change.name == "d":
            raise OSError("the disk is gone")
        return put(change, reads, session_id)

    monkeypatch.setattr(file_set, "_put", fails)
    with pytest.raises(ToolFailed, match="the disk is gone Nothing was changed"):
        await desk.patch(*EVERYTHING)
    texts = {path.name: path.read_text() for path in root.iterdir() if path.is_file()}
    assert texts == {"a": "one\n", "b": "two\n", "d": "four\n"}


# ── permissions ──


def test_each_file_is_judged_as_edit_and_write_would_be(desk: Desk, root: Path) -> None:
    intents = desk.intents(*EVERYTHING)
    assert [(tool, Path(path).relative_to(root).as_posix()) for tool, path in intents] == [
        *(("edit", "a"), ("edit", "b"), ("write", "sub/c"), ("write", "new"), ("edit", "d")),
    ]


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        (Rules(allow=("edit", "write"), root="/w"), Verdict.ALLOW),
        (Rules(allow=("edit",), root="/w"), Verdict.ASK),
        (Rules(allow=("edit", "write"), deny=("write:new",), root="/w"), Verdict.DENY),
        (Rules(allow=("edit:a", "write:n*"), root="/w"), Verdict.ALLOW),
    ],
)
def test_one_file_that_may_not_be_changed_stops_the_patch(rules: Rules, verdict: Verdict) -> None:
    intent = Intent("edit", "write", "/w/a", others=(Intent("write", "write", "/w/new"),))
    assert judge(intent, rules, frozenset(), skip=False).verdict is verdict
    assert session_rule(intent, Rules(root="/w")) == ("edit:a", "write:new")
    granted = frozenset(each.grant for each in intent.each)
    assert judge(intent, Rules(root="/w"), granted, skip=False).verdict is Verdict.ALLOW
    assert judge(intent, Rules(root="/w"), frozenset([intent.grant]), skip=False).verdict is Verdict.ASK


async def test_outside_of_the_workspace_nothing_is_learned_before_somebody_agrees(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    for name in ("secret", "nothing"):
        params = apply_patch.ApplyPatchParams(patch(f"*** Update File: {tmp_path / name}", "-y", "+z"))
        shown = desk.tools["apply_patch"].preview(params, desk.context)
        assert shown == {"file_path": str(tmp_path / name), "content": params.patch}


def test_seen_files_are_shared_with_the_other_tools() -> None:
    assert "apply_patch" in make_tools() and apply_patch.apply_patch_tool(FileReads()).name == "apply_patch"
