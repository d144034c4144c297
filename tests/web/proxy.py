"""A way to the server that a test can cut, or let fall asleep: then nothing passes, and every socket says open."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class SleepyProxy:
    """On loopback, with a thread for each direction of each connection. It leaves neither a socket nor a thread behind."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._awake = threading.Event()
        self._awake.set()
        self._is_cut = False
        self._open: list[socket.socket] = []
        self._dead: list[socket.socket] = []
        """What slept through: neither speaks nor ends until the test is over."""
        self._lock = threading.Lock()
        self._acceptor = threading.Thread(target=self._accept)
        self._pumps: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._awake.set()
        end(self._listener)
        self._acceptor.join()
        # Only now is nothing added any more.
        for each in (*self._open, *self._dead):
            end(each)
        for pump in self._pumps:
            pump.join()

    def sleep(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._awake.clear()

    def wake(self) -> None:
        """What was under way is dead: a phone that comes back has another address."""
        with self._lock:
            self._dead += self._open
            self._open.clear()
        self._awake.set()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for each in self._open:
                end(each)
            self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._awake.wait()
            if not self._connect(near):
                end(near)

    def _connect(self, near: socket.socket) -> bool:
        """Whether it was not cut meanwhile. Under the lock: what a cut does not see, it cannot end."""
        with self._lock:
            if self._is_cut:
                return False
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return False
            self.connections += 1
            self._open += [near, far]
        for source, sink in ((near, far), (far, near)):
            self._pumps.append(threading.Thread(target=self._pump, args=(source, sink)))
            self._pumps[-1].start()
        return True

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self._awake.is_set():
                    return  # it fell asleep: these bytes are lost, and nobody is told
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


def end(each: socket.socket) -> None:
    """Closed, and whoever waits for it in another thread is woken: closing alone does not do that."""
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
