"""What a tool call does, in a few words: a formatter for each tool, and a decent one for those not known here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line
from covey.lines.words import counted
from covey.protocol.messages import ToolCall

Params = Mapping[str, Any]

VALUE_SHOWN = 60
"""Characters of one value of a tool that is not known here."""


def call_line(call: ToolCall, root: str = "") -> StyledLine:
    """The call on one line. `root` is the directory of the workspace: paths below it are shown from there."""
    params = parameters(call)
    shown = _FORMATS.get(call.name, _unknown)
    return shown(call.name, params, root)


def parameters(call: ToolCall) -> Params:
    """What the model gave, as far as it can be read."""
    return decoded(call.input)


def decoded(text: str) -> Params:
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def short_path(path: object, root: str) -> str:
    text = one_line(str(path))
    if root and text.startswith(root.rstrip("/") + "/"):
        return text[len(root.rstrip("/")) + 1 :]
    return text


def _text(params: Params, name: str) -> str:
    return one_line(str(params.get(name) or ""))


def _bash(name: str, params: Params, root: str) -> StyledLine:
    command = str(params.get("command") or "").strip()
    first, *more = command.split("\n") if command else [""]
    where = f"  (in {short_path(params['working_dir'], root)})" if params.get("working_dir") else ""
    rest = f"  … {counted(len(more), 'more line')}" if more else ""
    job = "  (in the background)" if params.get("background") else ""
    return line(Span("$ ", "dim"), Span(one_line(first), "tool"), Span(f"{rest}{where}{job}", "dim"))


def _verb(verb: str, field: str) -> Callable[[str, Params, str], StyledLine]:
    def shown(name: str, params: Params, root: str) -> StyledLine:
        return line(Span(f"{verb} ", "tool"), short_path(params.get(field) or ".", root))

    return shown


def _view(name: str, params: Params, root: str) -> StyledLine:
    first, limit = params.get("offset"), params.get("limit")
    place = ""
    if isinstance(limit, int):
        start = first if isinstance(first, int) else 1
        place = f":{start}-{start + limit - 1}"
    elif isinstance(first, int) and first > 1:
        place = f":{first}-"
    return line(Span("read ", "tool"), short_path(params.get("file_path", ""), root), Span(place, "dim"))


def _grep(name: str, params: Params, root: str) -> StyledLine:
    return _search("grep", _text(params, "pattern"), params, root, _text(params, "include"))


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
    return line(Span("agent ", "tool"), _text(params, "prompt"))


def _todos(name: str, params: Params, root: str) -> StyledLine:
    todos = params.get("todos")
    count = len(todos) if isinstance(todos, list) else 0
    return line(Span("todos", "tool"), Span(f" ({counted(count, 'thing')})", "dim"))


def _question(name: str, params: Params, root: str) -> StyledLine:
    questions = params.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else {}
    text = one_line(str(first.get("question", ""))) if isinstance(first, dict) else ""
    return line(Span("ask ", "tool"), text)


def _job(verb: str) -> Callable[[str, Params, str], StyledLine]:
    return lambda name, params, root: line(Span(f"{verb} ", "tool"), _text(params, "job_id"))


def _unknown(name: str, params: Params, root: str) -> StyledLine:
    pieces = []
    for key, value in params.items():
        text = one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())
        pieces.append(f"{one_line(key)}={text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + '…'}")
    return line(Span(one_line(name), "tool"), " ".join(["", *pieces]))


_FORMATS: dict[str, Callable[[str, Params, str], StyledLine]] = {
    "bash": _bash,
    "view": _view,
    "edit": _verb("edit", "file_path"),
    "multiedit": _verb("edit", "file_path"),
    "write": _verb("write", "file_path"),
    "ls": _verb("list", "path"),
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
