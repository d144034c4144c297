"""Multiedit: all edits or none, and what every change of a file leaves for whoever wants to undo it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from covey.tools.base import FileVersion, ToolContext, ToolFailed, ToolOutput
from covey.tools.edit import edit_tool
from covey.tools.files import FileReads
from covey.tools.multiedit import multiedit_tool
from covey.tools.view import ViewParams, view_tool
from covey.tools.write import write_tool

pytestmark = pytest.mark.anyio


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def reads() -> FileReads:
    return FileReads()


async def multiedit(reads: FileReads, context: ToolContext, *edits: tuple[str, str]) -> ToolOutput:
    tool = multiedit_tool(reads)
    changes = [{"old_string": old, "new_string": new} for old, new in edits]
    return await tool.run(tool.decode(json.dumps({"file_path": "a", "edits": changes})), context)


async def seen(reads: FileReads, context: ToolContext, content: str) -> Path:
    path = context.root / "a"
    path.write_text(content)
    await view_tool(reads).run(ViewParams(file_path="a"), context)
    return path


async def test_edits_see_what_the_ones_before_have_left(reads: FileReads, context: ToolContext) -> None:
    path = await seen(reads, context, "one\n\ttwo\nthree\n")
    output = await multiedit(reads, context, ("one", "1"), ("1", "uno"), ("    two", "    dos"))
    assert path.read_text() == "uno\n\tdos\nthree\n"
    assert output.content == (
        "Made 3 edits in a:\n1. 1 place (line 1)\n2. 1 place (line 1)\n3. 1 place (line 2) "
        "Whitespace at line ends or starts did not match old_string; the indentation of the file was used."
        "\nNow there is:\n     1\tuno\n     2\t\tdos\n     3\tthree"
    )
    assert output.metadata["diff"] == "--- a\n+++ a\n@@ -1,3 +1,3 @@\n-one\n-\ttwo\n+uno\n+\tdos\n three\n"
    assert output.files == (FileVersion(path, b"one\n\ttwo\nthree\n", b"uno\n\tdos\nthree\n", mode_of(path)),)


async def test_all_or_none(reads: FileReads, context: ToolContext) -> None:
    path = await seen(reads, context, "one\ntwo\ntwo\n")
    with pytest.raises(
        ToolFailed, match=r"^Edit 2 of 3 cannot be made, so none was\. old_string occurs 2 times in a as the edits"
    ):
        await multiedit(reads, context, ("one", "1"), ("two", "2"), ("three", "3"))
    with pytest.raises(ToolFailed, match=r"^Edit 1 of 1 cannot be made, so none was\. old_string is not in a\."):
        await multiedit(reads, context, ("four", "4"))
    with pytest.raises(ToolFailed, match="undo each other"):
        await multiedit(reads, context, ("one", "1"), ("1", "one"))
    assert path.read_text() == "one\ntwo\ntwo\n"


async def test_what_cannot_be_edited(reads: FileReads, context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="a does not exist"):
        await multiedit(reads, context, ("x", "y"))
    (context.root / "a").write_text("x")
    with pytest.raises(ToolFailed, match="not viewed"):
        await multiedit(reads, context, ("x", "y"))
    with pytest.raises(ToolFailed, match="length >= 1"):
        await multiedit(reads, context)
    with pytest.raises(ToolFailed, match="length <= 100"):
        await multiedit(reads, context, *[("x", "y")] * 101)


async def test_the_preview_is_one_diff_and_changes_nothing(reads: FileReads, context: ToolContext) -> None:
    path = await seen(reads, context, "one\ntwo\n")
    tool = multiedit_tool(reads)
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]
    params = tool.decode(json.dumps({"file_path": "a", "edits": edits}))
    assert tool.preview(params, context)["diff"] == "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n"
    intent = tool.intent(params, context)
    assert (intent.tool, intent.action, intent.subject, intent.harmless) == ("multiedit", "write", str(path), False)
    assert path.read_text() == "one\ntwo\n"


async def test_each_change_tells_what_was_there(reads: FileReads, context: ToolContext) -> None:
    write, edit = write_tool(reads), edit_tool(reads)
    path = context.root / "b"
    created = await write.run(write.decode('{"file_path": "b", "content": "one"}'), context)
    assert created.files == (FileVersion(path, None, b"one"),)
    path.write_bytes(b"caf\xe9 one")
    await view_tool(reads).run(ViewParams(file_path="b"), context)
    edited = await edit.run(edit.decode('{"file_path": "b", "old_string": "one", "new_string": ""}'), context)
    assert edited.files == (FileVersion(path, b"caf\xe9 one", b"caf\xe9 ", mode_of(path)),)
    replaced = await write.run(write.decode('{"file_path": "b", "content": ""}'), context)
    assert replaced.files == (FileVersion(path, b"caf\xe9 ", b"", mode_of(path)),)
