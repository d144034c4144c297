"""`covey runs`: find the runs of a directory, follow one that goes on by itself, or cancel it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from covey.cli import common, exits, runs_answer
from covey.cli.asking import Asking, Unattended
from covey.cli.endings import Ending, in_flags
from covey.cli.ids import find_run
from covey.cli.open_runs import LOOKED_AT, OPEN, Request, only_open_run, open_requests, open_runs, waits_for
from covey.cli.output import JsonPrinter, Printer, answer_printer
from covey.cli.progress import Progress
from covey.cli.screen import Screen, plain, share_lines
from covey.cli.terminal_text import json_text, one_line
from covey.client.client import Client
from covey.client.prompt import follow_run
from covey.client.transcript import TranscriptChange
from covey.client.view.inputs import SessionOpened
from covey.client.view.view import View
from covey.protocol.activity import WorkspaceRun
from covey.protocol.errors import NotFound
from covey.protocol.events import Event, PermissionRequest, updated
from covey.protocol.requests import WorkspaceView
from covey.protocol.runs import CancelReceipt, Run

ENDED_SHOWN = 20
HOW_TO_ALLOW = "by waiting for such a run at a terminal, where you are asked"
RECALLED = 4
"""Last messages in which the calls are looked up that run when `wait` begins."""
PROMPT_SHOWN = 60
"""How much of a prompt fits on a line."""


def main(args: argparse.Namespace) -> int:
    if args.action == "wait":
        waiting = _Wait(args)
        return common.run(waiting.go(), on_failure=waiting.failed)
    return common.run(_runs(args))


async def _runs(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        if args.everywhere and args.action in (None, "list"):
            return await _list_everywhere(client, args)
        workspace_id = (await common.join(client, args.cwd)).id
        return await ACTIONS.get(args.action, _list)(client, workspace_id, args)


# ── list ──


async def _list(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    runs = await open_runs(client, workspace_id)
    if args.all:
        runs += await _ended_runs(client, workspace_id)
    asks: dict[str, list[Request]] = {}
    for request in await open_requests(client, workspace_id):
        asks.setdefault(request.run_id or "", []).append(request)
    if args.json:
        print(json_text([_as_json(run, asks.get(run.run_id, [])) for run in runs]))
        return exits.OK
    # What an agent does for another belongs to that one's run, unless somebody has to answer it.
    shown = [run for run in runs if not run.effective_options.delegate or run.run_id in asks]
    now = time.time()
    for run in shown:
        print(_line(run, now, runs))
        for request in asks.get(run.run_id, []):
            print(_asked(request))
    if not shown:
        print(f"There are no {'' if args.all else 'open '}runs in this directory.", file=sys.stderr)
    return exits.OK


async def _list_everywhere(client: Client, args: argparse.Namespace) -> int:
    """Those of all directories. What one of them asks is answered where it is: `covey runs` there says how."""
    found: dict[str, WorkspaceRun] = {}
    for state in OPEN:
        found |= {run.run_id: run for run in await client.all_runs(state=state, limit=LOOKED_AT)}
    runs = [run for run in found.values() if not run.ended]
    if args.all:
        runs += [run for run in await client.all_runs(limit=LOOKED_AT) if run.ended][:ENDED_SHOWN]
    runs.sort(key=lambda run: (run.accepted_at, run.seq), reverse=True)
    if args.json:
        print(json_text(runs))
        return exits.OK
    now = time.time()
    shown = [run for run in runs if not run.effective_options.delegate]
    for path in dict.fromkeys(run.path for run in shown):
        print(one_line(path))
        here = [run for run in shown if run.path == path]
        for run in here:
            print("  " + _line(run, now, here).replace("\n", "\n  "))
    if not shown:
        print(f"There are no {'' if args.all else 'open '}runs.", file=sys.stderr)
    return exits.OK


async def _ended_runs(client: Client, workspace_id: str) -> list[Run]:
    newest = await client.runs(workspace_id, limit=LOOKED_AT)
    return [run for run in newest if run.ended and not run.effective_options.delegate][:ENDED_SHOWN]


def _as_json(run: Run, asked: list[Request]) -> dict[str, Any]:
    """`asks`: what kind of answer the run waits for; `requests`: all that it asks."""
    kinds = ["permission" if isinstance(request, PermissionRequest) else "question" for request in asked]
    return {**msgspec.to_builtins(run), "asks": kinds[0] if kinds else None, "requests": msgspec.to_builtins(asked)}


def _asked(request: Request) -> str:
    """What a run asks, and how it is answered from here: by the id of the request, which means nothing else."""
    text = runs_answer.described(request).replace("\n", "\n    ")
    how = (
        f"covey runs allow {request.id} · covey runs deny {request.id} [WHY]"
        if isinstance(request, PermissionRequest)
        else f"covey runs answer {request.id}{' TEXT' * len(request.questions)}"
    )
    return plain(f"    asks: {text}\n      {how}")


def _line(run: Run, now: float, runs: Sequence[Run]) -> str:
    state = one_line(f"{run.state} ({run.waiting_on})") if run.waiting_on else run.state
    words = "a summary of the session" if run.effective_options.summarize else " ".join(run.prompt.split())
    prompt = words if len(words) <= PROMPT_SHOWN else words[: PROMPT_SHOWN - 1] + "…"
    line = f"{run.run_id}  {state:19}  {age(now - run.accepted_at):>6}  {prompt}"
    if run.error:
        line += f"\n    {' '.join(in_flags(run.error, run.effective_options).split())}"
    if waits := waits_for(run, runs):
        line += f"\n    {waits}"
    return plain(line)


def age(seconds: float) -> str:
    """In the largest unit that makes at least one."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"


