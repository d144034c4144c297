"""Namespaces in which a dangerous line can be run without the sandbox that is tested, and proof that they hold.

The file system is read-only but for memory, with devices of its own; there is a loopback that nobody else is on; no
process of the machine can be seen. A program enters them itself (`python -m …`), never the process of the tests.
Nothing dangerous is run before `faults` has found none.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import msgspec

from covey.sandbox import kernel, namespaces

_MASKED = ("/tmp", "/var/tmp", "/run", "/mnt", "/media", "/dev")
"""Memory is put over these: sockets and files of others are there."""
_OF_THE_KERNEL = ("sys", "irq", "bus", "fs", "acpi", "scsi", "sysrq-trigger")
"""What of /proc belongs to the whole machine."""
_DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_MEMORY = ("tmpfs", "proc", "devpts")
"""File systems that may be written to."""
_NEW_IPC, _NEW_NAMES, _NEW_PIDS = 0x08000000, 0x04000000, 0x20000000
_CLONE, _RECURSIVE, _EMPTY_PATH, _TREE_ITSELF, _HERE = 1, 0x8000, 0x1000, 4, -100
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_PR_SET_PDEATHSIG = 1
SOURCE = Path(__file__).resolve().parents[2]


class Outer(msgspec.Struct, frozen=True):
    """What there is outside, and must not be reached from inside."""

    devices: int
    """The file system of /dev."""
    file: str
    port: int
    abstract: str


@contextmanager
def outer() -> Iterator[Outer]:
    """Something of each kind, for as long as a program is inside."""
    with ExitStack() as stack:
        file = Path(stack.enter_context(TemporaryDirectory())) / "outer"
        file.touch()
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract = f"covey-outer-{os.getpid()}"
        named.bind(f"\0{abstract}")
        named.listen()
        yield Outer(os.stat("/dev").st_dev, str(file), tcp.getsockname()[1], abstract)
    assert is_null_device(), "the /dev/null of this machine was changed"


def is_null_device() -> bool:
    found = os.lstat(os.devnull)
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)


def enter(work: Callable[[], None]) -> NoReturn:
    """Do the work inside, and exit. Raises OSError where the system does not allow it; nothing was done then.

    All that is inside ends with the program that has started this one. This process must have one thread.
    """
    kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    namespaces.enter(network=False)
    kernel.call(kernel.UNSHARE, _NEW_IPC | _NEW_NAMES | _NEW_PIDS)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _build()
    worker = os.fork()
    if worker == 0:
        _work(work)
    while True:  # whoever is first here inherits all orphans
        found, status = os.wait()
        if found == worker:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _work(work: Callable[[], None]) -> NoReturn:
    try:
        work()
        sys.stdout.flush()
    except BaseException:  # it must not be taken for a system that does not allow all this
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _build() -> None:
    here, places = os.getcwd(), dict.fromkeys(os.path.realpath(p) for p in (SOURCE, sys.prefix, sys.base_prefix))
    trees = {place: _cloned(place) for place in places if place.startswith(_MASKED)}
    devices = {name: _cloned(f"/dev/{name}") for name in _DEVICES}
    _make_read_only(os.open("/", os.O_PATH | os.O_CLOEXEC))
    for place in _MASKED:
        if os.path.isdir(place) and not os.path.islink(place):
            kernel.call(kernel.MOUNT, b"tmpfs", place.encode(), b"tmpfs", _NO_SETUID, b"mode=1777,size=1g")
    for place, tree in trees.items():
        os.makedirs(place, exist_ok=True)
        _attach(tree, place)
    kernel.call(kernel.MOUNT, b"proc", b"/proc", b"proc", _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS, None)
    for name in _OF_THE_KERNEL:
        if os.path.exists(f"/proc/{name}"):
            _attach(_cloned(f"/proc/{name}"), f"/proc/{name}")
    _make_devices(devices)
    os.chdir(here)


def _cloned(place: str) -> int:
    """A read-only mount of it, not mounted yet."""
    tree = kernel.call(kernel.OPEN_TREE, _HERE, place.encode(), _CLONE | _RECURSIVE | os.O_CLOEXEC)
    _make_read_only(tree)
    return tree


def _make_read_only(tree: int) -> None:
    attributes = _READ_ONLY.to_bytes(8, "little") + bytes(24)
    kernel.call(kernel.MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _RECURSIVE, attributes, len(attributes))


def _attach(tree: int, place: str) -> None:
    kernel.call(kernel.MOVE_MOUNT, tree, b"", _HERE, place.encode(), _TREE_ITSELF)
    os.close(tree)


def _make_devices(devices: dict[str, int]) -> None:
    """Of its own where that is allowed: the mode of a device that is mounted would be that of everybody's."""
    os.umask(0)
    for name, tree in devices.items():
        try:
            os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(1, _DEVICES[name]))
            os.close(os.open(f"/dev/{name}", os.O_RDONLY))
        except PermissionError:  # then nobody here has rights to the mode either
            Path(f"/dev/{name}").touch()
            _attach(tree, f"/dev/{name}")
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}")
    _make_read_only(os.open("/dev", os.O_PATH | os.O_CLOEXEC))
    kernel.call(kernel.MOUNT, b"devpts", b"/dev/pts", b"devpts", _NO_SETUID | _NO_PROGRAMS, b"newinstance,ptmxmode=666")
    kernel.call(kernel.MOUNT, b"tmpfs", b"/dev/shm", b"tmpfs", _NO_SETUID | _NO_DEVICES, b"mode=1777,size=64m")
    os.umask(0o022)


# ── the proof ──


def faults(outside: Outer) -> list[str]:
    """What of the outside can be reached or changed from here, by harmless trials; empty: nothing dangerous can be."""
    trials = {
        "a file outside can be written": lambda: open(outside.file, "a").close(),
        "the source can be written": lambda: (SOURCE / "isolation-probe").touch(),
        "the root can be written": lambda: Path("/isolation-probe").touch(),
        "devices can be removed": lambda: Path("/dev/isolation-probe").touch(),
        "the home can be written": lambda: (Path(os.path.expanduser("~")) / "isolation-probe").touch(),
        "the kernel's settings can be written": lambda: open("/proc/sys/kernel/hostname", "r+").close(),
        "the kernel can be sent keys": lambda: open("/proc/sysrq-trigger", "r+").close(),
        "the network outside can be reached": lambda: socket.create_connection(("127.0.0.1", outside.port), 1).close(),
        "abstract sockets outside can be reached": lambda: _connect(f"\0{outside.abstract}"),
    }
    found = [fault for fault, trial in trials.items() if not _refused(trial)]
    if os.stat("/dev").st_dev == outside.devices or not is_null_device():
        found.append("devices are those of the machine")
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        found.append("there is a network")
    if os.getpid() != 2 or len([name for name in os.listdir("/proc") if name.isdigit()]) != 2:
        found.append("there are other processes")
    return found + [f"{place} can be written" for place in _writable_mounts()]


def _writable_mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, source = line.partition(" - ")
        _, _, _, _, place, options, *_ = mount.split()
        if "rw" in options.split(",") and source.split()[0] not in _MEMORY:
            yield place


def _refused(trial: Callable[[], object]) -> bool:
    try:
        trial()
    except OSError:
        return True
    return False


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.connect(address)
