"""Runs one dangerous line among canaries, inside of `isolation`, and says what harm was seen. See `corpus_runner`."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from pathlib import Path

from covey.sandbox.facts import gather
from covey.sandbox.policy import approved, is_within, unasked
from covey.sandbox.probe import wrap
from covey.sandbox.starter import STARTER, launch
from covey.tools.processes import Started
from tests.permissions.dangerous_project import LONG_AGO, SECRET_FILES, VARIABLE, DangerousProject

LIMIT_S, LATER_S = 5.0, 1.5
"""How long a line may take, and how long what it has left running is watched."""
_OPEN_S = 0.25
"""After this a connection is closed: some programs wait for that."""
_OUTPUT_LIMIT = 2_000_000
_KEPT = sum(1 << number for number in (0, 1, 2, 3, 4, 5, 6, 7, 10, 18))
"""Rights of root for a line without sandbox: to files and processes, never to the machine."""
_ELSEWHERE = ("/tmp", "/var/tmp", "/run", "/mnt", "/media", "/dev/shm")
_COPIED = ("ws", "home", "temp")
_PARTS = (*_COPIED, "out", "mark")

Snapshot = dict[str, tuple[object, ...]]


class How(Enum):
    """Under what a line is run."""

    BARE = "bare"
    UNASKED = "unasked"
    APPROVED = "approved"


@dataclass(frozen=True)
class Secrets:
    files: tuple[str, str]
    variable: str


FIRST = Secrets(("CANARYsec-7d41f0c2", "CANARYdeep-55aa10"), "CNRYkey-k3y9f2c71")
SAME_LENGTH = Secrets(("windowSEC_9e02b6d1", "harborDEEP_71bb29"), "zq8Xrot_1a0d55zzw")
LONGER = Secrets(("windowSEC_9e02b6d1zzz", "harborDEEP_71bb29qqq"), "zq8Xrot_1a0d55zzwwww")


@dataclass(frozen=True)
class Seen:
    """What happened while a line was run."""

    output: bytes
    connections: frozenset[str]
    changed: frozenset[str]
    """Paths that are new, gone or different."""
    opened: bool
    """Whether a file outside was read, by the time that its file system keeps."""
    timed_out: bool
    exit_code: int | None


class Listeners:
    """What accepts connections, and counts them by kind. One thread: `wait` also serves."""

    def __init__(self, project_socket: Path, abstract: str) -> None:
        self.hits: set[str] = set()
        self._selector = selectors.DefaultSelector()
        self._open: dict[socket.socket, float] = {}
        self._path = project_socket
        self.port = self._listen("tcp", socket.SOCK_STREAM)
        self.udp_port = self._listen("udp", socket.SOCK_DGRAM)
        self._add("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}")
        self.renew()

    def _listen(self, kind: str, style: int) -> int:
        port = int(self._add(kind, socket.AF_INET, style, ("127.0.0.1", 0)).getsockname()[1])
        with suppress(OSError):  # not every machine has it
            self._add(kind, socket.AF_INET6, style, ("::1", port))
        return port

    def _add(self, kind: str, family: int, style: int, address: str | tuple[str, int]) -> socket.socket:
        endpoint = socket.socket(family, style)
        if family == socket.AF_INET6:
            endpoint.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        endpoint.bind(address)
        if style == socket.SOCK_STREAM:
            endpoint.listen(64)
        endpoint.setblocking(False)
        self._selector.register(endpoint, selectors.EVENT_READ, kind)
        return endpoint

    def renew(self) -> None:
        """Forget what was seen; and a line may have removed the name of the socket."""
        self.hits.clear()
        if not self._path.exists() or not stat.S_ISSOCK(self._path.lstat().st_mode):
            self._path.unlink(missing_ok=True)
            self._add("socket", socket.AF_UNIX, socket.SOCK_STREAM, str(self._path))

    @contextmanager
    def reading(self, pipe: int) -> Iterator[bytearray]:
        """What comes out of a pipe, as `wait` finds it; it is closed at the end."""
        output = bytearray()
        os.set_blocking(pipe, False)
        self._selector.register(pipe, selectors.EVENT_READ, output)
        try:
            yield output
        finally:
            with suppress(KeyError):
                self._selector.unregister(pipe)
            os.close(pipe)

    def wait(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, bytearray):
                self._read(key.fd, key.data)
                continue
            endpoint = key.fileobj
            assert isinstance(endpoint, socket.socket)
            with suppress(OSError):
                self._serve(endpoint, str(key.data))
        for endpoint in [one for one, until in self._open.items() if until < time.monotonic()]:
            self._close(endpoint)

    def _read(self, pipe: int, output: bytearray) -> None:
        with suppress(BlockingIOError):
            data = os.read(pipe, 65536)
            if not data:
                self._selector.unregister(pipe)
            elif len(output) < _OUTPUT_LIMIT:
                output += data

    def _serve(self, endpoint: socket.socket, kind: str) -> None:
        if kind == "open":
            endpoint.recv(65536)
            self._close(endpoint)
            return
        self.hits.add(kind)
        if kind == "udp":
            endpoint.recv(65536)
            return
        accepted, _ = endpoint.accept()
        self._open[accepted] = time.monotonic() + _OPEN_S
        self._selector.register(accepted, selectors.EVENT_READ, "open")

    def _close(self, endpoint: socket.socket) -> None:
        self._selector.unregister(endpoint)
        del self._open[endpoint]
        endpoint.close()


class Trap:
    """The project in a directory of its own, fresh for every line."""

    def __init__(self, base: Path, env: Mapping[str, str]) -> None:
        home, temp = base / "home", base / "temp"
        for directory in (base, home, temp):
            directory.mkdir(parents=True)
        plain = DangerousProject(base)
        self.base = base
        self.listeners = Listeners(plain.socket, plain.words["@ABS@"])
        self.project = DangerousProject(base, self.listeners.port, self.listeners.udp_port)
        self.env = {**env, "HOME": str(home), VARIABLE: FIRST.variable}
        self.project.make_workspace(self.env)
        self.project.make_outside(FIRST.files)
        self._clean: Snapshot | None = None
        facts = gather(self.project.root, temp, self.env, [self.project.outside, self.project.socket])
        # For the approved one what is outside is Covey's own.
        self.policies = {How.UNASKED: unasked(facts), How.APPROVED: approved(facts)}
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for how in (How.UNASKED, How.APPROVED):  # which makes directories that it needs: those are no harm
            self._child(how, "true", nowhere, self.env).wait()
        self._ours = set(_processes())
        self._template = self.base.with_name("template")
        for part in _COPIED:
            shutil.copytree(self.base / part, self._template / part, symlinks=True)

    def run(self, line: str, how: How, secrets: Secrets = FIRST) -> Seen:
        before = self._fresh(secrets)
        for file in self._secret_files():
            os.utime(file, (LONG_AGO, LONG_AGO))
        pipe, end = os.pipe()
        with self.listeners.reading(pipe) as output:
            child = self._child(how, self.project.filled(line), end, {**self.env, VARIABLE: secrets.variable})
            os.close(end)
            in_time = self._watch(child)
        opened = any(file.exists() and file.stat().st_atime != LONG_AGO for file in self._secret_files())
        after = self._snapshot()
        changed = frozenset(path for path, _ in before.items() ^ after.items())
        self._clean = None if changed else before
        return Seen(bytes(output), frozenset(self.listeners.hits), changed, opened, not in_time, child.returncode)

    def _secret_files(self) -> list[Path]:
        return [self.project.outside / name for name in SECRET_FILES]

    def _child(self, how: How, line: str, output: int, env: Mapping[str, str]) -> Started:
        command = ["/bin/bash", "-c", line]
        if how is How.BARE:
            return STARTER.start(command, self.project.root, env, ["capabilities", f"{_KEPT:x}"], output)
        wrapped = wrap(command, self.policies[how], env)
        assert wrapped.plan.steps, "there is no sandbox here"
        return launch(wrapped, self.project.root, output)

    def _watch(self, child: Started) -> bool:
        """Until it and all that it has started have ended; whether the line itself did in time."""
        until, ended = time.monotonic() + LIMIT_S, False
        while time.monotonic() < until:
            self.listeners.wait(0.005)
            if not ended and child.poll() is not None:
                ended, until = True, time.monotonic() + LATER_S
            if ended and not self._left():
                break
        while left := self._left() + ([] if child.poll() is not None else [child.pid]):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.listeners.wait(0.005)
        for _ in range(4):  # what was sent before the end, and at most as much as a pipe holds
            self.listeners.wait(0.002)
        return ended

    def _left(self) -> list[int]:
        return [pid for pid in _processes() if pid not in self._ours]

    def _fresh(self, secrets: Secrets) -> Snapshot:
        if self._clean is None:
            for part in _PARTS:
                shutil.rmtree(self.base / part, ignore_errors=True)
            for path in (path for place in (str(self.base), *_ELSEWHERE) for path in _strays(place, self._kept())):
                shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):
                    os.unlink(path)
            for part in _COPIED:
                shutil.copytree(self._template / part, self.base / part, symlinks=True)
        self.project.make_outside(secrets.files)
        self.listeners.renew()
        return self._snapshot()

    def _kept(self) -> list[str]:
        return [*(str(self.base / part) for part in _PARTS), str(self.project.socket), str(self._template)]

    def _snapshot(self) -> Snapshot:
        found = {path: _state(path) for part in _PARTS for path in _walk(self.base / part)}
        found |= {path: () for place in (str(self.base), *_ELSEWHERE) for path in _strays(place, self._kept())}
        return found

    def where(self, changed: Sequence[str] | frozenset[str], how: How) -> set[str]:
        """Whose the changed paths are, as far as they are not for a command that runs like this."""
        root, free = str(self.project.root), how is How.APPROVED
        policy = self.policies.get(how)
        found = set()
        for path in changed:
            if policy and any(is_within(path, place) for place in policy.protected):
                found.add("protected")
            elif policy and any(is_within(path, place) for place in policy.writable):
                continue
            elif is_within(path, root):
                found |= set() if free else {"workspace"}
            else:
                found.add("outside")
        return found


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    yield int(name)


def _strays(place: str, kept: Sequence[str]) -> Iterator[str]:
    """What lies there and is not ours, nor on the way to what is."""
    with suppress(OSError):
        for entry in os.scandir(place):
            if not any(is_within(path, entry.path) for path in kept) and not os.path.ismount(entry.path):
                yield entry.path


def _walk(top: Path) -> Iterator[str]:
    yield str(top)
    for directory, directories, files in os.walk(top):
        yield from (f"{directory}/{name}" for name in (*directories, *files))


def _state(path: str) -> tuple[object, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    kind, mode = stat.S_IFMT(found.st_mode), found.st_mode
    with suppress(OSError):
        names = tuple(os.listxattr(path, follow_symlinks=False))
        if kind != stat.S_IFREG:
            changed_at = 0 if kind == stat.S_IFDIR else found.st_mtime_ns
            return (mode, found.st_uid, found.st_gid, names, changed_at)
        content = blake2b(Path(path).read_bytes()).digest() if found.st_size < 200_000 else b""
        return (mode, found.st_uid, found.st_gid, names, found.st_size, found.st_mtime_ns, found.st_nlink, content)
    return (mode,)
