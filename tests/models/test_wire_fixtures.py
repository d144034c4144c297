"""What is understood of the wire fixtures, however their bytes are cut."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from covey.lifecycle.reply import ModelFact, ReasoningDelta, ToolInputDelta
from covey.models.trouble import AnswerBroken
from tests.models.fixtures import (
    FORMATS,
    ROOT,
    Collected,
    collected,
    expected,
    fed,
    format_of,
    name_of,
    refused,
    streamed,
)

WITH_ANSWER = [
    path
    for wire in FORMATS.values()
    for path in wire.fixtures("*.sse", "200_*.json")
    if (path.parent / "expected.json").exists()
]


def understood(path: Path, cuts: Any = lambda body: [body]) -> dict[str, Any]:
    """As `expected.json` has it."""
    decoder = format_of(path).decoder()
    facts: list[ModelFact] = []
    error: dict[str, str] = {}
    for piece in cuts(path.read_bytes()):
        facts += decoder.feed(piece)
        if decoder.done:
            break
    try:
        facts += decoder.end()
    except AnswerBroken as broken:
        error = {"error": str(broken), "trouble": broken.trouble.value}
    signatures = "".join(fact.signature for fact in facts if isinstance(fact, ReasoningDelta))
    return asdict(collected(facts)) | {"signatures": signatures} | error


@pytest.mark.parametrize("path", WITH_ANSWER, ids=name_of)
def test_each_answer_means_what_it_must(path: Path) -> None:
    found = understood(path)
    del found["signatures"]
    wanted = asdict(Collected()) | expected(path)
    wanted |= {"calls": tuple(map(tuple, wanted["calls"])), "usage": wanted["usage"] and tuple(wanted["usage"])}
    assert found == wanted


@pytest.mark.parametrize("path", streamed(), ids=name_of)
def test_how_the_bytes_are_cut_does_not_matter(path: Path) -> None:
    whole = understood(path)
    assert understood(path, lambda body: [body[at : at + 1] for at in range(len(body))]) == whole
    lots = random.Random(path.name)
    for _ in range(8):

        def cuts(body: bytes) -> list[bytes]:
            places = sorted(lots.choices(range(len(body)), k=lots.randint(1, 40)))
            return [body[start:stop] for start, stop in pairwise([0, *places, len(body)])]

        assert understood(path, cuts) == whole


@pytest.mark.parametrize("path", streamed("chat", "responses"), ids=name_of)
def test_line_ends_and_comments_do_not_matter(path: Path) -> None:
    body = b": hello\n\n" + path.read_bytes()
    whole = understood(path)
    assert understood(path, lambda _: [body.replace(b"\n", b"\r\n")]) == whole
    assert understood(path, lambda _: [body.replace(b"\n\n", b"\n\n: ping\n\nretry: 100\n\n")]) == whole
    assert understood(path, lambda _: [body.replace(b"data: ", b"data:")]) == whole


@pytest.mark.parametrize("path", streamed("chat", "responses"), ids=name_of)
def test_an_answer_that_is_cut_short_never_looks_whole(path: Path) -> None:
    """But for the token counts, which may be missing once the model has said why it stopped."""
    wanted, body = understood(path), path.read_bytes()
    for end in range(0, len(body), 31):
        try:
            found = collected(fed(format_of(path).decoder(), body[:end]))
        except AnswerBroken:
            continue
        assert "error" not in wanted
        assert (found.text, found.calls, found.stop) == (wanted["text"], wanted["calls"], wanted["stop"])


@pytest.mark.parametrize("path", [path for path in refused() if (path.parent / "expected.json").exists()], ids=name_of)
def test_each_refusal_means_what_it_must(path: Path) -> None:
    client = format_of(path).client("http://127.0.0.1:1")
    status = int(path.name.partition("_")[0])
    assert client._judge(status, path.read_bytes()).value == expected(path)["trouble"]


def test_every_fixture_is_expected_and_every_expectation_has_one() -> None:
    for name in ("chat", "responses"):
        files = {path.name for path in (ROOT / name).iterdir() if path.suffix in (".sse", ".json")}
        assert set(json.loads((ROOT / name / "expected.json").read_text("utf-8"))) == files - {"expected.json"}


def test_calls_of_the_same_step_do_not_mix() -> None:
    path = ROOT / "responses" / "parallel_calls.sse"
    facts = fed(format_of(path).decoder(), path.read_bytes())
    assert {fact.index for fact in facts if isinstance(fact, ToolInputDelta)} == {0, 1, 2}
