"""A tool call, its result and its permission request as editors show them: kind, title, places, changes. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import msgspec

from covey.acp.content import Json, cut, diff, fenced, image_block, shown, text_block
from covey.lines.calls import call_line, decoded, parameters
from covey.lines.plain_text import visible
from covey.lines.request_text import reasons
from covey.protocol.endings import CallEnd, call_end
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import ToolCall, ToolResult

KINDS = {
    "view": "read",
    "ls": "read",
    "grep": "search",
    "glob": "search",
    "edit": "edit",
    "multiedit": "edit",
    "write": "edit",
    "apply_patch": "edit",
    "bash": "execute",
    "job_output": "execute",
    "job_kill": "execute",
    "fetch": "fetch",
    "download": "fetch",
    "web_search": "fetch",
    "todos": "think",
    "agent": "think",
}
TITLE_SHOWN = 300
"""Characters: a title stands on one line. All of a command is in the content."""
_BULKY = ("old_content", "new_content", "diff", "content")
"""Of what a permission is asked for: shown as content, and not twice."""


def kind_of(tool: str) -> str:
    return KINDS.get(tool, "other")


def title_of(call: ToolCall, root: str) -> str:
    text = "".join(span.text for span in call_line(call, root).spans).strip().removeprefix("$ ")
    return (text if len(text) <= TITLE_SHOWN else f"{text[: TITLE_SHOWN - 1]}…") or call.name or "?"


def begun(call: ToolCall) -> Json:
    """The model has begun to ask for it: what it will say is not known yet."""
    return {"toolCallId": call.id, "title": call.name or "?", "kind": kind_of(call.name), "status": "pending"}


def asked_for(call: ToolCall, root: str) -> Json:
    """The model has asked for it."""
    fields = parameters(call)
    return {
        "toolCallId": call.id,
        "title": title_of(call, root),
        "kind": kind_of(call.name),
        "status": "in_progress",
        "locations": _locations(fields, root),
        "rawInput": dict(fields),
    }


def ended(result: ToolResult, root: str) -> Json:
    """What it came to."""
    facts = decoded(result.metadata)
    update: Json = {
        "toolCallId": result.tool_call_id,
        "status": "failed" if result.is_error else "completed",
        "content": _result_content(result, facts),
    }
    if places := _locations(facts, root):
        update["locations"] = places
    code = facts.get("exit_code")
    if isinstance(code, int):
        update["rawOutput"] = {"exit_code": code}
        if code:
            update["status"] = "failed"
    return update


def _result_content(result: ToolResult, facts: Mapping[str, Any]) -> list[Json]:
    if call_end(result) in (CallEnd.CANCELLED, CallEnd.NOT_BEGUN):
        return [shown(text_block("cancelled"))]
    if not result.is_error and (change := _change(facts)):
        return [change]
    content = [shown(text_block(fenced(cut(result.content))))] if result.content else []
    if result.data and (result.mime_type or "").startswith("image/"):
        content.append(shown(image_block(result.data, result.mime_type or "")))
    return content


def _change(facts: Mapping[str, Any]) -> Json | None:
    """What a call does to a file: both texts, if they are short enough to be there, else a diff to read."""
    path, old, new = facts.get("file_path"), facts.get("old_content"), facts.get("new_content")
    if isinstance(path, str) and isinstance(old, str) and isinstance(new, str):
        return diff(path, old or None, new)
    if isinstance(text := facts.get("diff"), str) and text:
        return shown(text_block(fenced(cut(text), "diff")))
    return None


def _locations(facts: Mapping[str, Any], root: str) -> list[Json]:
    files = facts.get("files")
    named = [each for each in files if isinstance(each, dict)] if isinstance(files, list) else [facts]
    paths = [each.get("file_path") or each.get("path") for each in named]
    line = facts.get("offset")
    at = {"line": line} if isinstance(line, int) and line > 0 and len(paths) == 1 else {}
    return [{"path": posixpath.normpath(posixpath.join(root, path)), **at} for path in paths if isinstance(path, str)]


def permission_call(request: PermissionRequest) -> Json:
    """All that a person has to see to say yes: the whole command or change, where, and why they are asked."""
    params = request.params
    call = ToolCall(
        id=request.tool_call_id, name=request.tool_name, input=msgspec.json.encode(params).decode(), finished=True
    )
    command = params.get("command")
    title = title_of(call, request.path) if isinstance(command, str) else request.description or request.tool_name
    content = [_wanted(params), *(shown(text_block(visible(text))) for text in reasons(request))]
    return {
        "toolCallId": request.tool_call_id,
        "title": visible(title),
        "kind": kind_of(request.tool_name),
        "status": "pending",
        "content": content,
        "locations": _locations(params, request.path),
        "rawInput": {name: value for name, value in params.items() if name not in _BULKY},
    }


def _wanted(params: Mapping[str, Any]) -> Json:
    """Never cut: nothing of what is agreed to may be hidden."""
    if isinstance(command := params.get("command"), str):
        where = params.get("working_dir")
        text = fenced(_all_visible(command), "sh") + (f"\nin {visible(str(where))}" if where else "")
    elif change := _change({**params, "diff": ""}):
        return change
    elif isinstance(body := params.get("diff") or params.get("content"), str):
        text = fenced(_all_visible(body), "diff" if "diff" in params else "")
    else:
        text = fenced(_all_visible(msgspec.json.format(msgspec.json.encode(params)).decode()), "json")
    return shown(text_block(text))


def _all_visible(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))
