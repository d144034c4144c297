"""Write and edit: what they change, what they refuse, and that nothing is ever overwritten unseen."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.tools import files
from covey.tools.base import NoHost, ToolContext, ToolFailed, ToolOutput
from covey.tools.edit import EditParams, edit_tool
from covey.tools.file_change import SHOWN_BYTES
from covey.tools.files import FileReads, FileStamp
from covey.tools.view import ViewParams, view_tool
from covey.tools.write import WriteParams, write_tool

pytestmark = pytest.mark.anyio


class Desk:
    """The three file tools of one workspace."""

    def __init__(self, context: ToolContext) -> None:
        reads = FileReads()
        self.context = context
        self.view_tool, self.write_tool, self.edit_tool = view_tool(reads), write_tool(reads), edit_tool(reads)

    async def view(self, path: str) -> str:
        return (await self.view_tool.run(ViewParams(file_path=path), self.context)).content

    async def write(self, path: str, content: str) -> ToolOutput:
        return await self.write_tool.run(WriteParams(file_path=path, content=content), self.context)

    async def edit(self, path: str, old: str, new: str, *, everywhere: bool = False) -> ToolOutput:
        params = EditParams(file_path=path, old_string=old, new_string=new, replace_all=everywhere)
        return await self.edit_tool.run(params, self.context)


@pytest.fixture
def desk(context: ToolContext) -> Iterator[Desk]:
    yield Desk(context)
    assert list(context.root.rglob(".covey-*")) == [], "a temporary file was left behind"


# ── write ──


@pytest.mark.parametrize(("content", "lines"), [("", "0 lines"), ("one\n", "1 line"), ("one\ntwo", "2 lines")])
async def test_what_was_written_is_counted_in_lines(desk: Desk, content: str, lines: str) -> None:
    assert (await desk.write("a", content)).content == f"Created a ({lines})."


async def test_a_new_file_is_created_with_its_directories(desk: Desk, root: Path) -> None:
    output = await desk.write("a/b/c.txt", "one\ntwö\n")
    assert (root / "a/b/c.txt").read_text() == "one\ntwö\n"
    assert output.content == "Created a/b/c.txt (2 lines)."
    status = (root / "a/b/c.txt").stat()
    assert output.metadata == {
        "seen": [[str(root / "a/b/c.txt"), status.st_mtime_ns, status.st_size]],
        "file_path": str(root / "a/b/c.txt"),
        "diff": "--- a/b/c.txt\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+twö\n",
        "additions": 2,
        "removals": 0,
        "old_content": "",
        "new_content": "one\ntwö\n",
    }
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((root / "a/b/c.txt").stat().st_mode) == 0o666 & ~umask


async def test_a_file_that_is_written_as_it_was_is_not_changed(desk: Desk, root: Path) -> None:
    assert len((await desk.write("a", "text\n")).files) == 1
    assert (await desk.write("a", "text\n")).files == ()


async def test_what_was_viewed_may_be_overwritten_and_keeps_its_mode(desk: Desk, root: Path) -> None:
    (root / "run.sh").write_text("old\n")
    (root / "run.sh").chmod(0o750)
    await desk.view("run.sh")
    output = await desk.write("run.sh", "new\n")
    assert (root / "run.sh").read_text() == "new\n"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    assert (output.metadata["additions"], output.metadata["removals"]) == (1, 1)
    await desk.write("run.sh", "newer\n")  # what one wrote oneself is known


async def test_a_link_stays_a_link(desk: Desk, root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    await desk.view("link")
    await desk.write("link", "new")
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "new"


async def test_where_a_file_cannot_be_written(desk: Desk, root: Path) -> None:
    (root / "file").touch()
    (root / "directory").mkdir()
    os.mkfifo(root / "fifo")
    for path, reason in {
        "file/x": "cannot be written",
        "directory": "is a directory",
        "fifo": "not a regular file",
        "/dev/null": "not a regular file",
        "/proc/self/comm": "not a file on a disk",
        "x" * 300: "cannot be read",
    }.items():
        with pytest.raises(ToolFailed, match=reason):
            await desk.write(path, "x")


async def test_a_failed_write_leaves_the_old_file(desk: Desk, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("old")
    await desk.view("a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ToolFailed, match="a cannot be written: No space left on device"):
        await desk.write("a", "new")
    assert (root / "a").read_text() == "old"


# ── nothing is overwritten unseen ──


async def test_a_file_that_was_not_viewed_is_refused(desk: Desk, root: Path) -> None:
    (root / "a").write_text("precious")
    with pytest.raises(ToolFailed, match=r"a exists, and you have not viewed it in this session. View it first"):
        await desk.write("a", "new")
    with pytest.raises(ToolFailed, match="not viewed"):
        await desk.edit("a", "precious", "gone")
    assert (root / "a").read_text() == "precious"


async def test_a_view_counts_for_its_session_only(desk: Desk, root: Path, other_session: ToolContext) -> None:
    (root / "a").write_text("precious")
    await desk.view("a")
    desk.context = other_session
    with pytest.raises(ToolFailed, match="not viewed"):
        await desk.write("a", "new")


@pytest.mark.parametrize("how", ["content", "time", "replaced"])
async def test_a_file_that_changed_since_is_refused(desk: Desk, root: Path, how: str) -> None:
    (root / "a").write_text("viewed")
    await desk.view("a")
    if how == "content":
        (root / "a").write_text("changed by somebody")
    elif how == "time":
        os.utime(root / "a", ns=(1, 1))
    else:
        (root / "b").write_text("another file")
        (root / "b").rename(root / "a")
    with pytest.raises(ToolFailed, match="a has changed since you last viewed it"):
        await desk.edit("a", "e", "E", everywhere=True)
    await desk.view("a")
    await desk.write("a", "fine now")


async def test_edits_of_one_file_at_once_are_all_kept(desk: Desk, root: Path) -> None:
    (root / "a").write_text("".join(f"line {number};\n" for number in range(20)))
    await desk.view("a")
    await asyncio.gather(*(desk.edit("a", f"line {number};", f"LINE {number};") for number in range(20)))
    assert (root / "a").read_text() == "".join(f"LINE {number};\n" for number in range(20))


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SEEN_LIMIT", 2)
    reads = FileReads()
    for name in ("a", "b", "a", "c"):
        reads.record("s1", Path(name), FileStamp(1, 1))
    assert [reads.has_seen("s1", Path(name)) for name in "abc"] == [True, False, True]


# ── edit ──


async def edited(desk: Desk, root: Path, before: str, old: str, new: str, *, everywhere: bool = False) -> str:
    (root / "a").write_bytes(before.encode())
    await desk.view("a")
    await desk.edit("a", old, new, everywhere=everywhere)
    return (root / "a").read_bytes().decode()


async def test_one_place_is_replaced(desk: Desk, root: Path) -> None:
    assert await edited(desk, root, "x = 1\ny = 2\n", "y = 2", "y = 3") == "x = 1\ny = 3\n"
    assert await edited(desk, root, "x = 1\ny = 2\n", "x = 1\n", "") == "y = 2\n"
    assert await edited(desk, root, "a.b\n", ".", "\\1") == "a\\1b\n"


async def test_every_place_is_replaced_if_asked(desk: Desk, root: Path) -> None:
    assert await edited(desk, root, "aaa b aaa", "aaa", "c", everywhere=True) == "c b c"
    output = await desk.edit("a", "c", "d", everywhere=True)
    assert output.content == "Edited a in 2 places (line 1, 1).\nNow there is:\n     1\td b d"


async def test_windows_line_ends_stay(desk: Desk, root: Path) -> None:
    assert await edited(desk, root, "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n") == "x\r\ny\r\nc\r\n"
    assert await edited(desk, root, "a\r\nb\r\n", "b", "b\nc") == "a\r\nb\r\nc\r\n"
    assert await edited(desk, root, "a\nb\r\nc\n", "c", "d\ne") == "a\nb\r\nd\r\ne\n"
    assert await edited(desk, root, "a\nb\nc\r\n", "a\nb", "x\ny") == "x\ny\nc\r\n"


async def test_bytes_that_are_no_text_stay(desk: Desk, root: Path) -> None:
    (root / "a").write_bytes(b"caf\xe9\nold\n")
    await desk.view("a")
    output = await desk.edit("a", "old", "new")
    assert (root / "a").read_bytes() == b"caf\xe9\nnew\n"
    json.dumps(output.metadata, ensure_ascii=False).encode("utf-8")
    with pytest.raises(ToolFailed) as caught:
        await desk.edit("a", "caf!", "x")
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "x", "old_string is empty"),
        ("def f", "def f", "are the same"),
        ("return", "yield", r"occurs 3 times in a, on lines 2, 4, 6\. .*replace_all"),
        (
            "def f():\nreturn 1",
            "x",
            "Ignoring leading and trailing whitespace, it is here:\n     1\tdef f\\(\\):\n     2\t    r",
        ),
        ("def ff():\n    return 1", "x", "most similar place is:\n     1\tdef f\\(\\):\n     2\t    return 1"),
        ("nowhere near anything", "x", "Nothing in it is similar"),
        ("\n\n\n", "x", "old_string is not in a"),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why(desk: Desk, root: Path, old: str, new: str, message: str) -> None:
    text = "def f():\n    return 1\ndef g():\n    return 2\ndef h():\n    return 3\n"
    with pytest.raises(ToolFailed, match=message):
        await edited(desk, root, text, old, new)
    assert (root / "a").read_text() == text


async def test_a_long_piece_that_is_nearly_everywhere_is_searched_quickly(desk: Desk, root: Path) -> None:
    began = time.monotonic()
    with pytest.raises(ToolFailed, match="most similar place"):
        await edited(desk, root, "a\n" * 500_000, "a\n" * 20_000 + "b", "x")
    assert time.monotonic() - began < 60


async def test_an_edit_of_no_file(desk: Desk) -> None:
    with pytest.raises(ToolFailed, match=r"missing does not exist. Use write to create it"):
        await desk.edit("missing", "a", "b")


async def test_many_places_are_counted_but_not_all_listed(desk: Desk, root: Path) -> None:
    with pytest.raises(ToolFailed, match="occurs 50 times in a, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"):
        await edited(desk, root, "x\n" * 50, "x", "y")


async def test_a_file_too_large_to_change(desk: Desk, root: Path) -> None:
    (root / "a").write_text("x\n")
    await desk.view("a")
    with (root / "a").open("ab") as file:
        file.truncate(files.SIZE_LIMIT + 1)
    with pytest.raises(ToolFailed, match="larger than 5 MB"):
        await desk.write("a", "new")


# ── what a person is asked ──


def test_the_intent_names_the_real_file(desk: Desk, root: Path) -> None:
    (root / "link").symlink_to("/etc/hosts")
    intent = desk.write_tool.intent(WriteParams(file_path="link", content=""), desk.context)
    assert (intent.tool, intent.action, intent.subject, intent.harmless) == ("write", "write", "/etc/hosts", False)
    edit = EditParams(file_path="sub/../a", old_string="a", new_string="b")
    assert desk.edit_tool.intent(edit, desk.context).subject == str(root / "a")
    assert desk.edit_tool.describe(edit, desk.context) == "Edit a"
    outside = WriteParams(file_path="../a", content="")
    assert desk.write_tool.describe(outside, desk.context) == f"Write {root.parent}/a (outside the workspace)"


async def test_the_preview_is_the_diff_and_changes_nothing(desk: Desk, root: Path) -> None:
    (root / "a").write_text("one\ntwo\n")
    await desk.view("a")
    params = EditParams(file_path="a", old_string="two", new_string="2")
    assert desk.edit_tool.preview(params, desk.context) == {
        "file_path": str(root / "a"),
        "diff": "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        "additions": 1,
        "removals": 1,
        "old_content": "one\ntwo\n",
        "new_content": "one\n2\n",
    }
    assert (root / "a").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(("size", "is_shown"), [(SHOWN_BYTES, True), (SHOWN_BYTES + 1, False)])
async def test_contents_that_are_too_large_are_not_shown_beside_the_diff(desk: Desk, size: int, is_shown: bool) -> None:
    shown = desk.write_tool.preview(WriteParams(file_path="new", content="x" * size), desk.context)
    assert ("new_content" in shown, "old_content" in shown) == (is_shown, is_shown)
    assert shown["additions"] == 1


async def test_nobody_is_asked_about_a_change_that_cannot_be_made(desk: Desk, root: Path) -> None:
    (root / "a").write_text("one\n")
    with pytest.raises(ToolFailed, match="not viewed"):
        desk.write_tool.preview(WriteParams(file_path="a", content="x"), desk.context)


@pytest.mark.parametrize("name", ["there", "missing"])
def test_a_preview_tells_nothing_about_files_outside(desk: Desk, root: Path, name: str) -> None:
    (root.parent / "there").write_text("secret")
    params = EditParams(file_path=f"../{name}", old_string="secret", new_string="x")
    assert desk.edit_tool.preview(params, desk.context) == {
        "file_path": str(root.parent / name),
        "old_string": "secret",
        "new_string": "x",
        "replace_all": False,
    }


async def test_a_cancelled_write_is_over_when_the_cancel_goes_on(
    desk: Desk, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    replace = os.replace

    def slow(*arguments: Path) -> None:
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(20)
        replace(*arguments)

    monkeypatch.setattr(os, "replace", slow)
    task = loop.create_task(desk.write("a", "written"))
    await started.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (root / "a").read_text() == "written"


async def test_what_the_server_knows_about_a_changed_file_is_told(context: ToolContext) -> None:
    class Knows(NoHost):
        async def diagnostics(self, context: ToolContext, path: Path) -> str:
            return f"{path.name}: 1 error"

    desk = Desk(dataclasses.replace(context, host=Knows()))
    assert (await desk.write("a.py", "x =")).content.endswith("\n\na.py: 1 error")
