"""The download tool: something from the web as a file of the workspace, in full or not at all."""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from covey.machine.replace import create_new, name_beside
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools import web
from covey.tools.base import (
    FileVersion,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
    built_in,
    is_inside,
    parameters,
    resolve,
)
from covey.tools.files import FileParams, FileReads, FileStamp, exists, name_for, open_regular, printable, version_of
from covey.tools.threads import in_thread

MAX_TIMEOUT_S = 600
SIZE_LIMIT = 100_000_000
"""Bytes of a file, decompressed. For more there is bash, where somebody sees the command."""
KEPT_LIMIT = 1_000_000
"""Bytes of a file that can be brought back by undo."""


class DownloadParams(FileParams, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(description="URL to download, starting with http:// or https://.")]
    timeout_s: Annotated[
        float, msgspec.Meta(gt=0, le=MAX_TIMEOUT_S, description="Timeout in seconds; at most 600.")
    ] = 300


def download_tool(reads: FileReads) -> Tool[DownloadParams]:
    download = _Download(reads)
    return built_in(
        "download",
        Effect.CHANGES_FILES,
        DownloadParams,
        intent=_intent,
        describe=_described,
        preview=download.preview,
        run=download.run,
    )


def _intent(params: DownloadParams, context: ToolContext) -> Intent:
    # Both are part of it: to allow one must not allow the other.
    subject = f"{web.parse(params.url)} -> {_path(params, context)}"
    return Intent("download", "download", printable(subject))


def _described(params: DownloadParams, context: ToolContext) -> str:
    name = name_for(context, _path(params, context))
    return f"Download {web.described(web.parse(params.url))} to {name}"


class _Download:
    """Replaces only what the session has seen."""

    def __init__(self, reads: FileReads) -> None:
        self._reads = reads

    def preview(self, params: DownloadParams, context: ToolContext) -> dict[str, Any]:
        url, path = web.parse(params.url), _path(params, context)
        self._before(path, name_for(context, path), context)
        shown = {"url": str(url), "place": web.place(url), "file_path": printable(str(path))}
        return {**parameters(params, context), **shown}

    async def run(self, params: DownloadParams, context: ToolContext) -> ToolOutput:
        url, path = web.parse(params.url), _path(params, context)
        name = name_for(context, path)
        await in_thread(lambda: self._before(path, name, context))
        temporary = name_beside(path)
        try:
            async with asyncio.timeout(params.timeout_s), web.opened(url) as answer:
                size = await _save(answer, temporary)
            files = await in_thread(lambda: self._put(temporary, path, name, context))
        except TimeoutError:
            raise ToolFailed(f"{url} was not there within {params.timeout_s:g} s. Nothing was written.") from None
        except OSError as error:
            raise ToolFailed(f"{name} cannot be written: {error.strerror}.") from None
        finally:
            await in_thread(lambda: _remove(temporary))
        return ToolOutput(
            f"Downloaded {answer.url} to {name} ({size} bytes, {answer.mime_type or 'of unknown type'}).",
            metadata={"url": answer.url, "file_path": printable(str(path)), "bytes": size},
            files=files,
        )

    def _before(self, path: Path, name: str, context: ToolContext) -> bytes | None:
        """What will be replaced, or its beginning; None if there is no file. Raises ToolFailed if it must not be."""
        if not exists(path, name):
            return None
        with open_regular(path, name) as (file, version):
            self._reads.check(context.session_id, path, version, name)
            return file.read(KEPT_LIMIT + 1)

    def _put(self, temporary: Path, path: Path, name: str, context: ToolContext) -> tuple[FileVersion, ...]:
        """Move the file to its place, which may have changed while it came; gives what undo needs."""
        with self._reads.changing:
            before = self._before(path, name, context)
            if before is not None:
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            with open(temporary, "rb") as file:
                after = file.read(KEPT_LIMIT + 1)
                status = os.fstat(file.fileno())
            os.replace(temporary, path)
            self._reads.record(context.session_id, path, FileStamp(status.st_mtime_ns, status.st_size))
        if max(len(after), len(before or b"")) > KEPT_LIMIT:
            return ()
        return (version_of(path, before, after),)


def _path(params: DownloadParams, context: ToolContext) -> Path:
    path = resolve(context, params.file_path)
    if not is_inside(context, path) or path == context.root:
        # A rule that allows an address must not also allow every place on the disk.
        raise ToolFailed(f"{params.file_path} is not a file inside the workspace. Download to one, then move it.")
    return path


async def _save(answer: web.WebAnswer, temporary: Path) -> int:
    """Write the body to a new file; gives its size."""
    if answer.status >= 400:
        raise ToolFailed(f"{answer.url} answers with status {answer.status} {answer.reason}. Nothing was written.")
    size = answer.length or 0
    if size <= SIZE_LIMIT:
        part = _Part(temporary)
        try:
            size = await _write(answer, part)
        finally:
            await in_thread(part.close)
    if size > SIZE_LIMIT:
        raise ToolFailed(f"{answer.url} is larger than {SIZE_LIMIT // 1_000_000} MB. Nothing was written.")
    return size


async def _write(answer: web.WebAnswer, part: _Part) -> int:
    size = 0
    await in_thread(part.open)
    async with aclosing(answer.pieces()) as pieces:
        async for piece in pieces:
            size += len(piece)
            if size > SIZE_LIMIT:
                break
            await in_thread(partial(part.write, piece))
    return size


class _Part:
    """A new file that is being written. It blocks, and knows what it has opened even if its caller was cancelled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = create_new(self._path)

    def write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _remove(temporary: Path) -> None:
    with suppress(OSError):  # it was moved to its place, or never made
        temporary.unlink()
