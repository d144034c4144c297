"""Stands before a server and stops at one moment for good: `python stopping.py FILE lines|frames COMMAND...`.

A moment is the start, or that a message came (`read METHOD`) or an answer left (`wrote METHOD`). FILE says at which to
stop, and each is noted in FILE.notes. With `hook EVENT` it is itself a hook, and its moments begin with the event.
It ignores TERM and the end of its input, and has a child in another session that does too. Uses nothing of ours.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

FILE, FORM, *COMMAND = sys.argv[1:]
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
asked: dict[Any, str] = {}
"""By the number of a request: its method."""
going_on = threading.Lock()


def note(text: str) -> None:
    with open(f"{FILE}.notes", "a") as file:
        file.write(text + "\n")


def moment(name: str) -> None:
    """Go on, or stop here, and everybody else at their next moment."""
    with going_on:
        note(name)
        with open(FILE) as file:
            stop_at = file.read()
        if name == stop_at:
            note("stopped")
            threading.Event().wait()


def message(source: IO[bytes]) -> tuple[bytes, dict[str, Any]] | None:
    """The next one, as it came and as it is read; None: there is no more."""
    if FORM == "lines":
        line = source.readline()
        return (line, json.loads(line)) if line else None
    head = b""
    while (line := source.readline()) not in (b"\r\n", b""):
        head += line
    if not head:
        return None
    body = source.read(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
    return head + b"\r\n" + body, json.loads(body)


def pass_on(source: IO[bytes], sink: IO[bytes], before: Callable[[str], None], after: Callable[[str], None]) -> None:
    while found := message(source):
        raw, said = found
        name = str(said.get("method") or f"answer to {asked.get(said.get('id'), '?')}")
        if "method" in said and "id" in said:
            asked[said["id"]] = name
        before(name)
        sink.write(raw)
        sink.flush()
        after(name)


def hook(event: str) -> None:
    moment(f"{event} started")
    sys.stdin.read()
    moment(f"{event} read")
    print("{}", flush=True)
    moment(f"{event} wrote")


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-S", "-c", DEAF], start_new_session=True, stdout=subprocess.DEVNULL)
    if FORM == "hook":
        hook(*COMMAND)
        return
    server = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin and server.stdout
    moment("started")

    def nothing(name: str) -> None:
        pass

    ways = [
        (sys.stdin.buffer, server.stdin, lambda name: moment(f"read {name}"), nothing),
        (server.stdout, sys.stdout.buffer, nothing, lambda name: moment(f"wrote {name}")),
    ]
    for way in ways:
        threading.Thread(target=pass_on, args=way, daemon=True).start()
    while True:
        signal.pause()


main()
