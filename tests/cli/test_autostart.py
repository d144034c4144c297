"""Finding, starting and replacing the server: one for all, however many ask at once."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from covey.cli import exits
from covey.client import connect as connect_module
from covey.client.connect import connect, owner_address
from covey.client.errors import ServerUnreachable, SocketGone
from covey.protocol.build import current_build
from covey.protocol.errors import Unauthorized
from covey.protocol.paths import Address, UnsafeDirectory
from tests.cli.conftest import WAIT_S, Home, finish, read_until
from tests.support.machine import free_port
from tests.support.stub_server import Connection, Request, StubServer, answer

VERSION = {"version": "0.0.1", "commit": "", "build_id": "other", "python_version": "3", "platform": "linux"}
BUSY = {"message": "the server has work", "code": "busy"}


def starts(home: Home) -> int:
    return (home.data_dir / "server.log").read_text().count("covey: listening on unix://")


def test_many_commands_at_once_start_one_server(own_home: Home) -> None:
    runs = [own_home.spawn("run", "-q", f"hello {number}") for number in range(6)]
    for number, run in enumerate(runs):
        assert finish(run) == (0, f"You said: hello {number}\n", "")
    assert starts(own_home) == 1
    assert stat.S_IMODE(own_home.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((own_home.data_dir / "server.log").stat().st_mode) == 0o600


def test_a_socket_that_a_killed_server_left_behind(own_home: Home) -> None:
    own_home.covey("run", "hello")
    os.kill(own_home.pid(), 9)
    assert own_home.socket.exists()
    done = own_home.covey("run", "-q", "hello")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")
    assert starts(own_home) == 2


@pytest.mark.parametrize("command", [("run", "-q", "hello"), ("status",), ("stop",)], ids=lambda command: command[0])
def test_a_server_whose_socket_was_removed_is_found_by_its_lock(own_home: Home, command: tuple[str, ...]) -> None:
    own_home.covey("run", "hello")
    pid = own_home.pid()
    own_home.socket.unlink()
    done = own_home.covey(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("No server" not in done.stdout, starts(own_home)) == (True, 1)
    if command[0] == "stop":
        assert done.stdout == "The server has ended.\n"
    else:
        assert own_home.pid() == pid


def test_a_server_whose_socket_does_not_come_back_is_named(own_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    own_home.covey("run", "hello")
    pid = own_home.pid()
    os.kill(pid, signal.SIGSTOP)
    own_home.socket.unlink()
    monkeypatch.setattr(connect_module, "SOCKET_BACK_S", 0.1)
    address = Address(path=str(own_home.socket))
    try:
        with pytest.raises(SocketGone, match=f"kill {pid}"):
            asyncio.run(connect_module._wait_for_socket(address, own_home.data_dir))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert own_home.covey("status").returncode == 0


def test_a_server_that_cannot_start_shows_why(own_home: Home) -> None:
    own_home.data_dir.mkdir(parents=True, mode=0o700)
    (own_home.data_dir / "covey.db").write_text("this is no store")
    done = own_home.covey("run", "hello")
    assert done.returncode == exits.UNREACHABLE
    assert "covey.db" in done.stderr


def test_a_data_directory_that_cannot_be_one_is_reported_in_a_sentence(own_home: Home) -> None:
    done = own_home.covey("run", "--data-dir", str(own_home.config), "hello")
    assert done.returncode == exits.UNREACHABLE
    assert done.stderr == (
        f"covey: The server could not start: {own_home.config} cannot be its data directory (File exists). "
        "Choose another with --data-dir.\n"
    )


def test_a_configuration_that_is_a_dangling_link_is_reported(own_home: Home) -> None:
    link = own_home.project / "link.toml"
    link.symlink_to("nowhere.toml")
    done = own_home.covey("serve", "--config", "link.toml")
    assert done.returncode == exits.FAILED
    assert done.stderr == f"covey serve: {link}: is a link to nowhere.toml, which is not there\n"


def test_another_data_directory_is_another_server(own_home: Home, tmp_path: Path) -> None:
    first = own_home.covey("run", "-q", "hello")
    second = own_home.covey("run", "-q", "--data-dir", str(tmp_path / "other"), "hello")
    assert (first.returncode, second.returncode) == (0, 0)
    assert own_home.covey("stop", "--data-dir", str(tmp_path / "other")).returncode == 0
    assert own_home.covey("status").returncode == 0


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_server_that_listens_elsewhere_is_found_by_its_data(own_home: Home, kind: str) -> None:
    address = f"unix://{own_home.runtime}/elsewhere.sock" if kind == "unix" else f"tcp://127.0.0.1:{free_port()}"
    server = own_home.spawn("serve", "--host", address)
    try:
        read_until(server, b"listening")
        done = own_home.covey("run", "-q", "hello")
        assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")
        assert (own_home.status()["address"], own_home.status()["pid"]) == (address, server.pid)
        stop = own_home.spawn("stop")
        server.wait(WAIT_S)  # it is our child, and gone only once we have heard of its end
        assert finish(stop)[:2] == (0, "The server has ended.\n")
    finally:
        server.kill()
        assert finish(server)[0] == 0
    assert own_home.covey("status").returncode == exits.UNREACHABLE
    assert not own_home.socket.exists()


@pytest.mark.parametrize("said", ["", "{", "[]", '{"pid": 1}', "alive", "dead"])
def test_only_a_server_that_holds_the_lock_is_believed(tmp_path: Path, said: str) -> None:
    pid = {"alive": os.getpid(), "dead": 2**22 + 1}.get(said)
    owner = json.dumps({"pid": pid, "address": "tcp://127.0.0.1:1"}) if pid else said
    assert owner_address(tmp_path) is None
    lock = tmp_path / "server.lock"
    lock.write_text(owner)
    assert owner_address(tmp_path) is None
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert owner_address(tmp_path) == (Address(host="127.0.0.1", port=1) if said == "alive" else None)


def test_a_project_cannot_put_a_module_in_the_way(own_home: Home) -> None:
    for name in ("msgspec.py", "asyncio.py", "covey.py"):
        (own_home.project / name).write_text("raise SystemExit('taken over')")
    command = Path(own_home.command()[0]).with_name("covey")
    import subprocess

    done = subprocess.run(
        [command, "run", "-q", "hello"], cwd=own_home.project, env=own_home.env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")


@pytest.mark.anyio
async def test_a_busy_server_of_another_build_is_used_as_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    async with StubServer(tmp_path / "s.sock") as server:
        server.on("GET", "/v1/version", answer(200, VERSION))
        server.on("POST", "/v1/control", answer(409, BUSY))
        server.on("DELETE", "/v1/clients/.*", answer(200))
        async with connect(str(server.address), say=said.append) as client:
            assert (await client.version()).version == "0.0.1"
        assert len(server.asked("DELETE", "/v1/clients/.*")) == 1
    assert server.asked("POST", "/v1/control")[0].json() == {"command": "shutdown_if_idle"}
    assert said == ["The running server is of another build and has work to do, so it is used as it is."]


@pytest.mark.anyio
async def test_an_idle_server_of_another_build_is_replaced(own_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in own_home.env.items():
        monkeypatch.setenv(name, value)
    old = StubServer(own_home.socket)
    await old.start()
    stopping: set[asyncio.Task[None]] = set()

    async def shut_down(request: Request, connection: Connection) -> None:
        await connection.answer(200, b"")
        stopping.add(asyncio.create_task(old.stop()))

    old.on("GET", "/v1/version", answer(200, VERSION))
    old.on("POST", "/v1/control", shut_down)
    async with connect() as client:
        assert (await client.version()).build_id == current_build().build_id
    await asyncio.gather(*stopping)


@pytest.mark.anyio
async def test_somebody_elses_server_is_never_replaced() -> None:
    said: list[str] = []
    async with StubServer() as server:
        server.on("GET", "/v1/version", answer(200, VERSION))
        server.on("DELETE", "/v1/clients/.*", answer(200))
        async with connect(str(server.address), say=said.append):
            pass
        assert server.asked("POST", "/v1/control") == []
    assert said == [f"The server is Covey 0.0.1, this is {current_build().version}."]


@pytest.mark.anyio
@pytest.mark.parametrize("status", [200, 404, 501])
async def test_another_program_at_that_address(status: int) -> None:
    async with StubServer() as server:
        server.on("GET", "/v1/version", answer(status, b"<html>Hello</html>", "text/html"))
        with pytest.raises(ServerUnreachable, match=r"No Covey server answers at tcp://[^<]*$"):
            async with connect(str(server.address)):
                pass


@pytest.mark.anyio
async def test_a_wrong_token_and_none_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COVEY_TOKEN", raising=False)
    async with StubServer() as server:
        server.on("GET", "/v1/version", answer(401, {"message": "no", "code": "unauthorized"}))
        with pytest.raises(Unauthorized, match="wants a token"):
            async with connect(str(server.address), data_dir=tmp_path):
                pass
        monkeypatch.setenv("COVEY_TOKEN", "wrong")
        with pytest.raises(Unauthorized, match="refused the token"):
            async with connect(str(server.address), data_dir=tmp_path):
                pass


@pytest.mark.anyio
async def test_the_token_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def used(**options: Path) -> str:
        async with StubServer() as server:
            server.on("GET", "/v1/version", answer(200, VERSION))
            server.on("DELETE", "/v1/clients/.*", answer(200))
            async with connect(str(server.address), **options):  # type: ignore[arg-type]
                pass
            return server.requests[0].headers.get("authorization", "")

    monkeypatch.delenv("COVEY_TOKEN", raising=False)
    assert await used(data_dir=tmp_path) == ""
    (tmp_path / "token").write_text("of-the-data-dir\n")
    assert await used(data_dir=tmp_path) == "Bearer of-the-data-dir"
    monkeypatch.setenv("COVEY_TOKEN", "of-the-environment")
    assert await used(data_dir=tmp_path) == "Bearer of-the-environment"
    (tmp_path / "given").write_text("of-the-file\n")
    assert await used(data_dir=tmp_path, token_path=tmp_path / "given") == "Bearer of-the-file"


@pytest.mark.anyio
async def test_a_place_that_others_can_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"covey-{os.getuid()}").mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with pytest.raises(UnsafeDirectory, match="chmod 700"):
        async with connect():
            pass


@pytest.mark.anyio
async def test_without_autostart_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(ServerUnreachable):
        async with connect(str(Address(path=str(tmp_path / "s.sock"))), autostart=False):
            pass
    assert list(tmp_path.iterdir()) == []
