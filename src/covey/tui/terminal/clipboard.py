"""Copying, with an honest answer: it is only said to be copied if a program that did it has said so."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from covey.tui.terminal import outside

PATIENCE_S = 2.0
"""For a program that copies. Those that stay behind, to hand the text out, do so without us."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    outcome: Literal["copied", "sent", "failed"]
    """`sent`: the terminal was told to, and does not say whether it did."""
    message: str


def tools(env: Mapping[str, str], platform: str) -> Iterator[tuple[str, ...]]:
    """Programs that reach the clipboard of this machine, the likeliest first."""
    if platform == "darwin":
        yield ("pbcopy",)
    if env.get("WAYLAND_DISPLAY"):
        yield ("wl-copy",)
    if env.get("DISPLAY"):
        yield "xclip", "-selection", "clipboard"
        yield "xsel", "--clipboard", "--input"
    if env.get("WSL_DISTRO_NAME"):
        yield ("clip.exe",)
    if env.get("TERMUX_VERSION"):
        yield ("termux-clipboard-set",)


async def copy(text: str, send: Callable[[bytes], None], env: Mapping[str, str], *, knows_osc52: bool) -> CopyResult:
    """`send` writes to the terminal; `knows_osc52`: it has said that it takes what is copied so."""
    tried: list[str] = []
    if not outside.is_remote(env):
        for command in tools(env, sys.platform):
            if not shutil.which(command[0], path=env.get("PATH")):
                continue
            if await _fed(command, text, env):
                return CopyResult("copied", f"copied with {command[0]}")
            tried.append(command[0])
    in_tmux = env.get("TMUX") and await _fed(("tmux", "load-buffer", "-w", "-"), text, env)
    if sequence := outside.clipboard(text, env):
        send(sequence)
        how = "the terminal was asked to copy" if knows_osc52 else "the terminal was asked to copy; it may not know how"
        return CopyResult("sent", f"in tmux's buffer, and {how}" if in_tmux else how)
    if in_tmux:
        return CopyResult("sent", "in tmux's buffer (ctrl+b ]); too long to ask the terminal")
    failed = f"{', '.join(tried)} failed, and it is" if tried else "no program for it was found, and it is"
    return CopyResult("failed", f"not copied: {failed} too long to ask the terminal")


async def _fed(command: tuple[str, ...], text: str, env: Mapping[str, str]) -> bool:
    """Whether the program took the text and says that all is well."""
    none = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=none, stderr=none, env=dict(env), cwd=os.sep
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(PATIENCE_S):
            await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return process.returncode == 0
