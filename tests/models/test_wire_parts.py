"""Small parts of what all wire formats share."""

from __future__ import annotations

import pytest

from covey.models.http import ProviderEndpoint
from covey.models.sse import SseLines
from covey.models.wire import without


@pytest.mark.parametrize(
    ("url", "path", "target"),
    [
        ("http://h/v1", "/messages", "/v1/messages"),
        ("http://h", "/messages", "/messages"),
        ("http://h", "", "/"),
        ("http://h?a=1", "", "/?a=1"),
        ("http://h/v1?api-version=1", "/chat/completions", "/v1/chat/completions?api-version=1"),
        ("http://h/v1", "/models/m:stream?alt=sse", "/v1/models/m:stream?alt=sse"),
        ("http://h/v1?key=1", "/models/m:stream?alt=sse", "/v1/models/m:stream?key=1&alt=sse"),
    ],
)
def test_where_a_request_goes(url: str, path: str, target: str) -> None:
    assert ProviderEndpoint(url, {}, 1.0, 1.0).target(path) == target


@pytest.mark.parametrize(
    ("body", "field", "left"),
    [
        (b'{"a":1,"b":2}', "a", b'{"b":2}'),
        (b'{"a":{"x":1,"y":2}}', "a.x", b'{"a":{"y":2}}'),
        (b'{"a":{"x":1},"b":2}', "a.x", b'{"b":2}'),
        (b'{"a":{"x":1}}', "a", b"{}"),
        (b'{"a":1}', "b", None),
        (b'{"a":1}', "a.x", None),
        (b'{"a":{"x":1}}', "a.y", None),
        (b'{"b":1}', "a.x", None),
    ],
)
def test_a_body_without_a_field(body: bytes, field: str, left: bytes | None) -> None:
    assert without(body, field) == left


def test_lines_are_whole_and_nothing_is_lost() -> None:
    lines = SseLines()
    assert lines.split(b"da") == []
    assert lines.split(b"ta: x\n\nda") == [b"data: x", b""]
    assert lines.split(b"ta: y\r\n") == [b"data: y\r"]
    assert lines.split(b"a\nb\n") == [b"a", b"b", b""]
