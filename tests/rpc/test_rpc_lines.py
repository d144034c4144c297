"""Lines and messages of JSON-RPC, as anybody may send them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.rpc.lines import LineSplitter, TooLong
from covey.rpc.messages import (
    NoMessage,
    Notification,
    Request,
    RpcAnswer,
    RpcError,
    decode,
    encode,
)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_however_bytes_come_in_the_lines_are_the_same(data: bytes, size: int) -> None:
    whole, pieces = LineSplitter(40), LineSplitter(40)
    at_once = whole.feed(data)
    found = [line for start in range(0, len(data), size) for line in pieces.feed(data[start : start + size])]
    assert [_shown(line) for line in found] == [_shown(line) for line in at_once]
    expected = [b"TOO LONG" if len(line) > 40 else line.strip() for line in data.split(b"\n")[:-1]]
    assert [_shown(line) for line in at_once] == [line for line in expected if line]


def _shown(line: bytes | TooLong) -> bytes:
    return b"TOO LONG" if isinstance(line, TooLong) else line


def test_of_an_endless_line_nothing_is_kept() -> None:
    splitter = LineSplitter(1000)
    for _ in range(100):
        assert splitter.feed(b"x" * 1000) == []
    assert splitter._pieces == []
    (dropped, line) = splitter.feed(b"x\nhello\n")
    assert isinstance(dropped, TooLong) and line == b"hello"


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"id": 1, "method": "a", "params": {"b": 2}}, Request(1, "a", {"b": 2})),
        ({"id": "x", "method": "a"}, Request("x", "a")),
        ({"id": None, "method": "a"}, Request(None, "a")),
        ({"method": "a", "params": None, "more": 1}, Notification("a")),
        ({"id": 1, "result": None}, RpcAnswer(1)),
        ({"id": 1, "result": {"a": 1}}, RpcAnswer(1, {"a": 1})),
    ],
)
def test_messages_are_read(message: dict[str, Any], found: Any) -> None:
    assert decode(json.dumps({"jsonrpc": "2.0", **message}).encode()) == found


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b"", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'"text"', None, -32600),
        (b"[]", None, -32600),
        (b'{"id": 1.5, "method": "a"}', None, -32600),
        (b'{"id": true, "method": "a"}', None, -32600),
        (b'{"id": 7}', 7, -32600),
        (b'{"id": 7, "method": 5}', 7, -32600),
        (b'{"id": 7, "method": "a", "params": [1]}', 7, -32602),
    ],
)
def test_what_is_no_message_has_an_answer(line: bytes, id: Any, code: int) -> None:
    found = decode(line)
    assert isinstance(found, NoMessage)
    assert (found.id, found.error.code) == (id, code)


def test_an_error_is_read_and_written() -> None:
    answer = decode(encode(RpcAnswer(3, error=RpcError(-5, "no", {"why": 1}))))
    assert isinstance(answer, RpcAnswer) and answer.error
    assert (answer.error.code, answer.error.message) == (-5, "no")
    assert encode(RpcAnswer(3, None)) == b'{"jsonrpc":"2.0","id":3,"result":null}\n'
