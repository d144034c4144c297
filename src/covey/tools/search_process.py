"""The process in which glob, grep, ls and the file index look at a tree. It only looks, and can be ended at any moment.

A pattern of a model or a workspace's own content can make a search take forever or fill the memory. In a process of
its own that is a timeout, and the server goes on meanwhile: neither its loop nor its interpreter is kept busy.

It gets one request as its argument, and answers with one line of JSON for each thing found, the last one a summary.
Only the standard library is there: it starts in 20 ms.
"""

from __future__ import annotations

import heapq
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from covey.permissions.rules import path_hit
from covey.tools.globs import PathPattern, expand
from covey.tools.line_search import FILE_LIMIT, LINE_CHARACTERS, BadRegex, LineQuery, make_engine
from covey.tools.walk import Found, Walk

FILES_LIMIT = 300_000
"""Files that one grep looks at. More than this is not one project."""
NAMES_LIMIT = 200_000
NAMES_BYTES = 24 * 1024 * 1024
"""Of names that are listed for the index of files: what a server keeps of one workspace."""
NAMES_AT_ONCE = 500
MEMORY_LIMIT = 2 * 1024**3
"""Bytes of address space: enough for all files above, and an end to what grows without one."""

Request = dict[str, Any]
Summary = dict[str, Any]


def tell(value: object) -> None:
    """One line, at once: what was found before the time is over is not lost."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def glob(request: Request) -> Summary:
    """The newest paths that match."""
    matches = _matcher(request["pattern"], anchored=request["anchored"])
    walk = _walk(request)
    count = 0
    newest: list[tuple[int, tuple[str, ...]]] = []
    for found in walk:
        if not found.is_directory and matches(found.parts):
            count += 1
            item = (found.mtime_ns, found.parts)
            if len(newest) < request["limit"]:
                heapq.heappush(newest, item)
            else:
                heapq.heappushpop(newest, item)
    for _, parts in sorted(newest, key=lambda item: (-item[0], item[1])):
        tell("/".join(parts))
    return {**_ending(walk), "count": count}


def grep(request: Request) -> Summary:
    """Lines that match, in the newest files first."""
    query = LineQuery(request["pattern"], request["literal"], request["context"], request["limit"] + 1)
    engine = make_engine(query, request["rg"])
    base, names, summary = _files(request)
    left = request["limit"]
    for index, lines in engine(base, names):
        shown = _first(lines, left, query.context)
        if shown:
            tell([names[index], [(number, is_match, text[:LINE_CHARACTERS]) for number, is_match, text in shown]])
        left -= sum(line[1] for line in shown)
        if len(shown) < len(lines):
            return {**summary, "more": True}
        if time.monotonic() > request["until"]:
            return {**summary, "out_of_time": True}
    return summary


def _first(lines: list[tuple[int, bool, str]], matches: int, context: int) -> list[tuple[int, bool, str]]:
    """As many lines as have so many matches, with the context of the last of them."""
    matching = [number for number, is_match, _ in lines if is_match]
    if len(matching) <= matches:
        return lines
    last = matching[matches - 1] + context if matches else 0
    return [line for line in lines if line[0] <= last and (not line[1] or line[0] <= last - context)]


def _files(request: Request) -> tuple[str, list[str], Summary]:
    """A directory, the names of the files in it that are to be searched, newest first, and what was left out."""
    base = request["base"]
    if not os.path.isdir(base):
        return os.path.dirname(base), [os.path.basename(base)], {"files": 1, "too_large": 0}
    included = _matcher(request["include"], anchored=False) if request["include"] else None
    walk = _walk(request)
    files: list[Found] = []
    too_large = 0
    for found in walk:
        # A name with a line break cannot be distinguished from two in what ripgrep prints.
        if not found.is_regular or "\n" in found.parts[-1] or (included and not included(found.parts)):
            continue
        if found.size > FILE_LIMIT:
            too_large += 1
        elif len(files) == FILES_LIMIT:
            walk.out_of_time = True
            break
        else:
            files.append(found)
    files.sort(key=lambda found: (-found.mtime_ns, found.parts))
    names = ["/".join(found.parts) for found in files]
    return base, names, {**_ending(walk), "files": len(names), "too_large": too_large}


def ls(request: Request) -> Summary:
    """All entries, up to a limit; nearer ones first."""
    walk = _walk(request, request["depth"])
    results: list[Found] = []
    more = False
    for found in walk:
        if len(results) == request["limit"]:
            more = True
            break
        results.append(found)
    for found in results:
        tell([found.parts, _kind(found, request["base"]), found.is_directory and found.parts not in walk.opened])
    return {**_ending(walk), "more": more}


def names(request: Request) -> Summary:
    """The paths of all files, in the order of their length; the nearest ones if there are too many.

    Only names that can be typed: text without control characters.
    """
    walk = _walk(request)
    found: list[str] = []
    size, more = 0, False
    for entry in walk:
        name = "/".join(entry.parts)
        if entry.is_directory or not name.isprintable():
            continue
        size += len(name)
        if len(found) == NAMES_LIMIT or size > NAMES_BYTES:
            more = True
            break
        found.append(name)
    found.sort(key=lambda name: (len(name), name))
    for start in range(0, len(found), NAMES_AT_ONCE):
        tell(found[start : start + NAMES_AT_ONCE])
    return {**_ending(walk), "more": more}


def _kind(found: Found, base: str) -> str:
    """What follows the name in a listing."""
    if found.is_directory:
        return "/"
    if found.is_link:
        with suppress(OSError):
            return f" -> {os.readlink(os.path.join(base, *found.parts))}"
    return "" if found.is_regular else " (not a regular file)"


def _walk(request: Request, depth: int | None = None) -> Walk:
    rules, tools, top = request["denied"], ("view", request["operation"]), request["top"]
    if not rules:
        return Walk(request["base"], top, until=request["until"], depth=depth)

    def hidden(path: str) -> bool:
        return any(path_hit(rules, tool, path, top) for tool in tools)

    return Walk(request["base"], top, until=request["until"], depth=depth, hidden=hidden)


def _ending(walk: Walk) -> Summary:
    return {"unreadable": walk.unreadable, "out_of_time": walk.out_of_time}


def _matcher(pattern: str, *, anchored: bool) -> Callable[[tuple[str, ...]], bool]:
    """As in .gitignore: a pattern without a slash is about names, in whatever directory they are."""
    patterns = expand(pattern)
    globs = [PathPattern(each if anchored or "/" in each else f"**/{each}") for each in patterns]
    return lambda parts: any(each.matches(parts) for each in globs)


def main() -> None:
    request = json.loads(sys.argv[1])
    with suppress(ValueError, OSError):  # a stricter limit holds already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    request["until"] = time.monotonic() + request["seconds"]
    operation = {"glob": glob, "grep": grep, "ls": ls, "names": names}[request["operation"]]
    try:
        tell({"summary": operation(request)})
    except BadRegex as error:
        tell({"error": f"The pattern is not a valid regular expression: {error}. For plain text, set `literal`."})
    except ValueError as error:
        tell({"error": f"The pattern cannot be used: {error}."})
    except MemoryError:
        tell({"error": "The search needs too much memory."})
