"""The process that computes for `embedded`: `python -P -m covey.models.embedded_server`. Started by its client alone.

It reads one line from stdin, what to load; once it listens it writes one line to stdout, where. From then on llama.cpp
serves its OpenAI-compatible API on a loopback port, to clients with the key. It ends when its stdin does, which the
server holds and never writes to again: so it cannot outlive the server, however that ends. A model that crashes, or
that computes for minutes, does so here and hurts nobody.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import signal
import sys
import threading
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import msgspec

MAX_THREADS = 8
"""More do not help small models: they wait for memory, and for each other."""
NICENESS = 5
"""The server, the tools and the user's own programs come first."""
BATCH_TOKENS = 128
"""How much of a prompt is computed at once. What was begun cannot be stopped, so it is little."""

_PR_SET_PDEATHSIG = 1


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to load, and for whom."""

    model_file: str
    context_window: int
    api_key: str
    parent: int
    sha256: str = ""
    """Of the file; empty: it is the user's own, and believed."""
    is_tiny: bool = False


class Listening(msgspec.Struct, frozen=True):
    """What is answered."""

    port: int


class CannotLoad(Exception):
    """The text is for people."""


def main() -> None:
    # llama.cpp may write wherever it likes; only we write to what was our stdout.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    die_with(order.parent)
    threading.Thread(target=end_with, args=(sys.stdin.buffer,), daemon=True).start()
    try:
        check_digest(order)
        server = load(order)
    except CannotLoad as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(1)  # in an orderly end Python would wait for the thread that reads stdin
    port = urlsplit(server.listening_address).port
    assert port is not None
    answer.write(msgspec.json.encode(Listening(port)) + b"\n")
    answer.close()
    threading.Event().wait()  # llama.cpp has threads of its own


def die_with(parent: int) -> None:
    """Ask the kernel to kill us with our parent: also while a native call keeps all Python threads waiting."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(0)


def end_with(stdin: BinaryIO) -> None:
    """Leave as soon as nobody can write to our stdin any more."""
    with contextlib.suppress(OSError, ValueError):
        while stdin.read(4096):
            pass
    os._exit(0)


def check_digest(order: Order) -> None:
    """Weights are data that native code reads: those that we name must be the very ones we mean."""
    try:
        with open(order.model_file, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest() if order.sha256 else ""
    except OSError as error:
        raise CannotLoad(f"{order.model_file} cannot be read: {error.strerror}") from None
    if found != order.sha256:
        raise CannotLoad(f"{order.model_file} is damaged: delete it, and get it again with `covey models get`")


def load(order: Order) -> Any:
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise CannotLoad(f"xllamacpp cannot be imported ({error}): install covey[local]") from None

    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    params = xllamacpp.CommonParams()
    configure(params, order)
    try:
        return xllamacpp.Server(params)
    except Exception as error:
        raise CannotLoad(f"{order.model_file} cannot be loaded: {error}") from None


def configure(params: Any, order: Order) -> None:
    """One conversation at a time, for one client, with nothing else switched on."""
    params.model.path = order.model_file
    params.n_ctx = order.context_window
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.cache_ram_mib = 0  # the last conversation is remembered in the context itself
    params.warmup = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order.api_key]
    params.cors_origins = ""
    params.ui = False
    params.offline = True
    params.endpoint_slots = True  # by which the client sees whether anything is computed
    params.verbosity = 1
    if order.is_tiny:
        # A small model that draws lots freely loses its thread, and one that does not repeats itself.
        params.sampling.temp = 0.2
        params.sampling.top_p = 0.9
        params.sampling.penalty_repeat = 1.1


def threads() -> int:
    """One less than there are cores. Threads wait for each other at every step, and do so by computing: where something
    else needs one of the cores, all of them wait for the one that has none, and the answer takes ten times as long.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable - 1, MAX_THREADS))


if __name__ == "__main__":
    main()
