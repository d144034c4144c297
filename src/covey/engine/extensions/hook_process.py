"""One hook, as a process: it is told what happens on its input, and has its say within its time."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from string import Template

from covey.config.hooks import HookEntry
from covey.lifecycle.hook_trouble import missing_script
from covey.lifecycle.hooks import HookEnd
from covey.machine.programs import find_program
from covey.tools.child import ChildBroken, LiveChild
from covey.tools.processes import LiveProcesses

KEPT_BYTES = 256 * 1024
"""Of what it prints: an answer may hold the whole input of a call. What comes after that is read, and dropped."""
DRAIN_S = 0.2
"""How long output may still arrive after it has exited, while something it left behind holds the pipe (H8)."""


async def run_hook(
    processes: LiveProcesses, hook: HookEntry, told: bytes, *, root: Path, env: Mapping[str, str], tag: str
) -> HookEnd:
    """Run it to its end. When this returns or raises, all that it started has ended."""
    try:
        child = processes.open(_arguments(hook, env, root), cwd=root, env=env, tag=tag)
    except (OSError, ValueError) as error:
        return HookEnd(trouble=f"it cannot be started: {error}")
    printed = bytearray()
    reading = asyncio.ensure_future(_read(child, printed))
    try:
        with suppress(ChildBroken):  # it has ended already, or this is more than anybody can be told
            child.write(told)
        child.finish_input()
        await asyncio.wait({child.exited}, timeout=hook.timeout_s)
        is_in_time = child.exited.done()
        if is_in_time:
            await asyncio.wait({reading}, timeout=DRAIN_S)
    finally:
        reading.cancel()
        await child.end(0.0)
    if not is_in_time:
        return HookEnd(trouble=f"it did not end within {hook.timeout_s:g} s", stderr=child.errors)
    missing = ""
    if child.exit_code == 2:
        missing = missing_script(named_words(hook, env), child.errors, lambda path: (root / path).exists())
    return HookEnd(child.exit_code, printed.decode("utf-8", "replace"), child.errors, missing=missing)


def _arguments(hook: HookEntry, env: Mapping[str, str], root: Path) -> list[str]:
    if hook.entry.args:
        return [os.path.expanduser(hook.entry.command), *hook.entry.args]
    shell = find_program("bash", env.get("PATH", os.defpath), root) or "/bin/sh"
    return [shell, "-c", hook.entry.command]


def named_words(hook: HookEntry, env: Mapping[str, str]) -> list[str]:
    """The words of its command, as a shell would fill them in, as far as they can be told apart."""
    try:
        words = list(hook.entry.args) or shlex.split(hook.entry.command)
    except ValueError:
        words = hook.entry.command.split()
    filled = [Template(word).safe_substitute(env) for word in words]
    return [env["HOME"] + word[1:] if word.startswith("~/") and "HOME" in env else word for word in filled]


async def _read(child: LiveChild, printed: bytearray) -> None:
    while data := await child.read():
        printed += data[: max(0, KEPT_BYTES - len(printed))]
