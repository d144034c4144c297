"""Our own HTTP client against answers of every kind, good and bad."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from covey.models import http_direct
from covey.models.http import ProviderEndpoint, ProviderHttpFailed
from covey.models.http_direct import Direct
from tests.support.fake_model import FakeModel, Reply, delta
from tests.support.machine import refusing_port

pytestmark = pytest.mark.anyio

BODY = b'{"messages": []}'
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def client(url: str, idle_s: float = 60.0, connect_s: float = 30.0) -> AsyncIterator[Direct]:
    http = Direct(ProviderEndpoint(f"{url}/chat/completions", {"x-test": "1"}, connect_s, idle_s))
    try:
        yield http
    finally:
        await http.aclose()


@asynccontextmanager
async def server(handle: Handler) -> AsyncIterator[str]:
    """A server that gets each connection as soon as it is there."""
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await handle(reader, writer)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(converse(reader, writer))
        task.add_done_callback(lambda _: writer.close())
        tasks.add(task)

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def says(answer: bytes, keep_open: bool = False) -> Handler:
    """Answer each request with these bytes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            writer.write(answer)
            if not keep_open:
                return

    return handle


async def read_all(http: Direct) -> tuple[int, bytes]:
    answer = await http.post(BODY)
    status, body = answer.status, b""
    try:
        while data := await answer.read():
            body += data
        await answer.finish()
    finally:
        await answer.close()
    return status, body


async def settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


async def test_request_and_answer(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=("one ", "two ", "three"), ending="end"))
    async with client(model.url) as http:
        assert await read_all(http) == (200, b"one two three")
    [request] = model.requests
    assert request.body == {"messages": []}
    assert request.headers == {"host": f"127.0.0.1:{model.port}", "x-test": "1", "content-length": "16"}


async def test_the_connection_is_used_again(model: FakeModel) -> None:
    async with client(model.url) as http:
        for _ in range(3):
            await read_all(http)
    assert [request.connection for request in model.requests] == [1, 1, 1]


async def test_answers_at_the_same_time_have_connections_of_their_own(model: FakeModel) -> None:
    async with client(model.url) as http:
        first, second = await http.post(BODY), await http.post(BODY)
        await first.close()
        await second.close()
    assert {request.connection for request in model.requests} == {1, 2}


async def test_the_last_bytes_are_not_waited_for(model: FakeModel) -> None:
    """The end mark of an answer and the end of its body are two packets: the second must not delay anything."""
    model.on(lambda _: Reply(raw=("all",), ending="end", gates={1: "rest"}))
    async with client(model.url) as http:
        answer = await http.post(BODY)
        assert await answer.read() == b"all"
        await answer.finish()
        await answer.close()
        assert not http._idle
        model.release("rest")
        await settled(lambda: bool(http._idle))
        await read_all(http)
    assert model.connections == 1


async def test_a_connection_whose_rest_never_comes_is_given_up(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_direct, "DRAIN_S", 0.01)
    model.on(lambda _: Reply(raw=("all",), ending="silence"))
    async with client(model.url) as http:
        answer = await http.post(BODY)
        await answer.finish()
        await model.until(lambda: model.requests[0].closed_early_at is not None)


async def test_an_idle_connection_is_closed_after_a_while(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_direct, "IDLE_CONNECTION_S", 0.01)
    async with client(model.url) as http:
        await read_all(http)
        await settled(lambda: not http._idle)
        await read_all(http)
    assert model.connections == 2


async def test_idle_connections_are_bounded(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_direct, "MAX_IDLE_CONNECTIONS", 2)
    async with client(model.url) as http:
        await asyncio.gather(*(read_all(http) for _ in range(4)))
        assert len(http._idle) == 2
    assert not http._idle


async def test_nothing_is_kept_after_aclose(model: FakeModel) -> None:
    async with client(model.url) as http:
        answer = await http.post(BODY)
        await http.aclose()
        while await answer.read():
            pass
        await answer.finish()
        assert not http._idle


