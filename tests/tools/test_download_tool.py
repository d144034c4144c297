"""The download tool: a file that is there in full or not at all, and nothing overwritten that was not seen."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools import download as download_module
from covey.tools.base import FileVersion, Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.download import DownloadParams, download_tool
from covey.tools.files import FileReads
from covey.tools.view import ViewParams, view_tool
from covey.tools.web import THIS_MACHINE
from tests.support.machine import until
from tests.tools.web_server import WebServer, answer, endless, redirect, serving, then_silent

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/zip\r\n"


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with serving() as server:
        yield server


@pytest.fixture
def reads() -> FileReads:
    return FileReads()


@pytest.fixture
def tool(reads: FileReads) -> Tool[DownloadParams]:
    return download_tool(reads)


def wanted(server: WebServer, file_path: str = "data/file.zip", timeout_s: float = 20) -> DownloadParams:
    return DownloadParams(file_path=file_path, url=server.url("/file"), timeout_s=timeout_s)


def files_in(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


async def test_a_file_comes_with_missing_directories(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    server.pages["/file"] = redirect("/real")
    server.pages["/real"] = answer(b"PK\0\1", content_type="application/zip")
    output = await tool.run(wanted(server), context)
    path = root / "data" / "file.zip"
    assert path.read_bytes() == b"PK\0\1"
    assert output == ToolOutput(
        f"Downloaded {server.url('/real')} to data/file.zip (4 bytes, application/zip).",
        metadata={"url": server.url("/real"), "file_path": str(path), "bytes": 4},
        files=(FileVersion(path, None, b"PK\0\1"),),
    )
    assert files_in(root) == ["data/file.zip"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


async def test_what_was_compressed_on_the_way_is_not_so_on_disk(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    server.pages["/file"] = answer(gzip.compress(b"hello"), content_encoding="gzip")
    await tool.run(wanted(server), context)
    assert (root / "data" / "file.zip").read_bytes() == b"hello"


async def test_a_large_file_comes_in_full_but_cannot_be_undone(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    content = os.urandom(3_000_000)
    server.pages["/file"] = answer(content)
    output = await tool.run(wanted(server), context)
    assert (root / "data" / "file.zip").read_bytes() == content
    assert output.files == ()


# ── what is there already ──


async def test_a_file_that_was_not_seen_is_not_replaced(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    (root / "mine").write_text("precious")
    for ask in (tool.preview, lambda params, context: asyncio.run(tool.run(params, context))):
        with pytest.raises(ToolFailed, match="have not viewed it"):
            await asyncio.to_thread(ask, wanted(server, "mine"), context)
    assert (root / "mine").read_text() == "precious"
    assert server.requests == []


async def test_a_file_that_was_seen_is_replaced_and_keeps_its_mode(
    server: WebServer, tool: Tool[DownloadParams], reads: FileReads, context: ToolContext, root: Path
) -> None:
    (root / "mine").write_text("old")
    (root / "mine").chmod(0o750)
    await view_tool(reads).run(ViewParams(file_path="mine"), context)
    server.pages["/file"] = answer("new")
    output = await tool.run(wanted(server, "mine"), context)
    assert output.files == (FileVersion(root / "mine", b"old", b"new", 0o750),)
    assert stat.S_IMODE((root / "mine").stat().st_mode) == 0o750
    server.pages["/file"] = answer("newer")
    await tool.run(wanted(server, "mine"), context)
    assert (root / "mine").read_text() == "newer", "what was downloaded counts as seen"
    with pytest.raises(ToolFailed, match="have not viewed it"):
        await tool.run(wanted(server, "mine"), replace(context, session_id="s2"))


async def test_a_file_that_appears_while_the_other_comes_is_not_replaced(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    async def respond(writer: asyncio.StreamWriter) -> None:
        (root / "mine").write_text("precious")
        await answer("new")(writer)

    server.pages["/file"] = respond
    with pytest.raises(ToolFailed, match="have not viewed it"):
        await tool.run(wanted(server, "mine"), context)
    assert files_in(root) == ["mine"]
    assert (root / "mine").read_text() == "precious"


@pytest.mark.parametrize("file_path", ["/etc/passwd", "../x", "link/x", ".", ""])
async def test_nothing_is_written_outside_the_workspace(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path, tmp_path: Path, file_path: str
) -> None:
    (root / "link").symlink_to(tmp_path)
    params = wanted(server, file_path)
    for ask in (tool.intent, tool.describe, tool.preview):
        with pytest.raises(ToolFailed, match="not a file inside the workspace"):
            ask(params, context)
    with pytest.raises(ToolFailed, match="not a file inside the workspace"):
        await tool.run(params, context)


async def test_a_place_that_cannot_be_written_is_told(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    (root / "file").touch()
    (root / "directory").mkdir()
    server.pages["/file"] = answer("new")
    with pytest.raises(ToolFailed, match=r"file/below cannot be (written|read)"):
        await tool.run(wanted(server, "file/below"), context)
    with pytest.raises(ToolFailed, match="directory is a directory"):
        await tool.run(wanted(server, "directory"), context)


# ── what servers do ──


@pytest.mark.parametrize("says_its_size", [True, False])
async def test_what_is_too_large_leaves_nothing(
    server: WebServer,
    tool: Tool[DownloadParams],
    context: ToolContext,
    root: Path,
    says_its_size: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(download_module, "SIZE_LIMIT", 1_000_000)
    length = b"content-length: 100000000\r\n" if says_its_size else b""
    server.pages["/file"] = endless(HEAD + length + b"\r\n", b"x" * 65536)
    with pytest.raises(ToolFailed, match=r"is larger than 1 MB\. Nothing was written"):
        await tool.run(wanted(server), context)
    assert files_in(root) == []
    await until(lambda: server.open == 0)


async def test_a_compressed_file_counts_as_what_it_becomes(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "SIZE_LIMIT", 1_000_000)
    server.pages["/file"] = answer(gzip.compress(bytes(20_000_000)), content_encoding="gzip")
    with pytest.raises(ToolFailed, match="is larger than"):
        await tool.run(wanted(server), context)
    assert files_in(root) == []


async def test_an_error_of_the_server_is_no_file(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    with pytest.raises(ToolFailed, match=r"answers with status 404 Not Found\. Nothing was written"):
        await tool.run(wanted(server), context)
    assert files_in(root) == []


async def test_half_a_file_is_no_file(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"content-length: 100\r\n\r\nhalf")

    server.pages["/file"] = respond
    with pytest.raises(ToolFailed, match="could not be read"):
        await tool.run(wanted(server), context)
    assert files_in(root) == []


async def test_a_server_that_stalls_is_given_up(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    server.pages["/file"] = then_silent(HEAD + b"\r\nbegun")
    with pytest.raises(ToolFailed, match=r"was not there within 0\.3 s\. Nothing was written"):
        await tool.run(wanted(server, timeout_s=0.3), context)
    assert files_in(root) == []


@pytest.mark.parametrize("moment", range(6))
async def test_a_cancel_closes_the_connection_and_leaves_no_file(
    server: WebServer, tool: Tool[DownloadParams], context: ToolContext, root: Path, moment: int
) -> None:
    server.pages["/file"] = endless(HEAD + b"\r\n", b"x" * 1000)
    loading = asyncio.ensure_future(tool.run(wanted(server), context))
    await server.came.wait()
    if moment:
        await until(lambda: files_in(root) != [])
    for _ in range(moment):
        await asyncio.sleep(0)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert files_in(root) == []
    await until(lambda: server.open == 0)


# ── what is asked ──


def test_a_person_is_asked_about_the_url_and_the_file(
    tool: Tool[DownloadParams], context: ToolContext, root: Path
) -> None:
    params = DownloadParams(file_path="a/../b", url="http://localhost/x#y")
    assert tool.intent(params, context) == Intent(
        "download", "download", f"http://localhost/x -> {root / 'b'}", effect=Effect.CHANGES_FILES
    )
    assert tool.describe(params, context) == f"Download http://localhost/x ({THIS_MACHINE}) to b"
    assert tool.preview(params, context) == {
        "url": "http://localhost/x", "place": THIS_MACHINE, "file_path": str(root / "b"), "timeout_s": 300
    }  # fmt: skip


def test_a_model_can_read_what_it_does_and_takes(tool: Tool[DownloadParams]) -> None:
    assert len(tool.description()) > 100
    assert set(tool.schema["required"]) == {"file_path", "url"}
