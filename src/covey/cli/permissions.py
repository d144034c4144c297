"""Answers what the tools of one run ask for: always yes, or by asking the person at the terminal, or no.

Requests of other runs are left to whoever started them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress
from typing import Literal

from covey.cli.request_text import request_text
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.protocol.errors import CoveyError
from covey.protocol.events import Event, PermissionNotification, PermissionRequest

Action = Literal["allow", "allow_session", "deny"]

ANSWERS: dict[str, Action] = {
    "y": "allow",
    "yes": "allow",
    "a": "allow_session",
    "always": "allow_session",
    "n": "deny",
    "no": "deny",
}
ALWAYS = {"execute": "this very command", "write": "changes to this file", "read": "this very file"}
"""What an answer for the session covers, by the action that is asked for."""


def question(request: PermissionRequest) -> str:
    return f"Allow it? [y]es, [n]o, [a]lways {ALWAYS.get(request.action, 'exactly this')} in this session: "


def find_terminal() -> int | None:
    """The descriptor on which a person can answer; None if nobody can.

    The question is on stderr, so that must be a terminal. The answer comes from stdin or, if the prompt came in there,
    from the terminal behind it. A job in the background would be stopped by the kernel if it read.
    """
    if not sys.stderr.isatty():
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        terminal = sys.stdin.fileno()
    else:
        try:
            terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
    with suppress(OSError):
        if os.tcgetpgrp(terminal) == os.getpgrp():
            return terminal
    return None


class Permissions:
    """The permission requests of one run. Fed with events; answers in tasks of its own."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, screen: Screen, *, yolo: bool) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._screen = screen
        self._yolo = yolo
        self._terminal = None if yolo else find_terminal()
        self._open: dict[str, PermissionRequest] = {}
        """Only where somebody can be asked: the requests that nobody has answered yet."""
        self._asked = ""
        """The id of the request that the person is looking at."""
        self._stopped = False
        self._told: set[str] = set()
        self._answering: set[asyncio.Task[None]] = set()

    def event(self, event: Event) -> None:
        match event.payload:
            case PermissionRequest() as request if request.run_id in (None, self._run_id) and not self._stopped:
                self._requested(request)
            case PermissionNotification() as notification if notification.permission_id in self._open:
                self._resolved(notification)

    def stop(self) -> None:
        """The run is being cancelled, which closes its requests: there is nothing to ask any more."""
        if self._asked:
            self._screen.clear()
        self._stopped, self._asked = True, ""
        self._open.clear()
        self.close()

    def close(self) -> None:
        if self._terminal is not None:
            asyncio.get_running_loop().remove_reader(self._terminal)

    def _requested(self, request: PermissionRequest) -> None:
        """May come again after a reconnect, if our answer was lost: then it is answered again."""
        if self._yolo:
            self._answer(request.id, "allow")
        elif self._terminal is None:
            self._answer(request.id, "deny")
            self._tell_denied(request)
        else:
            self._open.setdefault(request.id, request)
            if not self._asked:
                self._ask_next()

    def _tell_denied(self, request: PermissionRequest) -> None:
        if request.id not in self._told:
            self._told.add(request.id)
            self._screen.warn(
                f"denied, because nobody is here to be asked: {request.tool_name}: {request.description}\n"
                f'Allow it with --yolo, or with permissions.allow = ["{request.tool_name}"] '
                "in ~/.config/covey/config.toml."
            )

    def _resolved(self, notification: PermissionNotification) -> None:
        """Somebody answered: we did, or another client, or the run was cancelled meanwhile."""
        assert notification.permission_id is not None
        self._open.pop(notification.permission_id)
        if self._asked == notification.permission_id:
            self._screen.say("answered elsewhere: " + ("allowed" if notification.granted else "denied"))
            self._asked = ""
            self._ask_next()

    def _ask_next(self) -> None:
        assert self._terminal is not None
        loop = asyncio.get_running_loop()
        request = next(iter(self._open.values()), None)
        if request is None:
            loop.remove_reader(self._terminal)
            return
        self._asked = request.id
        # What was typed before the question was there is no answer to it.
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        self._screen.ask(f"{request_text(request)}\n{question(request)}")
        loop.add_reader(self._terminal, self._read)

    def _read(self) -> None:
        """A line was typed. The end of input (Ctrl-D) is a no."""
        assert self._terminal is not None
        line = os.read(self._terminal, 4096).decode("utf-8", "replace")
        action = ANSWERS.get(line.strip().lower()) if line else "deny"
        if not line.endswith("\n"):
            self._screen.clear()
        if action is None:
            self._screen.ask(question(self._open[self._asked]))
            return
        self._screen.answered()
        answered, self._asked = self._asked, ""
        self._open.pop(answered, None)
        self._answer(answered, action)
        self._ask_next()

    def _answer(self, request_id: str, action: Action) -> None:
        async def answer() -> None:
            # If it gets lost, the server asks again when the stream reconnects.
            with suppress(ServerUnreachable, CoveyError):
                await self._client.answer_permission(self._workspace_id, request_id, action)

        task = asyncio.create_task(answer())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
