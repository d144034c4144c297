"""Carries out what the face wants of the server and of this machine, and tells it what became of it.

Each effect is a task of its own, so that none waits for another; what must keep its order is the follower's.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET

from covey.client.changes import all_changes
from covey.client.client import Client
from covey.client.cwd import cwd_in, seen_from
from covey.client.errors import ServerUnreachable
from covey.client.follower import Follower
from covey.protocol.custom import CustomCommand
from covey.protocol.errors import ApiError, CoveyError, NotFound
from covey.protocol.messages import Attachment
from covey.protocol.requests import EditPrompt, ForkSession, PostPrompt, RunShell, UndoTurns, UpdateSession
from covey.protocol.runs import Mode
from covey.tui import outer
from covey.tui.face import effects as wanted
from covey.tui.face.composer import PromptToken, Suggestion
from covey.tui.face.facts import (
    BackLoaded,
    ChangesLoaded,
    CommandsLoaded,
    DraftFound,
    Edited,
    EditTooLate,
    ExtensionsLoaded,
    FaceInput,
    FileRead,
    FilesFound,
    FoundFurtherUp,
    JobLoaded,
    JobsLoaded,
    ModelsLoaded,
    QueuedChanged,
    Said,
    SessionsPaged,
    TextFound,
    Undone,
    UndoPreviewed,
    Unsendable,
)
from covey.tui.terminal.clipboard import copy

if TYPE_CHECKING:
    from covey.tui.app import FaceApp

FILES_SHOWN = 50
HITS_LOOKED_AT = 500
"""Of a search in a workspace, for those in one session: as many as the server gives at once."""
SESSIONS_PAGE = 200
CLOSE_S = 1.0
"""For what is under way when the user leaves."""


class Carrier:
    def __init__(self, app: FaceApp) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()
        self._finding: asyncio.Task[None] | None = None
        """A search that goes on with each key: the newest one alone counts."""

    def begin(self, effect: wanted.CarriedEffect) -> None:
        task = asyncio.create_task(self._carried(effect))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if isinstance(effect, wanted.FindFiles | wanted.FindFurtherUp):
            if self._finding:
                self._finding.cancel()
            self._finding = task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What nobody expected is said, and is no reason to leave the user without a screen."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._tell(Said(f"that went wrong, and should not have: {error!r}", "error"))

    async def close(self) -> None:
        """What is being sent may get there; nothing waits for long."""
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    async def _carried(self, effect: wanted.CarriedEffect) -> None:
        """An error of the server is a sentence for the user, and never the end of the face."""
        try:
            await self._carry(effect)
        except NotFound as error:
            self._tell(Said(f"{error.message.rstrip('.')}.", "error"))
        except (ServerUnreachable, ApiError, CoveyError, OSError) as error:
            if isinstance(effect, wanted.Post):
                self._tell(Unsendable(effect.text, str(error), effect.new_model, effect.new_mode))
            elif isinstance(effect, wanted.EditQueued):
                self._tell(EditTooLate(effect.run_id, str(error)))
            elif not isinstance(effect, wanted.FindFurtherUp):  # words that a server cannot look for are just not there
                self._tell(Said(str(error), "error"))

    def _tell(self, fact: FaceInput) -> None:
        self._app.feed(fact)

    async def _carry(self, effect: wanted.CarriedEffect) -> None:
        if isinstance(effect, wanted.LocalEffect):
            await self._here(effect)
            return
        await self._app.link.is_ready.wait()
        link = self._app.link
        assert link.client is not None
        assert link.follower is not None
        if isinstance(effect, wanted.IntentEffect):
            await self._intend(effect, link.follower)
        elif isinstance(effect, wanted.SessionEffect):
            await self._of_session(effect, link.client, link.workspace_id)
        elif isinstance(effect, wanted.QueueEffect):
            await self._queue(effect, link.client, link.workspace_id)
        else:
            await self._look_up(effect, link.client, link.workspace_id)

    # ── on this machine ──

    async def _here(self, effect: wanted.LocalEffect) -> None:
        match effect:
            case wanted.Copy():
                await self._copy(effect)
            case wanted.Notify(title, text):
                self._app.terminal.notify(title, text)
            case wanted.OpenEditor(text):
                await self._open_editor(text)
            case wanted.ReadClipboard():
                token, why = await outer.clipboard_image(os.environ, sys.platform)
                self._tell(FileRead(token) if token else Said(why, "warning"))
            case wanted.ReadFile(path, as_typed):
                self._tell(FileRead(await asyncio.to_thread(outer.read_file, path), as_typed))
            case wanted.LogIn(provider):
                await self._lend("login", provider)
            case wanted.UseEmbedded():
                await self._lend("models", "get")
            case _:
                assert_never(effect)

    async def _copy(self, effect: wanted.Copy) -> None:
        terminal = self._app.terminal
        result = await copy(effect.text, terminal.send, os.environ, knows_osc52=terminal.knows_osc52)
        self._tell(Said(f"{effect.about}: {result.message}", "warning" if result.outcome == "failed" else "note"))

    async def _open_editor(self, text: str) -> None:
        with outer.edited_file(text) as path:
            try:
                exit_code = await self._app.terminal.run([*outer.editor_command(os.environ), path])
            except OSError as error:
                self._tell(Said(f"the editor could not be started ({error.strerror}); set $EDITOR", "error"))
                return
            if exit_code:
                self._tell(Said(f"the editor ended with code {exit_code}: the prompt is as it was", "warning"))
            else:
                self._tell(Edited(outer.read_back(path)))

    async def _lend(self, *words: str) -> None:
        """A command of ours has the terminal meanwhile; afterwards the server has read its configuration again."""
        command = outer.pausing(self._app.door.command(*words))
        try:
            await self._app.terminal.run(command)
        except OSError as error:
            self._tell(Said(str(error), "error"))
            return
        await self._carry(wanted.ReadConfigAgain())

    # ── through the follower: intents that it sends once, and in order ──

    async def _intend(self, effect: wanted.IntentEffect, follower: Follower) -> None:
        match effect:
            case wanted.Post(mode=mode):
                if not follower.view.current:
                    await self._begin_session(effect, follower)
                    return
                follower.post(self._prompt(effect, mode))
            case wanted.Cancel(session_id):
                follower.cancel(session_id)
            case wanted.AllowEdits(ask_id, session_id):
                follower.allow_edits(ask_id, session_id)
            case wanted.AnswerPermission(ask_id, action, reason, network, unsandboxed):
                further = {name: True for name, on in (("network", network), ("unsandboxed", unsandboxed)) if on}
                follower.answer_permission(ask_id, action, reason, **further)
            case wanted.AnswerBatch(ask_id, responses):
                follower.answer_questions(ask_id, responses)
            case wanted.DecideApproval(ask_id, approve):
                follower.answer_approval(ask_id, approve=approve)
            case wanted.GoToSession(session_id):
                follower.open(session_id)
                self._app.looked()
            case wanted.DropUnsent(run_id):
                follower.drop(run_id)
            case _:
                assert_never(effect)

    def _prompt(self, effect: wanted.Post, mode: Mode | None = None) -> PostPrompt:
        cwd = cwd_in(self._app.link.root)
        return PostPrompt(prompt=effect.text, mode=mode, attachments=_attachments(effect.files), cwd=cwd)

    async def _begin_session(self, effect: wanted.Post, follower: Follower) -> None:
        """The first prompt of a new session. While the connection is lost it waits, as any other prompt does."""
        await follower.until(lambda view: view.link.state == "connected")
        session = await follower.client.create_session(follower.workspace_id)
        if effect.new_model or effect.new_mode != "ask":
            chosen = UpdateSession(model=effect.new_model or UNSET, mode=effect.new_mode)
            await follower.client.update_session(follower.workspace_id, session.id, chosen)
        follower.open(session.id)
        run_id = follower.post(self._prompt(effect))
        self._app.looked()
        if not effect.files:  # those would be lost: the prompt stays where it is, to be sent again
            await self._unless_refused(effect, run_id, session.id, follower)

    async def _unless_refused(self, effect: wanted.Post, run_id: str, session_id: str, follower: Follower) -> None:
        """A session whose only prompt was refused is none: it goes, and the prompt comes back with the reason."""
        outbox = follower.view.outbox
        await follower.until(lambda _: run_id not in outbox.prompts or outbox.prompts[run_id].state != "sending")
        sent = outbox.prompts.get(run_id)
        is_left = follower.view.current != session_id or not self._app.face.state.composer.is_empty
        if sent is None or sent.state != "refused" or is_left:
            return
        follower.drop(run_id)
        follower.open("")
        self._app.looked()
        self._tell(Unsendable(effect.text, sent.error, effect.new_model, effect.new_mode))
        await follower.client.delete_session(follower.workspace_id, session_id)

    # ── requests ──

    async def _of_session(self, effect: wanted.SessionEffect, client: Client, workspace_id: str) -> None:
        match effect:
            case wanted.RunOwnCommand(command, share):
                session_id, width = self._app.face.view.current, self._app.face.state.width
                cwd = cwd_in(self._app.link.root)
                run = RunShell(command=command, share=share, term_width=width, cwd=cwd)
                await client.run_shell(workspace_id, session_id, run)
            case wanted.Undo(session_id, run_id, really, keep_files):
                request = UndoTurns(run_id=run_id, keep_files=keep_files, dry_run=not really)
                receipt = await client.undo(workspace_id, session_id, request)
                self._tell(Undone(receipt) if really else UndoPreviewed(run_id, receipt))
            case wanted.ChangeSession():
                await client.update_session(workspace_id, effect.session_id, _change(effect))
                if effect.archived:
                    self._tell(Said("put aside: `covey sessions --archived` lists it"))
            case wanted.DeleteSession(session_id):
                await client.delete_session(workspace_id, session_id)
                self._tell(Said("deleted"))
            case wanted.ExportSession(session_id, title):
                await self._export(session_id, title, client, workspace_id)
            case wanted.Summarize(session_id, focus):
                await client.summarize(workspace_id, session_id, focus=focus)
            case wanted.Fork(session_id, message_id, prompt):
                forked = await client.fork(workspace_id, session_id, ForkSession(message_id=message_id))
                self._carry_on(forked.id)
                self._tell(DraftFound(forked.id, prompt, ()))
                self._tell(Said("this is the fork; the other session is as it was"))
            case _:
                assert_never(effect)

    async def _look_up(self, effect: wanted.LookupEffect, client: Client, workspace_id: str) -> None:
        match effect:
            case wanted.FindFiles(query):
                found = await client.find_files(workspace_id, query, limit=FILES_SHOWN)
                cwd = cwd_in(self._app.link.root)
                named = (seen_from(cwd, file.path, file.places) for file in found.files)
                self._tell(FilesFound(query, tuple(Suggestion(path, places=places) for path, places in named)))
            case wanted.LoadList(what):
                await self._load(what, client, workspace_id)
            case wanted.LoadChanges(session_id):
                self._tell(ChangesLoaded(await all_changes(client, workspace_id, session_id)))
            case wanted.FindText(words):
                result = await client.search(workspace_id, words)
                self._tell(TextFound(words, (*result.titles, *result.messages)))
            case wanted.FindFurtherUp(session_id, words):
                result = await client.search(workspace_id, words, limit=HITS_LOOKED_AT)
                here = tuple(hit.message_id for hit in result.messages if hit.session_id == session_id)
                self._tell(FoundFurtherUp(words, tuple(filter(None, here))))
            case wanted.LoadBackTo(session_id, message_id):
                await self._load_back(session_id, message_id)
            case wanted.ShowJob(job_id):
                self._tell(JobLoaded(await client.job(workspace_id, job_id)))
            case wanted.KillJob(job_id):
                await client.kill_job(workspace_id, job_id)
                self._tell(Said(f"job {job_id} was ended"))
                await self._load("jobs", client, workspace_id)
            case wanted.ReadConfigAgain():
                await client.update_agent(workspace_id)
                self._tell(Said("the configuration was read again"))
            case _:
                assert_never(effect)

    async def _load_back(self, session_id: str, message_id: str) -> None:
        """Page by page, as long as it is the session that is looked at."""
        follower = self._app.link.follower
        assert follower is not None
        view = follower.view

        def has_come() -> bool:
            conversation = view.conversation
            return message_id in conversation.messages or not conversation.has_older or view.current != session_id

        while not has_come():
            first = view.conversation.messages.first_id
            follower.load_older()
            await follower.until(lambda view: view.conversation.messages.first_id != first or has_come())  # noqa: B023
        self._tell(BackLoaded())

    def _carry_on(self, session_id: str) -> None:
        if follower := self._app.link.follower:
            follower.open(session_id)
            self._app.looked()

    async def _load(self, what: wanted.Listed, client: Client, workspace_id: str) -> None:
        match what:
            case "models":
                self._tell(ModelsLoaded(await client.providers(workspace_id)))
            case "jobs":
                self._tell(JobsLoaded(await client.jobs(workspace_id)))
            case "sessions":
                known = self._app.face.oldest_listed
                page = await client.sessions(workspace_id, before=known, limit=SESSIONS_PAGE) if known else ()
                self._tell(SessionsPaged(page))
            case "commands":
                found = await client.commands(workspace_id)
                usable = [each for each in found if not each.needs_trust and each.kind != "agent"]
                self._tell(CommandsLoaded(tuple(Suggestion(c.name, _about(c)) for c in usable)))
            case "extensions":
                self._tell(ExtensionsLoaded(await client.extensions(workspace_id)))
            case _:
                assert_never(what)

    async def _queue(self, effect: wanted.QueueEffect, client: Client, workspace_id: str) -> None:
        if isinstance(effect, wanted.DropQueued):
            await client.drop_prompt(workspace_id, effect.session_id, effect.run_id)
            return
        change = EditPrompt(**effect.change)
        run = await client.edit_prompt(workspace_id, effect.session_id, effect.run_id, change)
        self._tell(QueuedChanged(effect.run_id, effect.then, run.prompt))

    async def _export(self, session_id: str, title: str, client: Client, workspace_id: str) -> None:
        path = outer.export_path(title, session_id)
        pieces = [piece async for piece in client.export(workspace_id, session_id, "markdown")]
        await asyncio.to_thread(outer.write_new, path, b"".join(pieces))
        self._tell(Said(f"written to {path}"))


def _about(command: CustomCommand) -> str:
    return "  ".join(filter(None, (command.description or command.kind.replace("_", " "), command.argument_hint)))


def _change(effect: wanted.ChangeSession) -> UpdateSession:
    return UpdateSession(
        title=UNSET if effect.title is None else effect.title,
        model=UNSET if effect.model is None else effect.model,
        mode=UNSET if effect.mode is None else effect.mode,
        archived=UNSET if effect.archived is None else effect.archived,
    )


def _attachments(files: tuple[PromptToken, ...]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            file_path=token.text,
            file_name=os.path.basename(token.text) or token.label,
            mime_type=token.mime_type,
            content=token.data,
        )
        for token in files
    )
