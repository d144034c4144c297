"""Follow a run to its end, as `covey runs wait` does: its text on stdout, what it asks for on the terminal."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from covey.cli import common, exits
from covey.cli.asking import Asking, Unattended
from covey.cli.endings import Ending
from covey.cli.output import JsonPrinter, Printer, answer_printer
from covey.cli.progress import Progress
from covey.cli.screen import Screen, share_lines
from covey.client.client import Client
from covey.client.prompt import follow_run
from covey.client.transcript import TranscriptChange
from covey.client.view.inputs import SessionOpened
from covey.client.view.view import View
from covey.protocol.errors import NotFound
from covey.protocol.events import Event, updated
from covey.protocol.requests import WorkspaceView
from covey.protocol.runs import Run

HOW_TO_ALLOW = "by waiting for such a run at a terminal, where you are asked"
RECALLED = 4
"""Last messages in which the calls are looked up that run when the wait begins."""

FindRun = Callable[[Client, str], Coroutine[Any, Any, Run]]
"""The run to wait for, in the workspace with this id. It may be one that it begins."""


def wait(args: argparse.Namespace, find: FindRun, run_id: str = "") -> int:
    """Follow a run to its end; gives the exit code. `run_id`: as much of its id as is known."""
    waiting = _Wait(args, find, run_id)
    return common.run(waiting.go(), on_failure=waiting.failed)


class _Wait:
    """From connecting to the exit code. It never cancels the run."""

    def __init__(self, args: argparse.Namespace, find: FindRun, run_id: str) -> None:
        self._args = args
        self._find = find
        self._screen = Screen(
            sys.stderr,
            quiet=args.quiet,
            shares_terminal=share_lines(sys.stdout, sys.stderr),
            is_plain=args.plain,
        )
        self._view = View(loads=False)
        """Of the session of the run, from when on it is found."""
        self._json = JsonPrinter(sys.stdout, self._view) if args.json else None
        self._run_id = run_id
        """As much of it as is known: from when on the run is found, all."""
        self._session_id = ""
        self._left = False

    def failed(self, sentence: str, exit_code: int) -> None:
        """We leave without a terminal event. With `--json` there is one object all the same."""
        if self._json:
            self._json.fail(self._run_id, self._session_id, sentence, exit_code)

    async def go(self) -> int:
        work = asyncio.create_task(self._work())
        with _signals(lambda: self._leave(work)):
            try:
                return await work
            except asyncio.CancelledError:
                if not self._left:
                    raise
                explanation = (
                    f"left; the run {self._run_id} goes on. `covey runs cancel {self._run_id}` cancels it."
                    if self._run_id
                    else "left before the run was known; `covey runs` lists those that go on."
                )
                self._screen.warn(explanation)
                self.failed(explanation, exits.STOPPED)
                return exits.STOPPED
            finally:
                self._screen.wait_for("")

    def _leave(self, work: asyncio.Task[int]) -> None:
        self._left = True
        work.cancel()

    async def _work(self) -> int:
        spinner = asyncio.create_task(self._screen.spin())
        self._screen.wait_for("connecting")
        try:
            async with common.connected(self._args, say=self._screen.say) as client:
                workspace = await common.join(client, self._args.cwd)
                for text in workspace.warnings:
                    self._screen.warn(text)
                run = await self._find(client, workspace.id)
                self._run_id, self._session_id = run.run_id, run.session_id
                return await self._follow(client, workspace, run)
        finally:
            spinner.cancel()

    async def _follow(self, client: Client, workspace: WorkspaceView, run: Run) -> int:
        # A folded prompt is answered in the turn of its host: what is said and asked there has the host's id.
        speaker = run.folded_into or run.run_id
        output: Printer = self._json or answer_printer(sys.stdout, self._screen, is_raw=self._args.raw)
        unattended = Unattended.DENY if self._args.deny else Unattended.WATCH
        view = self._view
        view.apply(SessionOpened(run.session_id))
        view.event(updated(run))
        progress = Progress(self._screen, view, speaker, root=workspace.path, is_verbose=self._args.verbose)
        asking = Asking(
            client,
            view,
            workspace.id,
            speaker,
            self._screen,
            unattended=unattended,
            how_to_allow=lambda _: HOW_TO_ALLOW,
        )
        self._screen.wait_for(run.waiting_on or run.state)
        if run.state in ("active", "folded"):
            asking.active(run.session_id)
            with suppress(NotFound):  # the session is deleted: the end of the run says so
                recent = await client.messages(workspace.id, run.session_id, before="", limit=RECALLED)
                if open_calls := progress.news.recall(recent):
                    progress.update(open_calls)
        ending = Ending(view, speaker, run.effective_options)

        def on_event(event: Event, change: TranscriptChange | None) -> None:
            progress.heard(event)
            news = progress.before_answer(progress.news.update(change))
            output.update(event, news)
            progress.update(news)
            asking.update()

        def on_connection(connected: bool, why: str) -> None:
            progress.connection(connected, why)
            asking.connection(connected)

        try:
            terminal = await follow_run(
                client, workspace.id, run, view=view, on_event=on_event, on_connection=on_connection
            )
        finally:
            asking.close()
        self._screen.wait_for("")
        exit_code = exits.of_end(terminal)
        terminal = ending.worded(terminal)
        if lines := asking.allowing_lines:
            self._screen.warn(lines)
        output.end(terminal, progress.news.end(terminal), exit_code)
        if explanation := ending.explanation(terminal):
            self._screen.warn(explanation)
        return exit_code


@contextmanager
def _signals(on_first: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM calls `on_first`; the second has its default effect."""
    loop = asyncio.get_running_loop()

    def restore() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def handler() -> None:
        restore()
        on_first()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        restore()
