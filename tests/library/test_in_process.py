"""What is special about a server inside of a program: who owns the data, how it ends, and who else can reach it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import covey
from covey.client.connect import find_owner
from covey.protocol.errors import Forbidden
from covey.protocol.paths import Address
from covey.server.data_dir import owned
from tests.library.conftest import write_config
from tests.support import oracle

pytestmark = pytest.mark.anyio

SOON_S = 30.0


@pytest.fixture
def opened(project: Path, tmp_path: Path) -> covey.Opened:
    return covey.open(project, data_dir=tmp_path / "data", config_file=write_config(tmp_path / "config"))


# ── no socket, no child, one owner ──


async def test_it_neither_listens_nor_starts_a_process(
    opened: covey.Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("no socket and no process is needed")

    monkeypatch.setattr("socket.socket.listen", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    async with opened as client:
        assert (await client.ask("hello")).text == "You said: hello"
        assert find_owner(tmp_path / "data") is None


async def test_a_server_that_owns_the_data_is_named_with_the_way_to_it(opened: covey.Opened, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with owned(tmp_path / "data") as announce:
        announce(Address(path="/run/covey.sock"))
        with pytest.raises(covey.DataDirInUse, match=r"use `client\.another"):
            await opened.__aenter__()
    script = (
        "import sys, pathlib\nfrom covey.server.data_dir import owned\nfrom covey.protocol.paths import Address\n"
        "with owned(pathlib.Path(sys.argv[1])) as announce:\n"
        "    announce(Address(path='/run/covey.sock') if sys.argv[2] else None)\n    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    for address, advice in (("/run/covey.sock", r"use covey\.connect\(\)"), ("", r"another program \(pid \d+\)")):
        command = [sys.executable, "-c", script, str(tmp_path / "data"), address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
            assert owner.stdout
            assert owner.stdout.readline() == b"ready\n"
            with pytest.raises(covey.DataDirInUse, match=advice) as taken:
                await opened.__aenter__()
            assert taken.value.pid == owner.pid
            owner.communicate()
    async with opened as client:
        assert (await client.health()).status == "ok"


async def test_no_server_starts_beside_it_and_the_refusal_says_why(opened: covey.Opened, tmp_path: Path) -> None:
    async with opened:
        with pytest.raises(covey.DataDirInUse, match=r"with covey\.open\(\)"), owned(tmp_path / "data"):
            pass
    with owned(tmp_path / "data"):
        pass


async def test_what_cannot_be_opened_leaves_nothing_behind(project: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path / "config")
    wrong = covey.open(project / "nowhere", data_dir=tmp_path / "data", config_file=config)
    before = set(threading.enumerate())
    with pytest.raises(covey.ApiError, match="is not a directory"):
        await wrong.__aenter__()
    assert {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("covey-")} == set()
    with owned(tmp_path / "data"):
        pass


async def test_a_temporary_one_keeps_nothing(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    async with covey.open(project, temporary=True, config_file=write_config(tmp_path / "config")) as client:
        assert (await client.ask("hello")).outcome == "completed"
        assert Path(client.home.data_dir).parent == tmp_path / "temp"
    assert list((tmp_path / "temp").iterdir()) == []


# ── the end ──


async def test_leaving_ends_open_runs_as_a_shutdown_does_and_the_next_one_goes_on(
    opened: covey.Opened, project: Path, tmp_path: Path
) -> None:
    async with opened as client:
        stream = client.stream("hang")
        async for event in stream:
            if isinstance(event.payload, covey.MessageDelta):
                break
        queued = covey.PostPrompt(session_id=stream.session_id, prompt="later", run_id="queued")
        await client.post_prompt(client.workspace_id, queued)
    oracle.check(tmp_path / "data", all_ended=False)
    config = tmp_path / "config" / "config.toml"
    async with covey.open(project, data_dir=tmp_path / "data", config_file=config) as again:
        assert (await again.run(again.workspace_id, stream.run_id)).state in ("cancelled", "interrupted")
        assert (await again.run(again.workspace_id, "queued", wait=SOON_S)).ended


async def test_who_waits_for_a_run_when_it_is_closed_hears_of_its_end(opened: covey.Opened) -> None:
    async with opened as client:
        begun = asyncio.Event()

        async def watch() -> covey.RunComplete:
            stream = client.stream("hang")
            async for event in stream:
                if isinstance(event.payload, covey.MessageDelta):
                    begun.set()
            return stream.result

        watching = asyncio.create_task(watch())
        await begun.wait()
    async with asyncio.timeout(SOON_S):
        assert (await watching).outcome in ("cancelled", "interrupted")


async def test_after_the_end_everything_says_that_it_is_closed(opened: covey.Opened) -> None:
    async with opened as client:
        stream = covey.EventStream(client, client.workspace_id, first_delay_s=0.001)
        await stream.__aenter__()
        await client.control("shutdown")
    with pytest.raises(covey.Closed, match="entered once"):
        await opened.__aenter__()
    for call in (client.health(), client.ask("hello"), opened.serve()):
        with pytest.raises(covey.Closed):
            await call
    async with asyncio.timeout(SOON_S):
        with pytest.raises(covey.Closed):
            async for _ in stream:
                pass


async def test_an_answer_that_the_server_refuses_ends_the_run_instead_of_leaving_it_waiting(
    opened: covey.Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a program that one of Covey's own tools started: it may not approve, and nobody else is there."""

    async def refused(*_: object, **__: object) -> bool:
        raise Forbidden("a tool may not do this", "may_not_approve")

    async with opened as client, asyncio.timeout(SOON_S):
        monkeypatch.setattr(client, "answer_permission", refused)
        stream = client.stream("make it")
        with pytest.raises(Forbidden):
            await stream.read_to_end()
        assert (await client.run(client.workspace_id, stream.run_id)).state == "cancelled"


