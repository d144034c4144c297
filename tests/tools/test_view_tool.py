"""The view tool: pages of text, errors that help, and paths that lead where they should not."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from covey.tools import view as view_module
from covey.tools.base import Image, Tool, ToolContext, ToolFailed
from covey.tools.files import FileReads
from covey.tools.view import ViewParams, view_tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def view() -> Tool[ViewParams]:
    return view_tool(FileReads())


async def shown(view: Tool[ViewParams], context: ToolContext, path: str, **page: int) -> str:
    return (await view.run(ViewParams(file_path=path, **page), context)).content


async def test_lines_have_numbers(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / "a.txt").write_bytes("one\r\ntwö\n\nfour".encode())
    assert await shown(view, context, "a.txt") == "     1\tone\n     2\ttwö\n     3\t\n     4\tfour"
    assert await shown(view, context, str(root / "a.txt"), offset=4) == "     4\tfour"


async def test_a_page_says_how_to_go_on(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    first = await shown(view, context, "a.txt", limit=2)
    assert first == "     1\tone\n     2\ttwo\n\n[The file goes on. To see more, view it with offset=3.]"
    assert await shown(view, context, "a.txt", offset=3, limit=2) == "     3\tthree"


async def test_a_page_is_bounded_in_lines_and_in_bytes(
    view: Tool[ViewParams], context: ToolContext, root: Path
) -> None:
    (root / "many").write_text("x\n" * 5000)
    content = await shown(view, context, "many", limit=4000)
    assert content.count("\n") == 2001 and content.endswith("offset=2001.]")
    (root / "wide").write_text(("é" * 1500 + "\n") * 1000)
    assert len((await shown(view, context, "wide")).encode()) < 210 * 1024


@pytest.mark.parametrize("length", [2000, 2001, 8191, 8192, 8193, 16384, 100_000])
async def test_a_long_line_is_cut_and_counts_as_one(
    view: Tool[ViewParams], context: ToolContext, root: Path, length: int
) -> None:
    (root / "a").write_text("x" * length + "\nafter")
    first, second = (await shown(view, context, "a")).split("\n")
    assert first == "     1\t" + "x" * 2000 + (" [... the line goes on]" if length > 2000 else "")
    assert second == "     2\tafter"
    assert await shown(view, context, "a", offset=2) == "     2\tafter"
    (root / "b").write_text("x" * length)
    with pytest.raises(ToolFailed, match="only 1 lines"):
        await shown(view, context, "b", offset=2)


async def test_an_empty_file_and_a_page_after_the_end(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / "empty").touch()
    assert await shown(view, context, "empty") == "empty is empty."
    (root / "short").write_text("one\ntwo\n")
    with pytest.raises(ToolFailed, match="has only 2 lines, so there is no line 3"):
        await shown(view, context, "short", offset=3)


async def test_bytes_that_are_no_text(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9\n")
    assert await shown(view, context, "latin") == "     1\tcaf�"
    (root / "image").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(ToolFailed, match=r"image is binary \(6 bytes\)"):
        await shown(view, context, "image")


async def test_errors_that_help(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "engine.py").touch()
    with pytest.raises(ToolFailed, match=r"src/engin.py does not exist. Did you mean engine.py\?"):
        await shown(view, context, "src/engin.py")
    with pytest.raises(ToolFailed, match=r"does not exist. There is no directory .*/lib either"):
        await shown(view, context, "lib/engine.py")
    with pytest.raises(ToolFailed, match=r"src is a directory. It contains:\n  engine.py"):
        await shown(view, context, "src")
    with pytest.raises(ToolFailed, match=r"src/engine.py/x does not exist"):
        await shown(view, context, "src/engine.py/x")
    with pytest.raises(ToolFailed, match="too long"):
        await shown(view, context, "x" * 300)


async def test_names_that_are_no_text_can_be_shown(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9")).touch()
    with pytest.raises(ToolFailed) as caught:
        await shown(view, context, ".")
    json.dumps(str(caught.value)).encode("utf-8")
    assert "caf?" in str(caught.value)


@pytest.mark.parametrize("path", ["fifo", "/dev/zero", "/dev/tty", "/proc/self/environ", "/sys/kernel/notes", "link"])
async def test_only_regular_files_are_opened(
    view: Tool[ViewParams], context: ToolContext, root: Path, path: str
) -> None:
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("/proc/self/environ")
    with pytest.raises(ToolFailed, match=r"not a regular file|not a file on a disk|does not exist"):
        await shown(view, context, path)


@pytest.mark.parametrize("path", ["loop", "a\0b", "~nobody-by-this-name/x"])
async def test_a_path_that_leads_nowhere(view: Tool[ViewParams], context: ToolContext, root: Path, path: str) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(ToolFailed):
        view.intent(ViewParams(file_path=path), context)
    with pytest.raises(ToolFailed):
        await shown(view, context, path)


async def test_a_huge_file_is_read_in_part_only(
    view: Tool[ViewParams], context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (root / "huge").open("wb") as file:
        file.write(b"first\n" + b"x" * 10_000 + b"\n")
        file.truncate(1024**4)
    began = time.monotonic()
    assert (await shown(view, context, "huge", limit=1)).startswith("     1\tfirst\n")
    monkeypatch.setattr(view_module, "SKIP_BYTES", 1024 * 1024)
    with pytest.raises(ToolFailed, match="too large to look for line 4"):
        await shown(view, context, "huge", offset=4)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("a.txt", True),
        ("sub/../a.txt", True),
        ("missing", True),
        ("inward", True),
        ("../a.txt", False),
        ("/etc/passwd", False),
        ("outward", False),
        ("outward-directory/passwd", False),
        ("~/../x", False),
    ],
)
def test_inside_the_workspace_nobody_is_asked(
    view: Tool[ViewParams], context: ToolContext, root: Path, path: str, inside: bool
) -> None:
    (root / "a.txt").touch()
    (root / "inward").symlink_to("a.txt")
    (root / "outward").symlink_to("/etc/passwd")
    (root / "outward-directory").symlink_to("/etc")
    params = ViewParams(file_path=path)
    intent = view.intent(params, context)
    assert (intent.tool, intent.action, intent.harmless) == ("view", "read", inside)
    assert Path(intent.subject) == (root / Path(path).expanduser()).resolve()
    assert ("(outside the workspace)" in view.describe(params, context)) is not inside
    assert view.preview(params, context)["file_path"] == intent.subject


def test_a_neighbour_whose_name_begins_alike_is_outside(
    view: Tool[ViewParams], context: ToolContext, root: Path
) -> None:
    neighbour = root.with_name(root.name + "-2") / "a"
    assert not view.intent(ViewParams(file_path=str(neighbour)), context).harmless


# ── pictures ──

PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0",
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8 ",
}


@pytest.mark.parametrize("mime_type", PICTURES)
async def test_a_picture_is_shown_to_a_model_that_sees(
    view: Tool[ViewParams], context: ToolContext, root: Path, mime_type: str
) -> None:
    (root / "a.txt").write_bytes(PICTURES[mime_type])  # the content counts, not the name
    output = await view.run(ViewParams(file_path="a.txt"), replace(context, sees_images=True))
    assert output.image == Image(mime_type, PICTURES[mime_type])
    assert output.content == f"a.txt: {mime_type}, {len(PICTURES[mime_type])} bytes."
    assert json.dumps(output.metadata)
    with pytest.raises(ToolFailed, match=rf"a.txt is an image \({mime_type}, .* cannot see images"):
        await view.run(ViewParams(file_path="a.txt"), context)


async def test_a_picture_that_is_too_large(view: Tool[ViewParams], context: ToolContext, root: Path) -> None:
    with (root / "a.png").open("wb") as file:
        file.write(PICTURES["image/png"])
        file.truncate(5 * 1024 * 1024 + 1)
    with pytest.raises(ToolFailed, match=r"an image of more than 5 MB\. Make a smaller copy"):
        await view.run(ViewParams(file_path="a.png"), replace(context, sees_images=True))


async def test_text_that_begins_like_a_picture_is_text(
    view: Tool[ViewParams], context: ToolContext, root: Path
) -> None:
    (root / "a").write_text("RIFF is a format, and GIF88a is none.")
    assert "RIFF is" in (await view.run(ViewParams(file_path="a"), replace(context, sees_images=True))).content


def test_views_may_run_side_by_side(view: Tool[ViewParams]) -> None:
    assert view.parallel
