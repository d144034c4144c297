"""A process that one of our tools started is known by its tag, its own or that of an ancestor; nobody else is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from covey.machine.names import TAG_VARIABLE
from covey.protocol.errors import Forbidden
from covey.server.access import Access
from covey.server.peers import is_from_our_tools, peer_pid
from tests.server.site import scope

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")

WAITS = "import sys; print('here', flush=True); sys.stdin.read()"
CHILD_WITHOUT_TAG = f"""
import os, subprocess, sys
env = {{name: value for name, value in os.environ.items() if name != {TAG_VARIABLE!r}}}
child = subprocess.Popen([sys.executable, "-c", {WAITS!r}], env=env)
print(child.pid, flush=True)
child.wait()
"""


@contextmanager
def process(program: str, tag: str = "") -> Iterator[tuple[int, str]]:
    env = {**os.environ, **({TAG_VARIABLE: tag} if tag else {})}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        yield running.pid, running.stdout.readline()
        running.communicate()


def test_a_process_with_our_tag_is_from_our_tools_and_one_without_is_not() -> None:
    with process(WAITS, "covey-w-run/call") as (pid, _):
        assert is_from_our_tools(pid)
    with process(WAITS) as (pid, _):
        assert not is_from_our_tools(pid)


def test_a_child_that_dropped_the_tag_is_known_by_its_parent() -> None:
    with process(CHILD_WITHOUT_TAG, "covey-w-run/call") as (_, line):
        assert is_from_our_tools(int(line))


def test_what_is_gone_is_not_trusted() -> None:
    with process(WAITS) as (pid, _):
        pass
    assert is_from_our_tools(pid)


def test_the_server_itself_is_not_one_of_its_tools() -> None:
    assert not is_from_our_tools(os.getpid())
    assert not is_from_our_tools(0), "a system that does not say who is there"


def test_the_pid_of_a_peer_is_known_on_a_unix_socket_and_not_on_tcp() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_pid(one) == os.getpid()
    with socket.socket(socket.AF_INET) as tcp:
        assert peer_pid(tcp) == 0


def test_what_our_tools_started_may_read_and_prompt_and_nothing_else() -> None:
    with process(WAITS, "covey-w-run/call") as (pid, _):
        request = {**scope("POST", "/v1/control", {}), "covey.peer": pid}
        Access().require(request, "read")
        Access().require(request, "prompt")
        for may in ("approve", "admin"):
            with pytest.raises(Forbidden, match="answer from another terminal"):
                Access().require(request, may)
        Access(token="t").require(request, "admin")  # the token is the user's own
