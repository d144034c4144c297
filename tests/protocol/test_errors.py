"""One table: code, exception and status. Whatever a server answers, a client gets an exception of ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from covey.protocol import errors
from covey.protocol.errors import BY_STATUS, ApiError, ErrorBody, decode_error

SOURCES = sorted(Path(errors.__file__).parent.parent.rglob("*.py"))
TABLE: list[tuple[str, int, str]] = [
    (name, int(status), code)
    for name, status, codes in re.findall(r"[├└]── (\w+) (\d+) +(.+)", errors.__doc__ or "")
    for code in codes.split(", ")
]


def test_the_drawing_at_the_top_of_the_file_is_the_whole_truth() -> None:
    drawn = {(name, status) for name, status, _ in TABLE}
    assert drawn == {(cls.__name__, status) for status, cls in BY_STATUS.items()}
    assert set(BY_STATUS.values()) == set(ApiError.__subclasses__())
    assert len({code for _, _, code in TABLE}) == len(TABLE), "a code means one thing"
    for cls in BY_STATUS.values():
        assert (cls.__name__, cls.status, cls.code) in TABLE


def test_no_code_is_used_that_is_not_in_the_table() -> None:
    known = {(name, code) for name, _, code in TABLE}
    used = {used for path in SOURCES for used in _codes(ast.parse(path.read_text("utf-8")))}
    assert used <= known
    assert len(used) > 10, "the reader of the sources sees nothing"


def _codes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    names = {cls.__name__ for cls in BY_STATUS.values()}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str(code))]) if name in names:
                yield name, code


@pytest.mark.parametrize(("name", "status", "code"), TABLE)
def test_each_code_comes_back_as_its_exception(name: str, status: int, code: str) -> None:
    body = msgspec.json.encode(ErrorBody(message="what to do", code=code, retry_after=2.5))
    error = decode_error(status, body)
    assert type(error).__name__ == name
    assert (error.status, error.code, error.message, error.retry_after) == (status, code, "what to do", 2.5)
    assert str(error) == "what to do"


def test_an_internal_error_has_its_code_on_the_wire() -> None:
    error = ApiError("oops")
    body = msgspec.json.encode(ErrorBody(message=error.message, code=error.code, retry_after=error.retry_after))
    assert msgspec.json.decode(body) == {"message": "oops", "code": "internal"}


@pytest.mark.parametrize("body", [b'{"message": "gone"}', b'{"message": "gone", "code": "", "new": 1}'])
def test_without_a_code_the_status_says_what_it_is(body: bytes) -> None:
    error = decode_error(404, body)
    assert isinstance(error, errors.NotFound)
    assert (error.code, error.message, error.retry_after) == ("not_found", "gone", None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the server answered 409 with an empty body"),
        (b" \n", "the server answered 409 with an empty body"),
        (b"<html><h1>Conflict</h1></html>\n", "the server answered 409: <html><h1>Conflict</h1></html>"),
        (b'{"message": 7}', 'the server answered 409: {"message": 7}'),
        (b'{"code": "too_late"}', 'the server answered 409: {"code": "too_late"}'),
        (b'{"message": "half', 'the server answered 409: {"message": "half'),
        (b"[]", "the server answered 409: []"),
        (b"null", "the server answered 409: null"),
        (b'{"message": "\xff"}', 'the server answered 409: {"message": "\ufffd"}'),
        (b"\x00\xff", "the server answered 409: \x00\ufffd"),
        (b"x" * 5000, "the server answered 409: " + "x" * 200),
        (b'{"deep":' * 100_000, "the server answered 409: " + '{"deep":' * 25),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_any_other_body_is_still_an_exception_of_ours(body: bytes, message: str) -> None:
    error = decode_error(409, body)
    assert isinstance(error, errors.Conflict)
    assert (error.message, error.code, str(error)) == (message, "conflict", message)


@pytest.mark.parametrize("status", [418, 500, 502, 504])
def test_a_status_that_is_not_in_the_table_is_a_plain_error(status: int) -> None:
    error = decode_error(status, b"Bad Gateway")
    assert type(error) is ApiError
    assert (error.status, error.code) == (500, "internal")
    assert error.message == f"the server answered {status}: Bad Gateway"