# ── cancel ──


async def _cancel(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    # A cancel for an id that nobody knows would be kept for a prompt to come: here it is a slip of the pen.
    run_id = (await find_run(client, workspace_id, args.run_id)).run_id
    receipt = await client.cancel_run(workspace_id, run_id)
    if args.json:
        print(json_text(receipt))
    else:
        print(_cancelled(receipt, await client.run(workspace_id, run_id)))
    return exits.OK


def _cancelled(receipt: CancelReceipt, run: Run) -> str:
    if receipt.covered:
        return "\n".join(f"Run {one.run_id} was {one.state_found} and is cancelled." for one in receipt.covered)
    return f"There was nothing to cancel: run {run.run_id} is {run.state}."


ACTIONS: dict[str | None, Callable[[Client, str, argparse.Namespace], Coroutine[Any, Any, int]]] = {
    "allow": runs_answer.answer,
    "deny": runs_answer.answer,
    "answer": runs_answer.answer,
    "say": runs_answer.say,
    "interrupt": runs_answer.say,
    "cancel": _cancel,
}
"""All but `wait`, and `list`, which is the default."""


# ── wait ──


class _Wait:
    """One call of `covey runs wait`, from connecting to the exit code. It never cancels the run."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._screen = Screen(
            sys.stderr,
            quiet=args.quiet,
            shares_terminal=share_lines(sys.stdout, sys.stderr),
            is_plain=args.plain,
        )
        self._view = View(loads=False)
        """Of the session of the run, from when on it is found."""
        self._json = JsonPrinter(sys.stdout, self._view) if args.json else None
        self._run_id: str = args.run_id or ""
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
                explanation = f"left; the run {self._run_id} goes on. `covey runs cancel {self._run_id}` cancels it."
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
                run = await (
                    find_run(client, workspace.id, self._args.run_id)
                    if self._args.run_id
                    else only_open_run(client, workspace.id)
                )
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
            client, view, workspace.id, speaker, self._screen, unattended=unattended, how_to_allow=HOW_TO_ALLOW
        )
        if run.state in ("active", "folded"):
            asking.active(run.session_id)
            with suppress(NotFound):  # the session is deleted: the end of the run says so
                progress.news.recall(await client.messages(workspace.id, run.session_id, before="", limit=RECALLED))
        ending = Ending(view, speaker, run.effective_options)

        def on_event(event: Event, change: TranscriptChange | None) -> None:
            news = progress.before_answer(progress.news.update(change))
            output.update(event, news)
            progress.update(news)
            asking.update()

        def on_connection(connected: bool, why: str) -> None:
            progress.connection(connected, why)
            asking.connection(connected)

        self._screen.wait_for(run.waiting_on or run.state)
        try:
            terminal = await follow_run(
                client, workspace.id, run, view=view, on_event=on_event, on_connection=on_connection
            )
        finally:
            asking.close()
        self._screen.wait_for("")
        exit_code = exits.OF_OUTCOME[terminal.outcome]
        terminal = ending.worded(terminal)
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
