"""What the face needs of this machine: an editor, images of the clipboard, files that come along."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from covey.lines.words import size
from covey.tui.face.composer import PromptToken

MOST_BYTES = 10_000_000
"""Of a file that comes along: more than any provider takes of a picture."""
CLIPBOARD_S = 3.0
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}


def editor_command(env: Mapping[str, str]) -> list[str]:
    wanted = env.get("VISUAL") or env.get("EDITOR")
    if wanted:
        return shlex.split(wanted)
    return [next((name for name in ("nano", "vim", "vi") if shutil.which(name)), "vi")]


@contextmanager
def edited_file(text: str) -> Iterator[str]:
    """A file with the text, in a directory for the user's eyes only, until it is read back."""
    with tempfile.TemporaryDirectory(prefix="covey-") as directory:
        path = os.path.join(directory, "prompt.md")
        Path(path).write_text(text, "utf-8")
        yield path


def read_back(path: str) -> str:
    """What the editor left; its last line end is the editor's own."""
    return Path(path).read_text("utf-8", "replace").removesuffix("\n")


def pausing(command: list[str]) -> list[str]:
    """A command whose complaint stays on the screen until it was read."""
    script = '"$@" || { printf "\\nPress enter to go back to Covey. "; read -r _; }'
    return ["sh", "-c", script, "sh", *command]


def read_file(path: str) -> PromptToken | None:
    """A picture or a document that was dropped onto the terminal; None: it is no such file."""
    full = os.path.expanduser(path)
    kind = _TYPES.get(full.rpartition(".")[2].lower())
    with suppress(OSError):
        if kind and os.path.isfile(full) and os.path.getsize(full) <= MOST_BYTES:
            data = Path(full).read_bytes()
            return PromptToken("file", f"{os.path.basename(full)}, {size(len(data))}", full, kind, data)
    return None


def _clipboard_tools(env: Mapping[str, str], platform: str) -> Iterator[list[str]]:
    if platform == "darwin":
        yield ["pngpaste", "-"]
    if env.get("WAYLAND_DISPLAY"):
        yield ["wl-paste", "--no-newline", "--type", "image/png"]
    if env.get("DISPLAY"):
        yield ["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]


async def clipboard_image(env: Mapping[str, str], platform: str) -> tuple[PromptToken | None, str]:
    """The image in the clipboard of this machine, or why there is none."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return None, "over ssh the clipboard of your machine cannot be read: drop the file, or give its path with @"
    tools = [command for command in _clipboard_tools(env, platform) if shutil.which(command[0], path=env.get("PATH"))]
    if not tools:
        return None, "no program here can read an image from the clipboard (wl-paste, xclip, pngpaste)"
    for command in tools:
        data = await _output(command)
        if data.startswith(b"\x89PNG") and len(data) <= MOST_BYTES:
            return PromptToken("file", f"image, {size(len(data))}", "", "image/png", data), ""
    return None, "there is no image in the clipboard"


async def _output(command: list[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(CLIPBOARD_S):
            output, _ = await process.communicate()
            return output
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""


def export_path(title: str, session_id: str) -> str:
    """A new file in the current directory, named after the session."""
    name = re.sub(r"[^\w-]+", "-", title).strip("-")[:60] or session_id
    return os.path.abspath(f"{name}.md")


def write_new(path: str, data: bytes) -> None:
    """Never over a file that is there."""
    with open(path, "xb") as file:
        file.write(data)
