"""What a tool call does, in a few words: a formatter for each tool, and a decent one for those not known here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line, visible
from covey.lines.words import counted
from covey.protocol.argument_names import with_own_names
from covey.protocol.effects import RUN_SIDE_BY_SIDE
from covey.protocol.messages import ToolCall

Params = Mapping[str, Any]

BEGINNING = 600
"""Characters of an input that is still being written, in which its first values are looked for."""
_PAIR = re.compile(r'("\w{1,40}")\s*:\s*(?:("(?:[^"\\]|\\.){0,300}"|\d+(?=[,}]))|("(?:[^"\\]|\\.)*)\\n)')
"""A name and its value; of a text that is still being written the lines that are whole."""
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
PATCHED_NAMED = 3
"""Files of a patch that are named."""

LOOKED_AT = 2000
"""Characters of a value: more than any screen is wide."""
VALUE_SHOWN = 60
"""Characters of one value of a tool that is not known here."""


def call_line(call: ToolCall, root: str = "") -> StyledLine:
    """The call on one line. `root` is the directory of the workspace: paths below it are shown from there."""
    params = parameters(call)
    shown = _FORMATS.get(call.name, _unknown)
    return shown(call.name, params, root)


def runs_beside_others(call: ToolCall) -> bool:
    """It does not wait for the calls before it."""
    return call.name in RUN_SIDE_BY_SIDE and parameters(call).get("writes") is not True


def parameters(call: ToolCall) -> Params:
    """What the model gave, as far as it can be read: by our names, also where it used those of another agent."""
    given = decoded(call.input) if call.finished else begun(call.input)
    return with_own_names(given, _FIELDS.get(call.name, ()))


def begun(text: str) -> Params:
    """The first words of an object that is still being written: what they are about is said first, if at all."""
    found = _PAIR.finditer(text, 0, BEGINNING)
    pairs = ",".join(f"{each[1]}:{each[2]}" if each[2] else f'{each[1]}:{each[3]}"' for each in found)
    return decoded(f"{{{pairs}}}")


def file_language(call: ToolCall) -> str:
    """Of the file that a call reads: what its name ends with; '' if it reads none."""
    name = str(parameters(call).get("file_path", "")) if call.name == "view" else ""
    ending = name.rpartition("/")[2].rpartition(".")[2].lower()
    return ending if ending != name and ending.isalnum() else ""


def whole_call(call: ToolCall) -> str:
    """What the model gave that its one line does not show; '' if that shows enough."""
    params = parameters(call)
    if call.name == "bash":
        command = str(params.get("command") or "").strip()
        return command if "\n" in command else ""
    if call.name == "agent":
        return str(params.get("prompt") or "")
    if call.name in _FORMATS:
        return ""
    try:
        return msgspec.json.format(call.input) if params else call.input
    except (msgspec.DecodeError, RecursionError):
        return call.input


def decoded(text: str) -> Params:
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def short_path(path: object, root: str) -> str:
    text = one_line(str(path)[:LOOKED_AT])
    if root and text.startswith(root.rstrip("/") + "/"):
        return text[len(root.rstrip("/")) + 1 :]
    return text


def _text(params: Params, name: str) -> str:
    return one_line(str(params.get(name) or "")[:LOOKED_AT])


def _bash(name: str, params: Params, root: str) -> StyledLine:
    command = str(params.get("command") or "").strip()
    first, *more = command.split("\n") if command else [""]
    where = f"  (in {short_path(params['working_dir'], root)})" if params.get("working_dir") else ""
    rest = f"  … {counted(len(more), 'more line')}" if more else ""
    job = "  (in the background)" if params.get("background") else ""
    return line(Span("$ ", "dim"), Span(one_line(first[:LOOKED_AT]), "tool"), Span(f"{rest}{where}{job}", "dim"))


def _verb(verb: str, field: str, default: str = "") -> Callable[[str, Params, str], StyledLine]:
    """`default`: what the tool takes if it is told nothing; '': a call that names nothing yet is only a verb."""

    def shown(name: str, params: Params, root: str) -> StyledLine:
        path = params.get(field) or default
        return line(Span(f"{verb} ", "tool"), short_path(path, root)) if path else line(Span(verb, "tool"))

    return shown


def _patch(name: str, params: Params, root: str) -> StyledLine:
    """The files of a patch, also where it is not whole or not valid."""
    found = [short_path(each[1].strip(), root) for each in _PATCHED.finditer(str(params.get("patch") or ""))]
    more = f" and {len(found) - PATCHED_NAMED} more" if len(found) > PATCHED_NAMED else ""
    names = ", ".join(found[:PATCHED_NAMED])
    return line(Span("patch ", "tool"), names, Span(more, "dim")) if names else line(Span("patch", "tool"))


def _view(name: str, params: Params, root: str) -> StyledLine:
    first, limit = params.get("offset"), params.get("limit")
    place = ""
    if isinstance(limit, int):
        start = first if isinstance(first, int) else 1
        place = f":{start}-{start + limit - 1}"
    elif isinstance(first, int) and first > 1:
        place = f" from line {first}"
    return line(Span("read ", "tool"), short_path(params.get("file_path", ""), root), Span(place, "dim"))


def _grep(name: str, params: Params, root: str) -> StyledLine:
    # Each blank of it counts.
    pattern = visible(str(params.get("pattern") or "")[:LOOKED_AT]).replace("\t", "\\t")
    return _search("grep", pattern, params, root, _text(params, "include"))


def _glob(name: str, params: Params, root: str) -> StyledLine:
    return _search("find", _text(params, "pattern"), params, root)


def _search(verb: str, pattern: str, params: Params, root: str, only: str = "") -> StyledLine:
    place = f" in {short_path(params['path'], root)}" if params.get("path") else ""
    return line(
        Span(f"{verb} ", "tool"), f'"{pattern}"' if verb == "grep" else pattern, Span(f"{place} {only}".rstrip(), "dim")
    )


def _fetch(name: str, params: Params, root: str) -> StyledLine:
    return line(Span("fetch ", "tool"), Span(_text(params, "url"), "link"))


def _download(name: str, params: Params, root: str) -> StyledLine:
    where = short_path(params.get("file_path", ""), root)
    return line(Span("download ", "tool"), Span(_text(params, "url"), "link"), f" → {where}")


def _agent(name: str, params: Params, root: str) -> StyledLine:
    kind = "agent, writes: " if params.get("writes") is True else "agent "
    return line(Span(kind, "tool"), _text(params, "prompt"))


def _todos(name: str, params: Params, root: str) -> StyledLine:
    todos = params.get("todos")
    count = len(todos) if isinstance(todos, list) else 0
    return line(Span("todos", "tool"), Span(f" ({counted(count, 'item')})", "dim"))


def _question(name: str, params: Params, root: str) -> StyledLine:
    questions = params.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else {}
    text = one_line(str(first.get("question", ""))[:LOOKED_AT]) if isinstance(first, dict) else ""
    return line(Span("ask ", "tool"), text)


def _job(verb: str) -> Callable[[str, Params, str], StyledLine]:
    return lambda name, params, root: line(Span(f"{verb} ", "tool"), _text(params, "job_id"))


def _unknown(name: str, params: Params, root: str) -> StyledLine:
    pieces = []
    for key, value in params.items():
        text = one_line((value if isinstance(value, str) else msgspec.json.encode(value).decode())[:LOOKED_AT])
        pieces.append(f"{one_line(key)}={text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + '…'}")
    return line(Span(one_line(name), "tool"), " ".join(["", *pieces]))


_FIELDS: dict[str, tuple[str, ...]] = {
    "bash": ("command", "working_dir", "background"),
    "view": ("file_path", "offset", "limit"),
    "edit": ("file_path",),
    "multiedit": ("file_path",),
    "apply_patch": ("patch",),
    "write": ("file_path",),
    "ls": ("path",),
    "grep": ("pattern", "path", "include"),
    "glob": ("pattern", "path"),
    "download": ("file_path", "url"),
    "job_output": ("job_id",),
    "job_kill": ("job_id",),
}
"""What is shown of our own tools' arguments."""

_FORMATS: dict[str, Callable[[str, Params, str], StyledLine]] = {
    "bash": _bash,
    "view": _view,
    "edit": _verb("edit", "file_path"),
    "multiedit": _verb("edit", "file_path"),
    "apply_patch": _patch,
    "write": _verb("write", "file_path"),
    "ls": _verb("list", "path", "."),
    "grep": _grep,
    "glob": _glob,
    "fetch": _fetch,
    "download": _download,
    "agent": _agent,
    "todos": _todos,
    "question": _question,
    "job_output": _job("output of job"),
    "job_kill": _job("end job"),
}