# ── others ──


async def test_once_it_listens_any_client_attaches_and_may_shut_it_down(opened: covey.Opened, tmp_path: Path) -> None:
    async with opened as client:
        socket = await opened.serve()
        assert await opened.serve() == socket
        owner = find_owner(tmp_path / "data")
        assert owner
        assert (str(owner.address), owner.pid) == (socket, os.getpid())
        async with covey.connect(client.home.path, host=socket, autostart=False) as outside:
            answer = await client.ask("hello")
            assert await outside.run(outside.workspace_id, answer.run_id) == await client.run(
                client.workspace_id, answer.run_id
            )
            await outside.control("shutdown")
    assert not Path(socket.removeprefix("unix://")).exists()


async def test_the_command_line_finds_one_that_listens_and_learns_of_one_that_does_not(
    opened: covey.Opened, project: Path, tmp_path: Path
) -> None:
    async def run() -> tuple[int | None, str, str]:
        command = ("-m", "covey", "run", "--data-dir", str(tmp_path / "data"), "hello")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=-1
        )
        stdout, stderr = await process.communicate()
        return process.returncode, stdout.decode(), stderr.decode()

    async with opened as client:
        code, _, said = await run()
        assert (code, "let it listen with `serve()`" in said) == (3, True), said
        await opened.serve()
        assert (await run())[:2] == (0, "You said: hello\n")
        assert len(await client.sessions(client.workspace_id)) == 1


async def test_a_reader_that_stops_reading_makes_the_answer_wait_and_misses_nothing(opened: covey.Opened) -> None:
    async with opened as client:
        stream = client.stream("long")
        pieces: list[str] = []
        async for piece in stream.text():
            pieces.append(piece)
            if len(pieces) == 1:  # meanwhile the run goes on, and ends
                assert (await client.run(client.workspace_id, stream.run_id, wait=SOON_S)).ended
        assert "".join(pieces) == stream.result.text


async def test_it_works_in_a_thread_while_the_caller_has_a_loop_of_its_own(opened: covey.Opened) -> None:
    """As in a notebook: blocking calls, though a loop runs in this very thread."""
    with covey.SyncClient(opened) as client:
        assert client.ask("hello").text == "You said: hello"
        assert len(client.wait(client.client.sessions(client.client.workspace_id))) == 1
        stream = client.stream("make two")
        *_, last = stream
        assert isinstance(last.payload, covey.RunComplete)
        assert last.payload.run_id == stream.run_id
        assert [denied.tool for denied in stream.result.denied] == ["bash"]
        hanging = client.stream("hang")
        next(hanging)
        assert hanging.cancel().covered
        assert [event.type for event in hanging][-1] == "run_complete"
        assert hanging.result.cancelled
    with pytest.raises(covey.ApiError), covey.SyncClient(covey.open("nowhere", temporary=True)):
        pass
