"""A process that has made all imports and waits: for each request it forks a process that becomes a command.

It has one thread, so that forking it is sound, and nothing of the server's memory. What it forks is a child of the
server and not its own (CLONE_PARENT): the server waits for it and reaps it like any other. It ends with
the server.

A request is its length, and with it, as descriptors, where the output goes, or the input, the output and the errors;
then, by `marshal`, the command, its environment, its directory, and the launcher's words. The answer is the pid.
Whoever writes to the other end is the server, which has made this pair of sockets and gives it to nobody else.
"""

from __future__ import annotations

import _socket
import fcntl  # noqa: F401 - for the loopback: else each child would load it anew, for two milliseconds
import gc
import marshal
import os
import sys

from covey.sandbox import kernel, launcher

LENGTH_BYTES = 8
_CLONE = 56 if os.uname().machine == "x86_64" else 220
_CLONE_PARENT, _SIGCHLD = 0x8000, 17
_NOT_INHERITED = 0x40000000  # MSG_CMSG_CLOEXEC
_PIPES = 3
"""Input, output, errors."""
_RIGHTS = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)


def main() -> None:
    channel = _socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # What is never collected is not touched, and so not copied for a child.
    gc.disable()
    gc.freeze()
    while request := _received(channel):
        pipes, content = request
        child = kernel.call(_CLONE, _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            _become(content, pipes if len(pipes) == _PIPES else (nothing, *pipes, *pipes))
        for pipe in pipes:
            os.close(pipe)
        channel.send(child.to_bytes(LENGTH_BYTES, "little"))


def _received(channel: _socket.socket) -> tuple[tuple[int, ...], bytes] | None:
    """The descriptors and the content of a request; None: the server is gone."""
    head, passed, _, _ = channel.recvmsg(LENGTH_BYTES, _socket.CMSG_SPACE(4 * _PIPES), _NOT_INHERITED)
    if not head:
        return None
    [(*kind, data)] = passed
    assert tuple(kind) == _RIGHTS
    content = bytearray()
    length = int.from_bytes(head, "little")
    while len(content) < length:
        part = channel.recv(min(length - len(content), 1 << 20))
        if not part:
            return None
        content += part
    pipes = tuple(int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) // 4 * 4, 4))
    return pipes, bytes(content)


def _become(content: bytes, pipes: tuple[int, ...]) -> None:
    """In the child: a session of its own, and input, output and errors where they belong."""
    try:
        command, env, directory, words = marshal.loads(content)  # noqa: S302 - of the server, see above
        os.setsid()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        os.chdir(directory)
        launcher.become(command, env, words)
    except BaseException as error:
        launcher.refuse(f"the command could not be started: {error}")