async def test_a_connection_that_died_while_idle_is_replaced_without_a_word(model: FakeModel) -> None:
    """The server may close a kept connection in the very moment in which it is used again."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(BODY))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")  # the second request is never answered

    async with server(handle) as url, client(url) as http:
        assert await read_all(http) == (200, b"ok")
        assert await read_all(http) == (200, b"ok")


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
    ],
    ids=["connection: close", "HTTP/1.0", "more than was asked for"],
)
async def test_connections_that_must_not_be_used_again(head: bytes) -> None:
    async with server(says(head, keep_open=True)) as url, client(url) as http:
        assert await read_all(http) == (200, b"ok")
        assert not http._idle


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nx-t: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nok",
    ],
    ids=["100", "103 and trailers", "ends with the connection"],
)
async def test_forms_of_an_answer(answer: bytes) -> None:
    async with server(says(answer)) as url, client(url) as http:
        assert await read_all(http) == (200, b"ok")


@pytest.mark.parametrize(
    ("answer", "message", "retry"),
    [
        (b"", "without an answer", True),
        (b"HTTP/1.1 200 OK\r\nx: ", "cut off", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok", "cut off", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok", "cut off", False),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP", False),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "not HTTP", False),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000, "64 KiB of headers", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "not HTTP", False),
    ],
    ids=["nothing", "half a head", "short", "half a chunk", "ssh", "upgrade", "huge head", "bad chunk"],
)
async def test_what_is_no_answer(answer: bytes, message: str, retry: bool) -> None:
    async with server(says(answer)) as url, client(url) as http:
        with pytest.raises(ProviderHttpFailed, match=message) as failed:
            await read_all(http)
        assert failed.value.retry is retry
        assert not http._idle


async def test_a_server_that_talks_first_is_not_http() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        await reader.read()

    async with server(greet) as url, client(url) as http:
        with pytest.raises(ProviderHttpFailed, match="not HTTP"):
            await read_all(http)


async def test_what_arrived_before_the_cut_can_be_read(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=("one",), ending="cut"))
    async with client(model.url) as http:
        answer = await http.post(BODY)
        assert await answer.read() == b"one"
        with pytest.raises(ProviderHttpFailed, match="cut off"):
            await answer.read()
        await answer.close()


async def test_nobody_listens(unused_port: int) -> None:
    async with client(f"http://127.0.0.1:{unused_port}") as http:
        with pytest.raises(
            ProviderHttpFailed, match=f"cannot be reached at 127.0.0.1:{unused_port}: .*refused"
        ) as failed:
            await http.post(BODY)
        assert failed.value.retry


@pytest.fixture
def unused_port() -> Iterator[int]:
    with refusing_port() as port:
        yield port


async def test_a_connection_that_is_not_accepted_in_time(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*args: object, **kwargs: object) -> None:
        await asyncio.Event().wait()

    async with client(model.url, connect_s=0.01) as http:
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never, raising=False)
        with pytest.raises(ProviderHttpFailed, match=r"did not accept a connection within 0\.01 s") as failed:
            await http.post(BODY)
        monkeypatch.undo()
        assert failed.value.retry


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until it is closed"])
@pytest.mark.parametrize("gates", [{-1: "never"}, {0: "never"}, {1: "never"}], ids=["head", "first", "second"])
async def test_silence_has_a_limit(model: FakeModel, gates: dict[int, str], chunked: bool) -> None:
    """Also where a body ends with its connection: that we give up, and close it, is not its end."""
    model.on(lambda _: Reply(raw=("one", "two"), ending="end", gates=gates, chunked=chunked))
    async with client(model.url, idle_s=0.05) as http:
        with pytest.raises(ProviderHttpFailed, match=r"silent for 0\.05 s \(idle_timeout_s\)") as failed:
            await read_all(http)
        assert not failed.value.retry
        await model.until(lambda: any(request.closed_early_at for request in model.requests))


async def test_slow_is_not_silent(model: FakeModel) -> None:
    """The answer as a whole takes much longer than the limit, but it never stops for so long."""
    model.on(lambda _: Reply(raw=("x",) * 50, delay_ms=50, ending="end"))
    async with client(model.url, idle_s=2) as http:  # no machine is so busy that it stops for so long
        start = time.monotonic()
        assert await read_all(http) == (200, b"x" * 50)
        assert time.monotonic() - start > 2


async def test_the_silence_of_a_reader_is_not_the_servers(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=("one", "two"), ending="end", gates={1: "two"}))
    async with client(model.url, idle_s=1.5) as http:
        answer = await http.post(BODY)
        await answer.read()
        await asyncio.sleep(1.7)  # this is the case itself: nobody reads for longer than the limit
        model.release("two")
        assert await answer.read() == b"two"
        await answer.close()


async def test_a_reader_that_does_not_read_slows_the_server_down(model: FakeModel) -> None:
    piece = "x" * 50_000
    model.on(lambda _: Reply(raw=(piece,) * 1000, ending="end"))
    async with client(model.url) as http:
        answer = await http.post(BODY)
        await settled(lambda: answer._paused)
        assert answer._buffered < http_direct.MAX_BUFFERED_BYTES + 1024 * 1024
        assert model.requests[0].sent < 1000
        length = 0
        while data := await answer.read():
            length += len(data)
        assert length == 1000 * len(piece)
        await answer.finish()


@pytest.mark.parametrize("gates", [{-1: "never"}, {1: "never"}], ids=["before the head", "in the body"])
async def test_cancelling_closes_the_connection_at_once(model: FakeModel, gates: dict[int, str]) -> None:
    model.on(lambda _: Reply(raw=("one", "two"), gates=gates))
    async with client(model.url) as http:
        reading = asyncio.create_task(read_all(http))
        await model.until(lambda: bool(model.requests))
        reading.cancel()
        await model.until(lambda: model.requests[0].closed_early_at is not None)
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_cancelling_while_connecting(model: FakeModel) -> None:
    async with client(model.url) as http:
        reading = asyncio.create_task(read_all(http))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert model.requests == []


def certificate(folder: Path) -> Path:
    """A new certificate for the loopback address, with its key, in one file."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("needs the openssl command")
    path = folder / "loopback.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", path], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + (folder / "key.pem").read_bytes())
    return path


async def test_https_with_a_trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with FakeModel(lambda _: Reply(raw=("one", "two"), ending="end"), tls=tls) as model:
        async with client(model.url) as http:
            assert await read_all(http) == (200, b"onetwo")
            assert await read_all(http) == (200, b"onetwo")
        assert model.connections == 1


async def test_https_with_a_certificate_that_nobody_knows(tmp_path: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate(tmp_path))
    with FakeModel(tls=tls) as model:
        async with client(model.url) as http:
            with pytest.raises(ProviderHttpFailed, match="certificate that cannot be trusted") as failed:
                await read_all(http)
            assert not failed.value.retry
        assert model.requests == []


async def test_many_answers_at_once(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="{n},", chunks=50, delay_ms=1, ending="end"))
    expected = "".join(delta(content=f"{n},") for n in range(50)).encode()
    async with client(model.url) as http:
        for status, body in await asyncio.gather(*(read_all(http) for _ in range(30))):
            assert (status, body) == (200, expected)
