"""Each wire format through a server that replays a good answer badly, and refusals as they are."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.lifecycle.reply import ModelFact
from covey.models.base import ModelFailed, Retry
from covey.models.wire import WireClient
from tests.models.asking import answer, request
from tests.models.fixtures import FORMATS, KEY, Format, collected, expected, format_of, name_of, refused
from tests.support.machine import refusing_port, until
from tests.support.wire_server import HTML, Serving, WireServer, replay

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

GOOD = {
    name: max(
        (path for path in wire.fixtures("*.sse") if "error" not in expected(path)),
        key=lambda path: len(expected(path).get("text", "")),
    )
    for name, wire in FORMATS.items()
    if (wire.fixtures("expected.json"))
}
"""For each format, the answer with the most words."""


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture(params=GOOD)
def wire(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


async def failing(client: WireClient) -> tuple[list[ModelFact], ModelFailed]:
    """What was said, and how it failed. The key is not shown."""
    facts: list[ModelFact] = []
    with pytest.raises(ModelFailed) as failed:
        async for fact in client.stream(request("hello")):
            facts.append(fact)
    await client.aclose()
    assert KEY not in "".join(traceback.format_exception(failed.value))
    assert str(failed.value).startswith("local: the model server ")
    return facts, failed.value


async def good_answer(wire: Format, server: WireServer) -> list[Retry]:
    """Asks, and checks that the answer is the good one."""
    retries: list[Retry] = []
    client = wire.client(server.url)
    facts = await answer(client, request("hello", on_retry=retries.append))
    await client.aclose()
    wanted = expected(GOOD[wire.name])
    assert (collected(facts).text, collected(facts).stop) == (wanted["text"], wanted["stop"])
    return retries


@pytest.mark.parametrize("piece", [0, 1, 1000])
async def test_a_good_answer_in_pieces_of_any_size(server: WireServer, wire: Format, piece: int) -> None:
    server.on(wire.path, replay(GOOD[wire.name], piece=piece))
    assert await good_answer(wire, server) == []
    [seen] = server.requests
    assert KEY in "".join(seen.headers.values()) and wire.path in seen.path


async def test_a_good_answer_of_the_wrong_type(server: WireServer, wire: Format) -> None:
    server.on(wire.path, replay(GOOD[wire.name], headers={"content-type": "text/plain"}))
    assert await good_answer(wire, server) == []


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_trouble_first_and_then_a_good_answer(server: WireServer, wire: Format, status: int) -> None:
    trouble = Serving(b'{"error": {"message": "later"}}', status)
    server.on(wire.path, trouble, trouble, replay(GOOD[wire.name]))
    assert len(await good_answer(wire, server)) == 2


@pytest.mark.parametrize("ending", ["cut", "reset", "stall", "end"])
async def test_an_answer_without_an_end(server: WireServer, wire: Format, ending: str) -> None:
    body = GOOD[wire.name].read_bytes()
    for after in (0, len(body) // 3, len(body) // 2):
        server.on(wire.path, replay(GOOD[wire.name], after=after, ending=ending))
        facts, failed = await failing(wire.client(server.url, idle_timeout_s=0.2 if ending == "stall" else 30))
        wanted = expected(GOOD[wire.name])["text"]
        assert wanted.startswith(collected(facts).text) and not collected(facts).stop
        assert not failed.auth and not failed.overflow
        if collected(facts).text:
            assert not failed.busy, "somebody else would have to say it all again"
    await until(lambda: len(server.requests) >= 3)  # who gives up soon may do so before the request was read
    assert len(server.requests) == 3, "an answer that has begun is not asked for again"


async def test_silence_from_the_start_is_as_if_nobody_were_there(server: WireServer, wire: Format) -> None:
    server.on(wire.path, replay(GOOD[wire.name], after=0, ending="stall"))
    facts, failed = await failing(wire.client(server.url, idle_timeout_s=0.1))
    assert facts == [] and failed.busy
    assert "silent for 0.1 s" in str(failed)


async def test_garbage_in_the_middle(server: WireServer, wire: Format) -> None:
    body = GOOD[wire.name].read_bytes()
    middle = body.rfind(b"\n\n", 0, len(body) // 2) + 2
    server.on(wire.path, replay(GOOD[wire.name], body=body[:middle] + b"data: \x00\xff{]\n\n" + body[middle:]))
    facts, failed = await failing(wire.client(server.url))
    assert "garbage" in str(failed) and not failed.busy
    assert expected(GOOD[wire.name])["text"].startswith(collected(facts).text)


@pytest.mark.parametrize("status", [200, 404])
async def test_a_web_page(server: WireServer, wire: Format, status: int) -> None:
    server.on(wire.path, Serving(HTML, status, {"content-type": "text/html"}))
    facts, failed = await failing(wire.client(server.url))
    assert facts == [] and "web page" in str(failed) and "base_url" in str(failed)


async def test_nobody_there(wire: Format) -> None:
    with refusing_port() as port:
        facts, failed = await failing(wire.client(f"http://127.0.0.1:{port}", max_attempts=2))
    assert facts == [] and failed.busy
    assert "cannot be reached" in str(failed) and "(tried 2 times)" in str(failed)


async def test_cancelling_closes_the_connection(server: WireServer, wire: Format) -> None:
    body = GOOD[wire.name].read_bytes()
    server.on(wire.path, replay(GOOD[wire.name], after=len(body) // 2, ending="stall"))
    client, heard = wire.client(server.url), asyncio.Event()

    async def listen() -> None:
        async for _ in client.stream(request("hello")):
            heard.set()

    listening = asyncio.create_task(listen())
    await asyncio.wait_for(heard.wait(), 30)
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert await asyncio.to_thread(server.gone.acquire, timeout=30), "the connection stayed open"
    await client.aclose()


@pytest.mark.parametrize("path", [path for path in refused() if path.parent.name in GOOD], ids=name_of)
async def test_refusals(server: WireServer, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.models.retry.MAX_RETRY_AFTER_S", 0.001)
    wire, trouble = format_of(path), expected(path)["trouble"]
    server.on(wire.path, replay(path))
    facts, failed = await failing(wire.client(server.url, max_attempts=3))
    assert facts == []
    assert (failed.auth, failed.overflow) == (trouble == "auth", trouble == "overflow")
    assert failed.busy == (trouble in ("busy", "spent"))
    if not path.name.startswith("400_no_"):
        assert len(server.requests) == (3 if trouble == "busy" else 1)


@pytest.mark.parametrize(
    ("path", "attempts"),
    [
        (path, 2 if "before_words" in path.name or path.name == "error_event.sse" else 1)
        for name in ("chat", "responses")
        for path in FORMATS[name].fixtures("*.sse")
        if "error" in expected(path)
    ],
    ids=lambda value: name_of(value) if isinstance(value, Path) else "",
)
async def test_errors_inside_the_answer(server: WireServer, path: Path, attempts: int) -> None:
    """What is too busy to say a word is asked again; a conversation that is too long is reported as such."""
    wire, wanted = format_of(path), expected(path)
    server.on(wire.path, replay(path))
    facts, failed = await failing(wire.client(server.url, max_attempts=2))
    assert collected(facts).text == wanted.get("text", "")
    assert wanted["error"] in str(failed)
    assert failed.overflow == (wanted["trouble"] == "overflow")
    assert failed.busy == (wanted["trouble"] == "busy" and not facts)
    assert len(server.requests) == attempts


async def test_too_busy_to_say_a_word_and_then_a_good_answer(server: WireServer) -> None:
    busy = FORMATS["responses"].fixtures("failed_busy_before_words.sse")[0]
    server.on("/responses", replay(busy), replay(GOOD["responses"]))
    [retry] = await good_answer(FORMATS["responses"], server)
    assert "Rate limit reached" in retry.error


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"error":', "}"), ('{"choices":[', "]}")])
@pytest.mark.parametrize("depth", [400, 900, 200_000])
@pytest.mark.parametrize("status", [200, 400, 401])
async def test_json_that_is_nested_to_do_harm_is_reported_in_a_sentence(
    server: WireServer, wire: Format, begin: str, end: str, depth: int, status: int
) -> None:
    body = f"{begin * depth}1{end * depth}"
    server.on("/", Serving(f"data: {body}\n\n".encode() if status == 200 else body.encode(), status))
    _, failed = await failing(wire.client(server.url, max_attempts=1))
    assert len(str(failed)) < 1000 and failed.auth == (status == 401)
