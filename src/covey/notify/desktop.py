"""A notice on the desktop of whoever runs the server, by the program that the system has for it. No shell is used."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path

from covey.machine.programs import find_program
from covey.notify.notices import ERROR_CHARS, Notice, one_line

log = logging.getLogger(__name__)

WAIT_S = 5.0
_PASSED = (
    *("HOME", "USER", "LANG", "LC_ALL", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY"),
    *("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
)
"""All that such a program needs of the environment: no key is among it."""
_SCRIPT = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
_HEADLINES = {
    "completed": "Covey is done",
    "failed": "Covey: a run failed",
    "cancelled": "Covey: a run was cancelled",
    "interrupted": "Covey: a run was interrupted",
    "permission": "Covey asks for a permission",
    "question": "Covey has a question",
}


def command(notice: Notice, search_path: str, platform: str = sys.platform) -> list[str] | None:
    """The program and its arguments; None: the system has none. Never one of the project that the notice is about."""
    name = "osascript" if platform == "darwin" else "notify-send"
    program = find_program(name, search_path, Path(notice.path))
    if program is None:
        return None
    headline = _HEADLINES.get(notice.state, "Covey")
    lines = [notice.title or "untitled", one_line(notice.path, ERROR_CHARS), *([notice.error] if notice.error else [])]
    body = "\n".join(lines)
    if platform == "darwin":
        return [program, "-e", _SCRIPT, headline, body]  # the headline is ours, so that it is never an option
    return [program, "--app-name=Covey", "--", headline, escape(body, quote=False)]


async def show(words: list[str], environ: Mapping[str, str]) -> None:
    """Run it, within bounds. It ends with us. Raises OSError if it cannot be started."""
    env = {name: environ[name] for name in _PASSED if name in environ} | {"PATH": os.defpath}
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *words, cwd="/", env=env, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    try:
        async with asyncio.timeout(WAIT_S):
            if code := await process.wait():
                log.warning("%s ended with code %d", words[0], code)
    except TimeoutError:
        log.warning("%s did not end within %g s", words[0], WAIT_S)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
