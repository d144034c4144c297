"""A view of the file system that has only what a command may see, and a network that leads nowhere. For the launcher.

The view is an empty file system in memory, into which the trees of the policy are mounted, read-only or not, at the
places where they always were. What is protected or hidden is mounted over. What is not mounted does not exist: in
particular no socket of anybody else.
"""

from __future__ import annotations

import os

from covey.sandbox import kernel

TYPE_CHECKING = False  # `typing` and `collections` take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable

NEW_MOUNTS, NEW_USER, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_ADMIN = 1 << 21  # CAP_SYS_ADMIN

_CLONE, _RECURSIVE, _EMPTY_PATH = 1, 0x8000, 0x1000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_PRIVATE_RECURSIVE = 1 << 18 | 1 << 14
_HERE, _TREE_ITSELF, _DETACH = -100, 4, 2
_SHM_OPTIONS = b"mode=1777"
_BASE = "/tmp"  # noqa: S108 - only a place to mount over, in a view that nobody else sees

_TREES = ("ro", "rw", "keep", "at")

Step = tuple[str, ...]
"""What to mount: ("ro" | "rw" | "keep", path), ("at", source, place), ("hide", path), ("link", path, target), ("dev",).

"keep" is "ro" for what may not exist.
"""


def enter(*, network: bool) -> None:
    """Leave the namespaces of everybody else; `network`: the network stays. Raises OSError where this is forbidden."""
    flags = NEW_MOUNTS | (0 if network else NEW_NETWORK)
    user, group = os.geteuid(), os.getegid()
    if kernel.capabilities() & _ADMIN:
        kernel.call(kernel.UNSHARE, flags)
    else:
        kernel.call(kernel.UNSHARE, flags | NEW_USER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    # Fails where a system gives out user namespaces without any rights in them.
    kernel.call(kernel.MOUNT, b"none", b"/", None, _PRIVATE_RECURSIVE, None)
    if not network:
        _loopback_up()


def build(steps: Iterable[Step]) -> None:
    """Make the view of these steps, each after what it is inside of, and go there."""
    present = (step for step in steps if step[0] != "keep" or os.path.lexists(step[1]))
    steps = sorted(present, key=lambda step: _place(step).count("/"))
    trees = [_tree(step) for step in steps]
    here = os.getcwd()
    kernel.call(kernel.MOUNT, b"tmpfs", os.fsencode(_BASE), b"tmpfs", _NO_SETUID, b"mode=0755")
    for step, tree in zip(steps, trees, strict=True):
        _mount(step, tree)
    os.chdir(_BASE)
    kernel.call(kernel.PIVOT_ROOT, b".", b".")
    kernel.call(kernel.UMOUNT, b".", _DETACH)
    _set_attributes(os.open("/", os.O_PATH), _READ_ONLY, recursive=False)
    os.chdir(here)


def _place(step: Step) -> str:
    if step[0] == "dev":
        return "/dev"
    return step[2 if step[0] == "at" else 1]


def _tree(step: Step) -> int:
    """The tree to mount, not mounted yet; -1: there is none, as it is made."""
    if step[0] not in _TREES:
        return -1
    tree = kernel.call(kernel.OPEN_TREE, _HERE, os.fsencode(step[1]), _CLONE | _RECURSIVE | os.O_CLOEXEC)
    _set_attributes(tree, _NO_SETUID | (_READ_ONLY if step[0] in ("ro", "keep") else 0), recursive=True)
    return tree


def _set_attributes(tree: int, attributes: int, *, recursive: bool) -> None:
    packed = attributes.to_bytes(8, "little") + bytes(24)
    flags = _EMPTY_PATH | (_RECURSIVE if recursive else 0)
    kernel.call(kernel.MOUNT_SETATTR, tree, b"", flags, packed, len(packed))


def _mount(step: Step, tree: int) -> None:
    kind, place = step[0], _BASE + _place(step)
    if kind in _TREES:
        _make(place, is_directory=os.path.isdir(f"/proc/self/fd/{tree}"))
        kernel.call(kernel.MOVE_MOUNT, tree, b"", _HERE, os.fsencode(place), _TREE_ITSELF)
        os.close(tree)
    elif kind == "hide":
        _hide(place)
    elif kind == "link":
        os.symlink(step[2], place)
    else:
        _devices(place)


def _make(place: str, *, is_directory: bool) -> None:
    """What something can be mounted on, if it is not there."""
    if os.path.lexists(place):
        return
    os.makedirs(place if is_directory else os.path.dirname(place), 0o755, exist_ok=True)
    if not is_directory:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _hide(place: str) -> None:
    """Put something empty over it."""
    if os.path.isdir(place):
        kernel.call(kernel.MOUNT, b"tmpfs", os.fsencode(place), b"tmpfs", _READ_ONLY | _NO_SETUID, b"mode=0555,size=4k")
    elif os.path.lexists(place):
        tree = kernel.call(kernel.OPEN_TREE, _HERE, b"/dev/null", _CLONE | os.O_CLOEXEC)
        kernel.call(kernel.MOVE_MOUNT, tree, b"", _HERE, os.fsencode(place), _TREE_ITSELF)
        os.close(tree)


def _devices(place: str) -> None:
    """Memory and terminals of its own, and the usual links. The devices themselves are mounted like other files."""
    os.makedirs(f"{place}/shm")
    os.makedirs(f"{place}/pts")
    kernel.call(kernel.MOUNT, b"tmpfs", os.fsencode(f"{place}/shm"), b"tmpfs", _NO_SETUID | _NO_DEVICES, _SHM_OPTIONS)
    options = b"newinstance,ptmxmode=0666,mode=0620"
    kernel.call(kernel.MOUNT, b"devpts", os.fsencode(f"{place}/pts"), b"devpts", _NO_SETUID | _NO_PROGRAMS, options)
    links = (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"))
    for name, target in (*links, ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        os.symlink(target, f"{place}/{name}")


def _loopback_up() -> None:
    import _socket  # what the module `socket` is around; that takes ten times as long to import
    from fcntl import ioctl

    with_name = b"lo".ljust(16, b"\0")
    endpoint = _socket.socket(2, 2)
    try:
        ioctl(endpoint.fileno(), 0x8914, with_name + (0x1 | 0x40).to_bytes(2, "little") + bytes(22))  # SIOCSIFFLAGS
    finally:
        endpoint.close()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
