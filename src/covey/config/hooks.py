"""Hooks that files name: the user's own `[hooks]`, a project's, and those that a project keeps for Claude Code.

Nothing is started here. A project's hook is an entry like any other that needs an approval of its very content. Blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from covey.config.approvals import ExtensionEntry
from covey.config.load import MAX_FILE_BYTES
from covey.config.schema import HookCommand, HookGroup
from covey.lifecycle.hook_matching import wrong_matcher
from covey.machine.regular import read_regular
from covey.protocol.hook_events import HOOK_EVENTS, HookEvent, OnFailure

PROJECT_FILES = (".covey/hooks.json", ".claude/settings.json", ".claude/settings.local.json")
"""Files of a project in the form of Claude Code's settings: of those, `hooks` is all that is read."""
MAX_HOOKS = 100
"""Of one file: each of them may run with every call."""
NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class HookEntry:
    """One hook: when it is run, and what it is."""

    event: HookEvent
    entry: ExtensionEntry
    timeout_s: float
    on_failure: OnFailure

    @property
    def name(self) -> str:
        return self.entry.name


@dataclass(frozen=True, slots=True)
class HookFile:
    """The hooks of one file, and what of it cannot be used."""

    hooks: tuple[HookEntry, ...] = ()
    left_out: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Sections that mean something to another program, and nothing here."""


def hooks_of(groups: Mapping[HookEvent, Sequence[HookGroup]], source: Path, *, is_users_own: bool) -> HookFile:
    """The hooks that a section names, in its order."""
    hooks: list[HookEntry] = []
    left_out: list[str] = []
    for event, group, command in _each(groups):
        if wrong := wrong_matcher(group.matcher):
            left_out.append(f"{source}: {event}: the matcher {group.matcher[:80]!r} cannot be used: {wrong}")
        elif len(hooks) >= MAX_HOOKS:
            left_out.append(f"{source}: {event}: there are more than {MAX_HOOKS} hooks in the file")
        elif command.enabled:
            entry = ExtensionEntry(
                "hook",
                _name(event, command, [hook.name for hook in hooks]),
                source,
                is_users_own,
                command=command.command,
                args=command.args,
                variables=command.env,
                matcher=group.matcher,
            )
            hooks.append(HookEntry(event, entry, command.timeout, command.on_failure))
    return HookFile(tuple(hooks), tuple(left_out))


def _each(groups: Mapping[HookEvent, Sequence[HookGroup]]) -> Iterator[tuple[HookEvent, HookGroup, HookCommand]]:
    for event in HOOK_EVENTS:
        for group in groups.get(event, ()):
            for command in group.hooks:
                yield event, group, command


def _name(event: HookEvent, command: HookCommand, taken: Sequence[str]) -> str:
    words = " ".join((command.command, *command.args)).split()
    name = f"{event}: {' '.join(words)}"
    name = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
    return (
        name
        if name not in taken
        else f"{name} ({taken.count(name) + sum(n.startswith(f'{name} (') for n in taken) + 1})"
    )


def hooks_in_project(directory: Path) -> HookFile:
    """The hooks of a project's files for Claude Code. What is not understood is left out, and said."""
    hooks: list[HookEntry] = []
    left_out: list[str] = []
    ignored: list[str] = []
    for name in PROJECT_FILES:
        path = directory / name
        content = read_regular(path, MAX_FILE_BYTES + 1)
        if content is None:
            continue
        try:
            if content.size > MAX_FILE_BYTES:
                raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
            settings = msgspec.json.decode(content.data, type=dict[str, Any])
        except (ValueError, RecursionError) as error:  # what msgspec raises is one as well
            left_out.append(f"{path}: {error}")
            continue
        groups, strange = _understood(settings.get("hooks"), path)
        found = hooks_of(groups, path, is_users_own=False)
        hooks += found.hooks
        left_out += [*strange, *found.left_out]
        ignored += [f"{path}: {key[:40]}" for key in sorted(settings.keys() - {"hooks", "$schema"})]
    return HookFile(tuple(hooks), tuple(left_out), tuple(ignored))


def _understood(raw: Any, path: Path) -> tuple[dict[HookEvent, list[HookGroup]], list[str]]:
    """Of what another program's settings say, what is meant for us too."""
    groups: dict[HookEvent, list[HookGroup]] = {}
    strange: list[str] = []
    for name, listed in raw.items() if isinstance(raw, dict) else ():
        event = next((event for event in HOOK_EVENTS if event == name), None)
        if event is None or not isinstance(listed, list):
            strange.append(f"{path}: {str(name)[:40]}: no such event is known here")
            continue
        for group in listed:
            try:
                groups.setdefault(event, []).append(_group(group))
            except (msgspec.ValidationError, TypeError, ValueError) as error:
                strange.append(f"{path}: {name}: {error}")
    return groups, strange


_TAKEN = ("command", "args", "timeout", "env", "on_failure", "enabled")


def _group(raw: Any) -> HookGroup:
    """Raises if it is none, or has a hook that is no command: `http`, `prompt` and others are not run."""
    if not isinstance(raw, dict):
        raise TypeError("a group of hooks is a table")
    hooks = []
    for hook in raw.get("hooks", ()):
        if not isinstance(hook, dict) or hook.get("type", "command") != "command":
            raise TypeError("only hooks of the type command are run")
        if "if" in hook:
            raise TypeError("a hook with a condition (`if`) is not run")
        hooks.append({name: hook[name] for name in _TAKEN if name in hook})
    return msgspec.convert({"matcher": raw.get("matcher") or "", "hooks": hooks}, HookGroup)
