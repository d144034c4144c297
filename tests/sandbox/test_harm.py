"""Each kind of harm is done without the sandbox, and is not done with it. Real files, sockets and processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from covey.sandbox.policy import Policy, approved, unasked
from tests.sandbox.conftest import ABLE, Place, needs_landlock

pytestmark = [pytest.mark.anyio, needs_landlock]

PYTHON = sys.executable


@dataclass(frozen=True)
class Harm:
    """A command line, and whether what it wanted to do has happened. `{…}` are names of the trap."""

    name: str
    command: str
    done: Callable[[Trap, str], bool]
    approved_too: bool = True
    """Whether it is harm also if the command was approved."""


class Trap:
    """What could be harmed: a workspace, a home, sockets that listen, and a process of somebody else."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self.place = place
        self.tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.udp.bind(("127.0.0.1", 0))
        self.named = stack.enter_context(socket.socket(socket.AF_UNIX))
        self.named.bind(str(place.outside / "agent.sock"))
        self.named.listen()
        self.letterbox = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.letterbox.bind(str(place.outside / "log.sock"))
        self.abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        self.abstract_name = f"covey-test-{place.tag}"
        self.abstract.bind(f"\0{self.abstract_name}")
        self.abstract.listen()
        for endpoint in (self.tcp, self.udp, self.named, self.letterbox, self.abstract):
            endpoint.setblocking(False)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # a process inherits this
        self.victim = subprocess.Popen(
            ["sleep", "600"], env={"SECRET": "CANARY-ENVIRON"}, cwd=place.outside, start_new_session=True
        )
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        stack.callback(self._end)
        os.utime(place.root / "a.txt", (1, 1))

    def _end(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def words(self) -> dict[str, object]:
        port, udp_port = self.tcp.getsockname()[1], self.udp.getsockname()[1]
        numbers = {"port": port, "udp_port": udp_port, "victim": self.victim.pid}
        return {**vars(self.place), **numbers, "python": PYTHON, "abstract": self.abstract_name}

    def changed(self, name: str) -> bool:
        return (self.place.root / name).exists()


@contextmanager
def trap_in(place: Place) -> Iterator[Trap]:
    with ExitStack() as stack:
        yield Trap(place, stack)


def connected(endpoint: socket.socket) -> bool:
    try:
        endpoint.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def received(endpoint: socket.socket) -> bool:
    try:
        return bool(endpoint.recv(100))
    except BlockingIOError:
        return False


def was_signalled(process: subprocess.Popen[bytes]) -> bool:
    """Whether a signal waits for it: it blocks that, so that it stays to be seen."""
    [pending] = re.findall(r"^ShdPnd:\s*(\w+)$", Path(f"/proc/{process.pid}/status").read_text(), re.M)
    return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)


def prints(text: str) -> Callable[[Trap, str], bool]:
    return lambda _trap, output: text in output


def makes(name: str) -> Callable[[Trap, str], bool]:
    return lambda trap, _output: trap.changed(name)


def python(code: str) -> str:
    return f"'{{python}}' -I -c '{code}'"


def has_mode(trap: Trap, mode: int) -> bool:
    return (trap.place.root / "a.txt").stat().st_mode & 0o777 == mode


SYSCALL = "import ctypes; call = ctypes.CDLL(None, use_errno=True).syscall; "
KEYS = "250" if os.uname().machine == "x86_64" else "219"
TRACE = "101" if os.uname().machine == "x86_64" else "117"

HARMS = [
    Harm("write", "echo x > made", makes("made"), approved_too=False),
    Harm("append", "echo x >> a.txt", lambda t, _: "x" in (t.place.root / "a.txt").read_text(), approved_too=False),
    Harm("empty", ": > a.txt", lambda t, _: not (t.place.root / "a.txt").read_text(), approved_too=False),
    Harm("delete", "rm a.txt", lambda t, _: not t.changed("a.txt"), approved_too=False),
    Harm("rename", "mv a.txt b.txt", makes("b.txt"), approved_too=False),
    Harm("directory", "mkdir made", makes("made"), approved_too=False),
    Harm("link", "ln -s a.txt made; ln a.txt made2", lambda t, _: t.changed("made2"), approved_too=False),
    Harm("mode", "chmod 640 a.txt", lambda t, _: has_mode(t, 0o640), approved_too=False),
    Harm("time", "touch a.txt", lambda t, _: (t.place.root / "a.txt").stat().st_mtime > 1, approved_too=False),
    Harm(
        "truncate by reading",
        python('import os; os.open("a.txt", os.O_RDONLY | os.O_TRUNC)'),
        lambda t, _: not (t.place.root / "a.txt").read_text(),
        approved_too=False,
    ),
    Harm("write outside", "echo x > {outside}/made", lambda t, _: (t.place.outside / "made").exists()),
    Harm("delete outside", "rm {outside}/secret.txt", lambda t, _: not (t.place.outside / "secret.txt").exists()),
    Harm("write home", "echo x > ~/.bashrc", lambda t, _: (t.place.home / ".bashrc").exists()),
    Harm("read outside", "cat {outside}/secret.txt", prints("CANARY-OUTSIDE")),
    Harm("read home", "cat ~/notes.txt", prints("CANARY-HOME")),
    Harm("read keys", "cat ~/.ssh/id_rsa", prints("CANARY-KEY")),
    Harm("read our token", "cat {own}/token", prints("CANARY-TOKEN")),
    Harm("by a link", "ln -s ~/.ssh/id_rsa k; cat k; cat ready", prints("CANARY-KEY")),
    Harm("environment of others", "tr '\\0' '\\n' < /proc/{victim}/environ", prints("CANARY-ENVIRON")),
    Harm("by the directory of others", "cat /proc/{victim}/cwd/secret.txt", prints("CANARY-OUTSIDE")),
    Harm("by the root of others", "cat /proc/{victim}/root{outside}/secret.txt", prints("CANARY-OUTSIDE")),
    Harm("tcp", "echo x > /dev/tcp/127.0.0.1/{port}", lambda t, _: connected(t.tcp)),
    Harm("udp", "echo x > /dev/udp/127.0.0.1/{udp_port}", lambda t, _: received(t.udp)),
    Harm(
        "named socket",
        python('import socket; socket.socket(socket.AF_UNIX).connect("{outside}/agent.sock")'),
        lambda t, _: connected(t.named),
    ),
    Harm(
        "named socket by a pair",
        python('import socket; socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", "{outside}/log.sock")'),
        lambda t, _: received(t.letterbox),
    ),
    Harm(
        "abstract socket",
        python('import socket; socket.socket(socket.AF_UNIX).connect("\\0{abstract}")'),
        lambda t, _: connected(t.abstract),
    ),
    Harm("trace", python(SYSCALL + f"print(call({TRACE}, 16, {{victim}}, 0, 0) == 0)"), prints("True")),
    Harm("keyring", python(SYSCALL + f"print(call({KEYS}, 0, -4, 1) > 0)"), prints("True")),
    Harm("new namespace", "unshare -U true && echo entered", prints("entered")),
    *([Harm("signal", "kill {victim}", lambda t, _: was_signalled(t.victim))] if ABLE.landlock >= 6 else []),
]
NAMES = {harm.name: harm for harm in HARMS}


