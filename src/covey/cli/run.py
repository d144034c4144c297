"""`covey run`: one prompt, and its answer on stdout."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, TextIO

import msgspec

from covey.cli import common, exits, running
from covey.cli.asking import Asking, Unattended, can_ask
from covey.cli.endings import Ending, denied_in_short
from covey.cli.ids import find_session
from covey.cli.open_runs import only_open_run, waits_for
from covey.cli.output import JsonPrinter, OutputPrinter, Printer, StreamJsonPrinter, answer_printer
from covey.cli.progress import Progress
from covey.cli.prompt_input import piped_stdin, read_attachments, read_prompt, read_schema, unseen
from covey.cli.run_request import request_of, where_debug_is
from covey.cli.screen import Screen, share_lines, warning
from covey.cli.terminal_text import json_text
from covey.client.client import Client
from covey.client.cwd import cwd_in
from covey.client.denials import Denied, denied_calls
from covey.client.errors import ServerUnreachable, is_passing
from covey.client.prompt import removed_if_refused, run_prompt
from covey.client.transcript import TranscriptChange
from covey.client.view.inputs import SessionOpened
from covey.client.view.view import View
from covey.lines.theme import theme_doubt
from covey.protocol.errors import ApiError, NotFound
from covey.protocol.events import Event, PermissionRequest
from covey.protocol.requests import WorkspaceView
from covey.protocol.runs import PromptReceipt, RunComplete

NOT_ACCEPTED = "stopped before the prompt was accepted."
NO_SCHEMAS = "this server is older than --schema, and has answered without it"
CANCEL_RETRY_S = 0.5
"""The stream is reconnecting at the same time: there is no hurry that it would not have."""
AFTER_TIMEOUT_S = 10.0
"""A cancelled run ends within the server's grace of five seconds; if even this passes, the server is in trouble."""


def main(args: argparse.Namespace) -> int:
    command = _Command(args)
    try:
        command.read()
    except exits.UsageError as error:
        command.failed(str(error), exits.USAGE)
        error.is_written = True
        raise
    except KeyboardInterrupt:
        command.failed(NOT_ACCEPTED, exits.STOPPED)
        raise
    return common.run(command.go(), on_failure=command.failed)


