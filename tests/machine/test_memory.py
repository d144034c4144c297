"""The memory of a process that keeps keys: not for the other processes of the same user."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, os, subprocess, sys
from covey.machine.memory import close_memory
from covey.tools import process_table

if os.getuid() == 0:  # root may read everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1)  # as it is after an ordinary start

def peek(name):
    ran = subprocess.run(["/bin/cat", f"/proc/{os.getpid()}/{name}"], capture_output=True)
    return b"sk-canary" in ran.stdout

print(peek("environ"))
print(close_memory())
print(peek("environ"))
# What we start is as open as always: it is found by its tag, also what it starts itself.
env = {"PATH": "/usr/bin:/bin", process_table.TAG_VARIABLE: "covey-test-dump/1", "KEY": "sk-child"}
child = subprocess.Popen(["/bin/sh", "-c", "sleep 600 & echo ready; wait"], env=env, stdout=subprocess.PIPE,
                         start_new_session=True)
child.stdout.readline()
found = process_table.tagged("covey-test-dump", leader=child.pid)
print(len(found), process_table.relatives(child.pid) == found)
print(len(os.listdir("/proc/self/fd")) > 3)
process_table.send(found, 9)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no prctl")
def test_nobody_reads_our_environment_and_our_own_children_are_still_found() -> None:
    env = {**os.environ, "OPENAI_API_KEY": "sk-canary", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=60, cwd="/")
    assert ran.stdout.split("\n") == ["True", "True", "False", "2 True", "True", ""], ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="of the C library on Linux")
def test_threads_take_memory_from_one_place() -> None:
    """Else what eight threads have needed at their busiest stays in eight places, each at its own largest."""
    script = """
import ctypes, re, threading
from covey.machine.memory import keep_together

kept = keep_together()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
threads = [threading.Thread(target=lambda: libc.malloc(5000)) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
if kept:
    libc.malloc_stats()
print(kept)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    if done.stdout.strip() == "False":
        pytest.skip("this C library has no such setting")
    assert done.stderr.count("Arena ") == 1
