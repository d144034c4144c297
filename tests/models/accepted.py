"""What each provider demands of a conversation, by the rules that they state: a request that breaks one is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_Json = dict[str, Any]


def check_anthropic(body: _Json) -> None:
    """Roles take turns, no text is blank, results stand right behind their calls, no answer ends with a thought."""
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == (["user", "assistant"] * len(turns))[: len(turns)] and len(turns) % 2
    blocks = [block for turn in turns for block in turn["content"]]
    assert all(turn["content"] for turn in turns)
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-zA-Z0-9_-]+", one) for one in ids)
    for before, after in zip(turns, [*turns[1:], {"content": []}], strict=True):
        if before["role"] == "assistant":
            asked_for = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
            first = [block.get("tool_use_id") for block in after["content"][: len(asked_for)]]
            assert first == asked_for, "results come right behind their calls, and before all else"
            assert before["content"][-1]["type"] in ("text", "tool_use"), "no answer ends with a thought"
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert len(results) == len(ids)
    assert json.dumps(body).count("cache_control") <= 4
    if thinking := body.get("thinking"):
        assert thinking.get("budget_tokens", 1024) >= 1024 and thinking.get("budget_tokens", 0) < body["max_tokens"]


def check_google(body: _Json, *, is_new: bool = False) -> None:
    """The user has the last word, results follow their calls, no part is empty. `is_new`: the first call is signed."""
    contents: list[_Json] = body["contents"]
    assert contents[-1]["role"] == "user"
    for before, after in zip(contents, [*contents[1:], {"parts": []}], strict=True):
        assert before["parts"] and "unused" not in json.dumps(before)
        calls = [part["functionCall"] for part in before["parts"] if "functionCall" in part]
        given_back = [part["functionResponse"] for part in after["parts"] if "functionResponse" in part]
        assert [(call["name"], call.get("id")) for call in calls] == [(r["name"], r.get("id")) for r in given_back]
        signed = [part.get("thoughtSignature") for part in before["parts"] if "functionCall" in part]
        assert not is_new or not signed or signed[0]
        for part in before["parts"]:
            assert part.get("text", "x").strip() or "thoughtSignature" in part
            assert isinstance(part.get("functionCall", {}).get("args", {}), dict)


def check_chat(body: _Json) -> None:
    """As strict chat templates are: no role twice in a row, and each call has its result right behind it."""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    assert messages[0]["role"] == "user" and messages[-1]["role"] in ("user", "tool")
    waiting: list[str] = []
    for before, message in zip([None, *messages], messages, strict=False):
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting, "a call has no result"
        assert before is None or before["role"] != message["role"], "two in a row"
        assert message.get("tool_calls") or message["content"].strip()
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


def check_responses(body: _Json) -> None:
    """Each call has its output, each thought is followed by what it led to, no text is blank."""
    items = body["input"]
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert called == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    for item, after in zip(items, [*items[1:], {"role": "user"}], strict=True):
        if item.get("type") == "reasoning":
            assert after.get("role", "assistant") == "assistant" and after.get("type") != "function_call_output"
        if item.get("role") == "assistant":
            assert item["content"].strip()
        if item.get("role") == "user":
            assert item["content"] and all(part.get("text", "x").strip() for part in item["content"])
    assert items[0]["role"] == "user"
    assert items[-1].get("role") == "user" or items[-1]["type"] == "function_call_output"


CHECKS = {"anthropic": check_anthropic, "google": check_google, "chat": check_chat, "responses": check_responses}
"""By the name of the wire format, as in `fixtures.FORMATS`."""


def spoken(name: str, body: _Json) -> list[tuple[str, str]]:
    """Who ("user" or "assistant") says what in a request, in order, without calls, results and thoughts."""
    return list(_SPOKEN[name](body))


def _chat(body: _Json) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        if message["role"] in ("user", "assistant") and message["content"]:
            yield message["role"], message["content"]


def _responses(body: _Json) -> Iterator[tuple[str, str]]:
    for item in body["input"]:
        content = item.get("content", ())
        for text in [content] if isinstance(content, str) else [part["text"] for part in content]:
            yield item["role"], text


def _anthropic(body: _Json) -> Iterator[tuple[str, str]]:
    for turn in body["messages"]:
        for block in turn["content"]:
            if block["type"] == "text":
                yield turn["role"], block["text"]


def _google(body: _Json) -> Iterator[tuple[str, str]]:
    for content in body["contents"]:
        for part in content["parts"]:
            if "text" in part and not part.get("thought"):
                yield "assistant" if content["role"] == "model" else "user", part["text"]


_SPOKEN = {"chat": _chat, "responses": _responses, "anthropic": _anthropic, "google": _google}