class _Command:
    """One call of `covey run`, from its arguments to the exit code."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._request = request_of(args)
        self._typed = ""
        """The prompt, but for what came out of a pipe."""
        self._screen = Screen(
            sys.stderr,
            quiet=args.quiet,
            shares_terminal=share_lines(sys.stdout, sys.stderr),
            is_plain=args.plain,
        )
        if self._screen.is_terminal and (doubt := theme_doubt(os.environ)):
            self._screen.warn(doubt)
        self._view = View(loads=False)
        """Of the session of the run, from when on it is known."""
        self._output = _output(args, sys.stdout, self._screen, self._view)
        self._data_dir = ""
        """Of a server on this machine, from when on it is known."""
        self._asking: Asking | None = None
        self._stop_code = 0
        """Why we stop the run ourselves, as an exit code; 0: we do not."""
        self._posting: tuple[Client, str] | None = None
        """Where the run is, from the moment on in which it may exist."""
        self._is_first = False
        """Its session was made for this prompt, which is not accepted yet."""
        self._background: set[asyncio.Task[None]] = set()

    def read(self) -> None:
        """The prompt and what goes with it. Not in `go`: stdin may be a person who has not finished typing."""
        args = self._args
        if args.detach and args.timeout is not None:
            raise exits.UsageError("--timeout waits for the end of the run, and --detach does not: use one of them")
        if args.steer and self._request.options.are_own:  # also --debug: the turn that it joins has its own
            raise exits.UsageError("--steer says something to a run that has its own options: it takes none of these")
        self._typed = " ".join(args.prompt).strip()
        prompt = read_prompt(args.prompt, piped_stdin())
        attachments = read_attachments(args.attach)
        if not prompt and not any(attachment.is_text for attachment in attachments):
            raise exits.UsageError("there is no prompt: write one after the command, or pipe one in")
        for name in unseen(attachments):
            self._screen.warn(f"{name} is neither text nor a picture: the model is told its name, and sees none of it.")
        schema = read_schema(args.schema) if args.schema else None
        self._request = msgspec.structs.replace(
            self._request,
            prompt=prompt,
            attachments=attachments,
            output_schema=schema,
            unattended=not args.detach and not can_ask(),
        )

    def failed(self, sentence: str, exit_code: int) -> None:
        """It ends without a terminal event. Who wants JSON gets an object that says so all the same."""
        if isinstance(self._output, JsonPrinter | StreamJsonPrinter):
            self._output.fail(self._request.run_id, self._request.session_id, sentence, exit_code)

    async def go(self) -> int:
        """Everything up to the exit code, with Ctrl-C and the timeout watched from the first moment on."""
        loop = asyncio.get_running_loop()
        work = asyncio.create_task(self._work())
        if self._args.timeout is not None:
            loop.call_later(self._args.timeout, self._stop, exits.TIMEOUT, work)
        with running.stopped_by_signals(
            lambda: loop.call_soon_threadsafe(self._stop, exits.STOPPED, work), self._leave_at_once
        ):
            try:
                return await work
            except asyncio.CancelledError:
                if not self._stop_code:
                    raise
                return self._leave()
            finally:
                self._screen.wait_for("")

    async def _work(self) -> int:
        spinner = asyncio.create_task(self._screen.spin())
        self._screen.wait_for("connecting")
        try:
            async with common.connected(self._args, say=self._screen.say) as client:
                workspace = await common.join(client, self._args.cwd)
                self._say_where(workspace.path)
                for text in workspace.warnings:
                    self._screen.warn(text)
                self._data_dir = workspace.data_dir if client.address.is_unix else ""
                session_id = await self._choose_session(client, workspace.id)
                self._request = msgspec.structs.replace(
                    self._request, session_id=session_id, cwd=cwd_in(workspace.path)
                )
                if "@" in self._typed or self._typed.startswith("/") or self._request.attachments:
                    from covey.cli.prompt_doubts import doubts  # late: most prompts are words

                    for text in await doubts(client, workspace, self._request, self._typed):
                        self._screen.warn(text)
                try:
                    return await (self._detach if self._args.detach else self._follow)(client, workspace)
                except ApiError as error:
                    if self._is_first and not is_passing(error):  # its session is gone with it
                        self._request = msgspec.structs.replace(self._request, session_id="")
                    if error.code == "unusable_schema":
                        raise exits.UsageError(error.message.replace("output_schema", "--schema", 1)) from None
                    if error.code == "invalid_rule":
                        raise exits.UsageError(f"--allow: {error.message}") from None
                    raise
        finally:
            spinner.cancel()

    def _say_where(self, root: str) -> None:
        """To people: whoever wants JSON has read it once, and has --cwd."""
        is_for_people = not (self._args.json or self._args.stream_json or self._args.schema)
        if is_for_people and not self._args.cwd and root != os.getcwd():
            self._screen.say(f"Working on {root}, the git repository; --cwd . works on this directory alone.")

    async def _choose_session(self, client: Client, workspace_id: str) -> str:
        if self._args.session:
            return (await find_session(client, workspace_id, self._args.session)).id
        if self._args.run_id and (known := await self._known_session(client, workspace_id)):
            return known
        if (self._args.steer or self._args.interrupt) and not self._args.resume:
            return (await only_open_run(client, workspace_id, "active")).session_id
        if self._args.resume:
            if latest := await common.find_latest_session(client, workspace_id):
                return latest
            self._screen.say("There is nothing to continue in this directory, so this is a new session.")
        self._is_first = True
        return (await client.create_session(workspace_id)).id

    async def _known_session(self, client: Client, workspace_id: str) -> str:
        """The session in which a run with this id was posted before, or ''."""
        try:
            return (await client.run(workspace_id, self._args.run_id)).session_id
        except NotFound as error:
            if error.code != "run_not_found":
                raise
            return ""

    async def _detach(self, client: Client, workspace: WorkspaceView) -> int:
        async with removed_if_refused(client, workspace.id, self._request.session_id if self._is_first else ""):
            receipt = await client.post_prompt(workspace.id, self._request)
        as_json = self._args.json or self._args.stream_json
        print(json_text(receipt) if as_json else receipt.run_id, flush=True)
        if self._args.steer:
            await self._say_what_it_waits_for(client, workspace.id)
        return exits.OK

    async def _follow(self, client: Client, workspace: WorkspaceView) -> int:
        run_id, workspace_id = self._request.run_id, workspace.id
        self._view.apply(SessionOpened(self._request.session_id))
        asking = self._asking = Asking(
            client,
            self._view,
            workspace_id,
            run_id,
            self._screen,
            unattended=Unattended.DENY_IF_ALONE,
            how_to_allow=self._how_to_allow,
        )
        progress = Progress(self._screen, self._view, run_id, root=workspace.path, is_verbose=self._args.verbose)
        ending = Ending(self._view, run_id, self._request.options)

        def on_event(event: Event, change: TranscriptChange | None) -> None:
            progress.heard(event)
            news = progress.before_answer(progress.news.update(change))
            self._output.update(event, news)
            progress.update(news)
            asking.update()

        def on_accepted(receipt: PromptReceipt) -> None:
            self._is_first = False
            progress.accepted(receipt)
            if receipt.state == "queued":
                self._in_background(self._say_what_it_waits_for(client, workspace_id))

        def on_connection(connected: bool, why: str) -> None:
            progress.connection(connected, why)
            asking.connection(connected)

        self._posting = (client, workspace_id)
        try:
            terminal = await run_prompt(
                client,
                workspace_id,
                self._request,
                is_first=self._is_first,
                view=self._view,
                on_event=on_event,
                on_accepted=on_accepted,
                on_connection=on_connection,
            )
        finally:
            asking.close()
        self._screen.wait_for("")
        if lines := asking.allowing_lines:
            self._screen.warn(lines)
        return self._end(ending.worded(self._with_output(terminal)), ending, progress)

    def _end(self, terminal: RunComplete, ending: Ending, progress: Progress) -> int:
        """Say how it ended, and give the exit code."""
        exit_code = self._exit_code(terminal)
        denied = denied_calls(self._view.conversation.messages, terminal.folded_into or terminal.run_id)
        fails = self._args.fail_on_denied and denied and exit_code == exits.OK
        exit_code = exits.FAILED if fails else exit_code
        why = self._why_not_its_end(exit_code, denied if fails else ())
        self._output.end(terminal, progress.news.end(terminal), exit_code, why)
        self._report_end(terminal, exit_code, ending)
        if self._args.debug and self._data_dir:
            self._screen.warn(where_debug_is(self._data_dir, terminal.folded_into or terminal.run_id))
        if why:
            self._screen.warn(why)
        progress.footer(terminal)
        return exit_code

    def _why_not_its_end(self, exit_code: int, denied: Sequence[Denied]) -> str:
        """Why the exit code is another one than the end of the run has; '' if it is that."""
        if exit_code == exits.TIMEOUT:
            return f"the run took longer than {self._args.timeout:g} s and was cancelled."
        if denied:
            return f"exit 1, as the run was denied something: {'; '.join(map(denied_in_short, denied))}"
        return ""

    async def _say_what_it_waits_for(self, client: Client, workspace_id: str) -> None:
        with suppress(ServerUnreachable, ApiError):
            runs = await client.runs(workspace_id, session_id=self._request.session_id)
            mine = next((run for run in runs if run.run_id == self._request.run_id), None)
            if mine and (text := waits_for(mine, runs)):
                self._screen.say(f"{text[0].upper()}{text[1:]}.")

    def _how_to_allow(self, request: PermissionRequest) -> str:
        from covey.cli.allowing import by_options  # late: seldom needed

        return by_options(request, takes_rules=self._args.takes_rules, accepts_edits=self._args.accept_edits)

    def _with_output(self, terminal: RunComplete) -> RunComplete:
        """An older server takes a prompt with a schema, and does not know what that is."""
        is_missing = terminal.output is None and (terminal.text or "").strip() != "null"
        if self._request.output_schema is None or terminal.outcome != "completed" or not is_missing:
            return terminal
        return msgspec.structs.replace(terminal, error=NO_SCHEMAS)

    def _exit_code(self, terminal: RunComplete) -> int:
        if self._stop_code == exits.STOPPED or (self._stop_code and terminal.cancelled):
            return self._stop_code
        return exits.of_end(terminal)

    def _report_end(self, terminal: RunComplete, exit_code: int, ending: Ending) -> None:
        if exit_code == exits.STOPPED:
            self._screen.say("The run is cancelled." if terminal.cancelled else "The run had ended already.")
        elif exit_code != exits.TIMEOUT and (explanation := ending.explanation(terminal, by=" by somebody else")):
            self._screen.warn(explanation)

    # ── stopping ──

    def _leave(self) -> int:
        """We stop without a terminal event: the prompt was not accepted yet, or the server does not answer any more."""
        error = self._may_go_on("the server does not answer") if self._posting else NOT_ACCEPTED
        if self._host:
            error = f"left; the prompt has joined the run {self._host}: `covey runs cancel {self._host}` cancels that."
        if self._stop_code == exits.TIMEOUT:
            error = f"the timeout of {self._args.timeout:g} s has passed: {error}"
        self._screen.warn(error)
        self.failed(error, self._stop_code)
        return self._stop_code

    def _leave_at_once(self) -> None:
        """The second Ctrl-C: the process ends when this returns."""
        if self._asking:
            self._asking.restore_terminal()
        explanation = self._may_go_on("left at once") if self._posting else NOT_ACCEPTED
        self.failed(explanation, exits.STOPPED)
        # Past the buffer: the signal may have come in the middle of another line.
        begin = "\n" if sys.stderr.isatty() else ""
        os.write(sys.stderr.fileno(), f"{begin}{warning(explanation)}\n".encode("utf-8", "replace"))

    @property
    def _host(self) -> str:
        """The run that this one has joined; '' as long as it has not."""
        record = self._view.find_run(self._request.run_id)
        return (record and record.run.folded_into) or ""

    def _may_go_on(self, why: str) -> str:
        run_id = self._request.run_id
        return f"{why}; the run {run_id} may go on. `covey runs wait {run_id}` says how it ends."

    def _stop(self, exit_code: int, work: asyncio.Task[int]) -> None:
        """Ctrl-C or the timeout: cancel this run and wait for its end; before it was posted, just leave."""
        if self._stop_code or work.done():
            return
        self._stop_code = exit_code
        if self._posting is None:
            work.cancel()
            return
        if self._asking:
            self._asking.stop()
        if self._host:
            work.cancel()  # what has joined another run cannot be taken back out of it
            return
        if exit_code == exits.STOPPED:
            self._screen.say("Cancelling the run; press Ctrl-C again to leave at once.")
        else:
            asyncio.get_running_loop().call_later(AFTER_TIMEOUT_S, work.cancel)
        self._screen.wait_for("cancelling")
        self._in_background(self._cancel(*self._posting))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _cancel(self, client: Client, workspace_id: str) -> None:
        """Ask until the server has heard it. The cancel may overtake the prompt: the server remembers the id."""
        while True:
            try:
                await client.cancel_run(workspace_id, self._request.run_id)
            except ServerUnreachable:
                await asyncio.sleep(CANCEL_RETRY_S)
            except ApiError as error:
                self._screen.warn(f"the run could not be cancelled: {error.message}")
                return
            else:
                return


def _output(args: argparse.Namespace, stdout: TextIO, screen: Screen, view: View) -> Printer:
    if args.json:
        return JsonPrinter(stdout, view)
    if args.stream_json:
        return StreamJsonPrinter(stdout, view)
    if args.schema:
        return OutputPrinter(stdout)
    return answer_printer(stdout, screen, is_raw=args.raw)
