"""What glob, grep and ls share: where they may look, and the process that looks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from covey.permissions.judge import Intent
from covey.permissions.rules import path_hit
from covey.protocol.effects import Effect
from covey.sandbox.policy import Mode, Policy
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, is_inside, parameters, resolve
from covey.tools.files import may_look, name_for, printable
from covey.tools.processes import Completed, Processes
from covey.tools.threads import in_thread
from covey.tools.walk import PSEUDO

SEARCH_S = 10.0
"""A model waits for it. What takes longer is better asked in a narrower way."""
PATTERN_LIMIT = 1_000
"""Characters of a pattern: far more than anybody writes."""

_TOO_LONG = "The search took too long and was ended early: give a narrower path, or a simpler pattern."
_OWN_S = 8.0
"""After this a search ends by itself, with what it has found."""
_OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes: more than any answer has, as all of them are bounded."""
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What an interpreter may need to start. It gets nothing of the workspace's."""
_START = "import sys; sys.path.append(sys.argv.pop(1)); from covey.tools.search_process import main; main()"
_PACKAGE = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What a search found, and what it says about itself."""

    found: list[Any]
    summary: dict[str, Any]

    def remarks(self) -> list[str]:
        """Sentences about what was not looked at."""
        remarks = []
        if self.summary.get("out_of_time"):
            remarks.append(_TOO_LONG)
        if unreadable := self.summary.get("unreadable"):
            remarks.append(f"{unreadable} directories or files could not be read.")
        if too_large := self.summary.get("too_large"):
            remarks.append(f"{too_large} files of more than 16 MB were left out; use bash for them.")
        return remarks


P = TypeVar("P", bound=msgspec.Struct)

Search = Callable[[ToolContext, Path, dict[str, Any]], Awaitable[SearchAnswer]]
"""Let the process look, at a place, for what a request says. Raises ToolFailed with what it says."""


def searching_tool(
    name: str,
    params: type[P],
    processes: Processes,
    *,
    action: str,
    place: Callable[[P, ToolContext], Path],
    describe: Callable[[P, ToolContext], str],
    run: Callable[[P, ToolContext, Search], Coroutine[Any, Any, ToolOutput]],
    picks_secret: Callable[[P], bool] = lambda given: False,
) -> Tool[P]:
    """A tool that looks at a tree, and changes nothing.

    `place`: the directory or file where a call looks. `picks_secret`: it looks for files that usually hold a secret.
    """

    def intent(given: P, context: ToolContext) -> Intent:
        path = place(given, context)
        return Intent(name, action, str(path), harmless=may_look(context, path) and not picks_secret(given))

    def preview(given: P, context: ToolContext) -> dict[str, Any]:
        return {**parameters(given, context), "path": printable(str(place(given, context)))}

    async def search(context: ToolContext, base: Path, request: dict[str, Any]) -> SearchAnswer:
        return await _search(name, processes, context, base, request)

    return built_in(
        name,
        Effect.LOOKS,
        params,
        intent=intent,
        describe=describe,
        preview=preview,
        run=lambda given, context: run(given, context, search),
        starts_processes=True,
    )


async def _search(
    name: str, processes: Processes, context: ToolContext, base: Path, request: dict[str, Any]
) -> SearchAnswer:
    # What may not be viewed may not be searched either, wherever in the tree it is.
    denied = [rule for rule in context.denied if rule.startswith(("view:", f"{name}:"))]
    if rule := path_hit(denied, "view", str(base), str(context.root)):
        raise ToolFailed(f"A rule of the user forbids looking there: {rule}.")
    own = {"operation": name, "base": str(base), "top": str(context.root), "seconds": _OWN_S, "denied": denied}
    try:
        confined = context.confinement
        policy = confined.helper(reads=(str(base), _PACKAGE))
        completed = await look(
            processes, request | own, context.call_tag, SEARCH_S, _OUTPUT_LIMIT, policy, confined.mode
        )
    except (OSError, ValueError) as error:
        raise ToolFailed(f"The search could not be started: {error}") from None
    answer = _read(completed.output)
    if completed.timed_out:
        answer.summary["out_of_time"] = True
    elif not answer.summary:
        raise ToolFailed(f"The search failed: {printable(completed.output[-500:]).strip() or 'it was ended'}.")
    if answer.summary.get("out_of_time") and not answer.found:
        raise ToolFailed(f"Nothing was found in time. {_TOO_LONG}")
    return answer


async def look(
    processes: Processes,
    request: dict[str, Any],
    tag: str,
    timeout_s: float,
    output_limit: int,
    policy: Policy | None = None,
    sandbox: Mode = Mode.AUTO,
) -> Completed:
    """Let a process of its own look at a tree. Raises OSError or ValueError if it cannot be started."""
    return await processes.run_command(
        [sys.executable, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", _START, _PACKAGE, json.dumps(request)],
        cwd=Path("/"),
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        tag=tag,
        timeout_s=timeout_s,
        output_limit=output_limit,
        policy=policy,
        sandbox=sandbox,
    )


def _read(output: str) -> SearchAnswer:
    found: list[Any] = []
    summary: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except ValueError:  # the line at which it was ended
            continue
        if isinstance(value, dict):
            if "error" in value:
                raise ToolFailed(value["error"])
            summary = value["summary"]
        else:
            found.append(value)
    return SearchAnswer(found, summary)


def place_to_look(context: ToolContext, path: str) -> Path:
    """`path` as the model wrote it; nothing means the workspace. Raises ToolFailed for what is no file on a disk."""
    place = resolve(context, path or ".")
    if any(place.is_relative_to(pseudo) for pseudo in PSEUDO):
        raise ToolFailed(f"{name_for(context, place)} has no files on a disk. If you need it, use bash.")
    return place


async def is_directory(path: Path) -> bool:
    # As `os.path` has it: a name that is too long, or a place that nobody may look into, is none.
    return await in_thread(lambda: os.path.isdir(path))


def name_below(context: ToolContext, base: Path, name: str) -> str:
    """How to call what was found: in the way in which it can be viewed."""
    path = base / name
    return shown_name(str(path.relative_to(context.root) if is_inside(context, path) else path))


def shown_name(name: str) -> str:
    """A name on one line: it may hold line breaks, control characters, and bytes that are no text."""
    return "".join(character if character.isprintable() else "?" for character in name)


def report(headline: str, body: str, remarks: list[str]) -> str:
    return "\n\n".join(part for part in (headline, body, " ".join(remarks)) if part)