async def attempt(place: Place, harm: Harm, policy: Policy | None) -> bool:
    """Whether the harm is done. Each time in a fresh state."""
    place.git("clean", "-fdq")
    place.git("checkout", "-q", "--", ".")
    (place.root / "a.txt").chmod(0o644)
    for left in (*place.outside.glob("*"), place.home / ".bashrc"):
        left.unlink(missing_ok=True)
    (place.outside / "secret.txt").write_text("CANARY-OUTSIDE\n")
    Path(place.root / "ready").symlink_to(place.home / ".ssh" / "id_rsa")
    with trap_in(place) as trap:
        completed = await place.run(f"echo begun; {harm.command.format(**trap.words())}", policy)
        assert completed.output.startswith("begun\n")
        return harm.done(trap, completed.output)


@pytest.mark.parametrize("name", [*NAMES])
async def test_what_nobody_was_asked_about_does_no_harm(place: Place, name: str) -> None:
    assert await attempt(place, NAMES[name], None), "it is not done without the sandbox either"
    assert not await attempt(place, NAMES[name], unasked(place.facts()))


@pytest.mark.parametrize("name", [harm.name for harm in HARMS if harm.approved_too])
async def test_what_was_approved_does_no_harm_outside(place: Place, way: str, name: str) -> None:
    assert await attempt(place, NAMES[name], None), "it is not done without the sandbox either"
    assert not await attempt(place, NAMES[name], approved(place.facts()))


@pytest.mark.parametrize("name", [harm.name for harm in HARMS if not harm.approved_too])
async def test_what_was_approved_works_in_the_workspace(place: Place, way: str, name: str) -> None:
    assert await attempt(place, NAMES[name], approved(place.facts()))


async def test_the_network_is_there_if_it_was_allowed(place: Place, way: str) -> None:
    policy = approved(place.facts(), network=True)
    assert await attempt(place, NAMES["tcp"], policy)
    assert await attempt(place, NAMES["udp"], policy)
    assert not await attempt(place, NAMES["named socket"], policy)
    assert not await attempt(place, NAMES["abstract socket"], policy)


async def test_with_keys_whoever_keeps_them_is_reached_and_nobody_else(place: Place, way: str) -> None:
    if way == "landlock":
        pytest.skip("without a view there is no telling them apart, which is reported")
    policies = []
    with trap_in(place):
        place.env["SSH_AUTH_SOCK"] = str(place.outside / "agent.sock")
        policies = [approved(place.facts()), approved(place.facts(), network=True, credentials=True)]
    assert not await attempt(place, NAMES["named socket"], policies[0])
    assert await attempt(place, NAMES["named socket"], policies[1])
    assert await attempt(place, NAMES["read keys"], policies[1])
    assert not await attempt(place, NAMES["named socket by a pair"], policies[1])
    assert not await attempt(place, NAMES["read our token"], policies[1])


async def test_a_program_of_the_workspace_is_not_started_unasked(place: Place) -> None:
    program = place.root / "tool"
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    assert "started" in (await place.run("./tool", None)).output
    assert "started" not in (await place.run("./tool", unasked(place.facts()))).output


async def test_rights_of_root_are_given_up(place: Place, way: str) -> None:
    command = "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status"
    for policy in (unasked(place.facts()), approved(place.facts())):
        lines = dict(line.split(":\t") for line in (await place.run(command, policy)).output.splitlines())
        assert lines["NoNewPrivs"] == "1" and lines["Seccomp"] == "2"
        # At most: own files of others, change their modes, read them.
        assert int(lines["CapEff"], 16) & ~0b11111 == 0


async def test_covey_s_own_files_inside_of_the_workspace_are_not_read(place: Place) -> None:
    place.root = place.home  # somebody works in their home
    facts = place.facts()
    for policy in (unasked(facts), approved(facts)):
        assert "alpha" in (await place.run("cat project/a.txt", policy)).output
        for name in (".local/share/covey/token", ".ssh/id_rsa"):
            assert "CANARY" in (await place.run(f"cat {name}", None)).output
            assert "CANARY" not in (await place.run(f"cat {name}", policy)).output
