"""One method for each route of the protocol, and nothing more: no retries, no state but the connection.

    async with Client.connect("unix:///run/user/1000/covey-1000.sock") as client:
        workspace = await client.create_workspace("/home/me/project")
        session = await client.create_session(workspace.id)

Finding or starting a server is `connect.py`; following events is `event_stream.py`; a whole run is `prompt.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from covey.client.caller import decode, readable
from covey.client.more_calls import MoreCalls
from covey.client.targets import lane_path, quoted, session_path, target, workspace_path
from covey.protocol.activity import Activity, WorkspaceRun, WorkspaceSession, decode_activity
from covey.protocol.changes import SessionChanges
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.files import FoundFiles
from covey.protocol.jobs import JobView
from covey.protocol.messages import Message, Session, decode_messages
from covey.protocol.paths import Address
from covey.protocol.requests import (
    AgentInfo,
    AgentSession,
    AnswerQuestions,
    CancelQuestions,
    ConfigView,
    Control,
    CreateSession,
    CreateWorkspace,
    CurrentSession,
    EditPrompt,
    ForkSession,
    Grant,
    Health,
    PermissionAction,
    PermissionId,
    PostPrompt,
    ProviderInfo,
    QuestionResponse,
    Resolved,
    RunShell,
    ShellResult,
    Skip,
    SummarizeSession,
    UndoReceipt,
    UndoTurns,
    UpdateSession,
    Version,
    WorkspaceView,
)
from covey.protocol.runs import CancelReceipt, PromptReceipt, Run, RunState
from covey.protocol.search import SearchResult
from covey.protocol.sse import FrameDecoder
from covey.protocol.stats import Spending

SILENCE_S = 35.0
"""The server sends a comment each 15 s: two were missed, so the connection is dead, whatever the kernel thinks."""
SHELL_S = 3600.0
"""A person's own command may take as long as they want to wait."""
LONG_POLL_S = 60.0
"""The longest `wait` that the server grants."""


class Client(MoreCalls):
    """A connection to one server, as one client with one id. Not thread-safe."""

    @classmethod
    def connect(cls, host: str, *, token: str = "") -> Client:
        """A client for `unix://PATH` or `tcp://ADDR:PORT`. The connection is made with the first request."""
        return cls(Address.parse(host), token=token)

    # ── the server ──

    async def health(self) -> Health:
        return await self._get(Health, "/v1/health")

    async def version(self) -> Version:
        return await self._get(Version, "/v1/version")

    async def control(self, command: Literal["shutdown", "shutdown_if_idle"]) -> None:
        await self._send("POST", "/v1/control", Control(command=command))

    async def goodbye(self) -> None:
        """Give up all claims of this client at once. It cannot create workspaces any more."""
        await self._send("DELETE", f"/v1/clients/{quoted(self.client_id)}")

    async def metrics(self) -> str:
        return (await self._send("GET", "/metrics")).decode()

    async def openapi(self) -> dict[str, Any]:
        return await self._get(dict[str, Any], "/openapi.json")

    # ── workspaces ──

    async def workspaces(self) -> tuple[WorkspaceView, ...]:
        return await self._get(tuple[WorkspaceView, ...], "/v1/workspaces")

    async def create_workspace(self, path: str, *, env: dict[str, str] | None = None) -> WorkspaceView:
        """Make or join the workspace of this directory."""
        request = CreateWorkspace(
            path=path, client_id=self.client_id, client_name=self.name, client_kind=self.kind, env=env
        )
        return await self._join(request)

    async def hold_workspace(self, path: str, *, env: dict[str, str] | None = None) -> WorkspaceView:
        """Keep it open for whoever comes within 30 s, also if this client says goodbye before."""
        request = CreateWorkspace(path=path, client_id=str(uuid.uuid4()), client_kind="web", env=env)
        return await self._post(WorkspaceView, "/v1/workspaces", request)

    async def rejoin(self, workspace_id: str) -> str:
        """Join a workspace again, as before; its id may be another one. One that it has not joined is left alone."""
        request = self._joined.get(workspace_id)
        return (await self._join(request)).id if request else workspace_id

    async def _join(self, request: CreateWorkspace) -> WorkspaceView:
        workspace = await self._post(WorkspaceView, "/v1/workspaces", request)
        self._joined[workspace.id] = request
        return workspace

    async def workspace(self, workspace_id: str) -> WorkspaceView:
        return await self._get(WorkspaceView, workspace_path(workspace_id))

    async def release_workspace(self, workspace_id: str) -> None:
        self._joined.pop(workspace_id, None)
        await self._send("DELETE", workspace_path(workspace_id), client_id=self.client_id)

    async def set_current_session(self, workspace_id: str, session_id: str) -> None:
        """Say which session this client shows now; it needs an open event stream."""
        body = CurrentSession(session_id=session_id)
        await self._send("POST", f"{workspace_path(workspace_id)}/current-session", body, client_id=self.client_id)

    async def config(self, workspace_id: str) -> ConfigView:
        return await self._get(ConfigView, f"{workspace_path(workspace_id)}/config")

    async def providers(self, workspace_id: str) -> tuple[ProviderInfo, ...]:
        return await self._get(tuple[ProviderInfo, ...], f"{workspace_path(workspace_id)}/providers")

    # ── sessions ──

    async def sessions(
        self,
        workspace_id: str,
        *,
        children: bool = False,
        archived: bool = False,
        before: str = "",
        limit: int | None = None,
    ) -> tuple[Session, ...]:
        """The last changed first: all, or a page of them that follows the session `before`.

        `children`: also those in which agents work; older servers always give them. `archived`: also those.
        """
        found = await self._get(
            tuple[Session, ...],
            f"{workspace_path(workspace_id)}/sessions",
            before=before,
            limit=limit,
            children="1" if children else None,
            archived="1" if archived else None,
        )
        return tuple(session for session in found if children or not session.parent_session_id)

    async def create_session(self, workspace_id: str, title: str = "") -> Session:
        return await self._post(Session, f"{workspace_path(workspace_id)}/sessions", CreateSession(title=title))

    async def session(self, workspace_id: str, session_id: str) -> Session:
        return await self._get(Session, session_path(workspace_id, session_id))

    async def update_session(self, workspace_id: str, session_id: str, change: UpdateSession) -> Session:
        return decode(Session, await self._send("PUT", session_path(workspace_id, session_id), change))

    async def delete_session(self, workspace_id: str, session_id: str) -> None:
        await self._send("DELETE", session_path(workspace_id, session_id))

    async def messages(
        self,
        workspace_id: str,
        session_id: str,
        *,
        after: str = "",
        before: str | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        """In order: all, those after one, or with `before` the `limit` messages that end there ('': the last ones)."""
        path = f"{session_path(workspace_id, session_id)}/messages"
        body = await self._send("GET", path, after=after, before=before, limit=limit)
        with readable(body):
            return decode_messages(body)

    async def changes(
        self, workspace_id: str, session_id: str, *, run_id: str = "", after: str = "", diffs: bool = True
    ) -> SessionChanges:
        """What the session, or one turn, has changed: by file and turn. `next` of the answer is `after` of the next."""
        path = f"{session_path(workspace_id, session_id)}/changes"
        return await self._get(SessionChanges, path, run_id=run_id, after=after, diffs=None if diffs else "0")

    async def search(
        self, workspace_id: str, query: str, *, before: str = "", limit: int | None = None
    ) -> SearchResult:
        """Messages and titles with all words of a query; with `before`, the messages older than that one."""
        path = f"{workspace_path(workspace_id)}/search"
        return await self._get(SearchResult, path, q=query, before=before, limit=limit)

    async def search_everywhere(self, query: str, *, limit: int | None = None) -> SearchResult:
        """The same in all workspaces of the server."""
        return await self._get(SearchResult, "/v1/search", q=query, limit=limit)

    async def export(
        self, workspace_id: str, session_id: str, format: Literal["markdown", "json"]
    ) -> AsyncGenerator[bytes, None]:
        """All of a session, as it arrives."""
        where = target(f"{session_path(workspace_id, session_id)}/export", {"format": format})
        async for piece in self._pieces(await self._open(where, {}), self._answer_s):
            yield piece

    async def undo(self, workspace_id: str, session_id: str, request: UndoTurns) -> UndoReceipt:
        """Take turns back, with their files. Conflict (`undo_conflict`): somebody else has changed one of them."""
        return await self._post(UndoReceipt, f"{session_path(workspace_id, session_id)}/undo", request)

    async def fork(self, workspace_id: str, session_id: str, request: ForkSession) -> Session:
        """A new session with copies of the messages, up to one of them or all."""
        return await self._post(Session, f"{session_path(workspace_id, session_id)}/fork", request)

    async def find_files(self, workspace_id: str, query: str, *, limit: int | None = None) -> FoundFiles:
        """Files that are not ignored, by a few letters of their paths."""
        return await self._get(FoundFiles, f"{workspace_path(workspace_id)}/files", q=query, limit=limit)

    async def run_shell(self, workspace_id: str, session_id: str, wanted: RunShell) -> ShellResult:
        """A person's own command; returns at its end."""
        path = f"{lane_path(workspace_id, session_id)}/shell"
        return decode(ShellResult, await self._send("POST", path, wanted, extra_s=SHELL_S))

    # ── the agent ──

    async def agent(self, workspace_id: str) -> AgentInfo:
        return await self._get(AgentInfo, f"{workspace_path(workspace_id)}/agent")

    async def init_agent(self, workspace_id: str) -> None:
        await self._send("POST", f"{workspace_path(workspace_id)}/agent/init")

    async def update_agent(self, workspace_id: str) -> None:
        """Reload models and tools; open runs go on as they are."""
        await self._send("POST", f"{workspace_path(workspace_id)}/agent/update")

    async def post_prompt(self, workspace_id: str, prompt: PostPrompt) -> PromptReceipt:
        """Have a prompt accepted. Safe to repeat if it has a run id."""
        return await self._post(PromptReceipt, f"{workspace_path(workspace_id)}/agent", prompt)

    async def agent_session(self, workspace_id: str, session_id: str) -> AgentSession:
        return await self._get(AgentSession, lane_path(workspace_id, session_id))

    async def cancel_session(self, workspace_id: str, session_id: str) -> CancelReceipt:
        """Cancel every run of the session that is open now."""
        return await self._post(CancelReceipt, f"{lane_path(workspace_id, session_id)}/cancel")

    async def summarize(self, workspace_id: str, session_id: str, *, focus: str = "") -> PromptReceipt:
        """Have the session's conversation replaced by a summary: a run like any other. `focus`: what must be kept."""
        wanted = SummarizeSession(focus=focus) if focus else None
        return await self._post(PromptReceipt, f"{lane_path(workspace_id, session_id)}/summarize", wanted)

    async def queued_count(self, workspace_id: str, session_id: str) -> int:
        return await self._get(int, f"{lane_path(workspace_id, session_id)}/prompts/queued")

    async def queued_prompts(self, workspace_id: str, session_id: str) -> tuple[str, ...]:
        return await self._get(tuple[str, ...], f"{lane_path(workspace_id, session_id)}/prompts/list")

    async def clear_queue(self, workspace_id: str, session_id: str) -> None:
        await self._send("POST", f"{lane_path(workspace_id, session_id)}/prompts/clear")

    async def edit_prompt(self, workspace_id: str, session_id: str, run_id: str, change: EditPrompt) -> Run:
        """Change the text or the place of a prompt that still waits, park it or unpark it."""
        path = f"{lane_path(workspace_id, session_id)}/prompts/{quoted(run_id)}"
        return decode(Run, await self._send("PATCH", path, change))

    async def drop_prompt(self, workspace_id: str, session_id: str, run_id: str) -> None:
        await self._send("DELETE", f"{lane_path(workspace_id, session_id)}/prompts/{quoted(run_id)}")

    # ── runs ──

    async def runs(
        self, workspace_id: str, *, session_id: str = "", state: RunState | Literal[""] = "", limit: int | None = None
    ) -> tuple[Run, ...]:
        """The newest first."""
        path = f"{workspace_path(workspace_id)}/runs"
        return await self._get(tuple[Run, ...], path, session_id=session_id, state=state, limit=limit)

    async def all_runs(
        self, *, state: RunState | Literal[""] = "", limit: int | None = None
    ) -> tuple[WorkspaceRun, ...]:
        """Those of all workspaces of the server, the newest first."""
        return await self._get(tuple[WorkspaceRun, ...], "/v1/runs", state=state, limit=limit)

    async def all_sessions(
        self, *, children: bool = False, archived: bool = False, before: str = "", limit: int | None = None
    ) -> tuple[WorkspaceSession, ...]:
        """A page of those of all workspaces of the server, the last changed first; `before`: `workspace_id/id`."""
        return await self._get(
            tuple[WorkspaceSession, ...],
            "/v1/sessions",
            children="1" if children else None,
            archived="1" if archived else None,
            before=before,
            limit=limit,
        )

    async def stats(self, *, days: int | None = None) -> tuple[Spending, ...]:
        """What the runs of the last days used, by day, workspace and model, the newest day first."""
        return await self._get(tuple[Spending, ...], "/v1/stats", days=days)

    async def activity(self) -> AsyncGenerator[Activity, None]:
        """What goes on in all workspaces: first what is open, then what happens, until the connection ends.

        It has no past: whoever connects again gets what is open then.
        """
        decoder = FrameDecoder()
        async for chunk in self._pieces(await self._open_stream("/v1/activity", {}), SILENCE_S):
            for frame in decoder.feed(chunk):
                yield decode_activity(frame.data)

    async def run(self, workspace_id: str, run_id: str, *, wait: float = 0) -> Run:
        """The run as it is now or, with `wait`, as soon as it has ended or that many seconds have passed."""
        wait = min(wait, LONG_POLL_S)
        path = f"{workspace_path(workspace_id)}/runs/{quoted(run_id)}"
        return await self._get(Run, path, extra_s=wait, wait=f"{wait:g}" if wait else None)

    async def cancel_run(self, workspace_id: str, run_id: str) -> CancelReceipt:
        """Cancel one run, and not its neighbours. May overtake the prompt."""
        return await self._post(CancelReceipt, f"{workspace_path(workspace_id)}/runs/{quoted(run_id)}/cancel")

    # ── permissions ──

    async def skips_permissions(self, workspace_id: str) -> bool:
        return (await self._get(Skip, f"{workspace_path(workspace_id)}/permissions/skip")).skip

    async def skip_permissions(self, workspace_id: str, skip: bool) -> None:
        """Allow everything in the workspace, for everybody, until it is set back."""
        await self._send("POST", f"{workspace_path(workspace_id)}/permissions/skip", Skip(skip=skip))

    async def permissions(self, workspace_id: str) -> tuple[PermissionRequest, ...]:
        return await self._get(tuple[PermissionRequest, ...], f"{workspace_path(workspace_id)}/permissions")

    async def answer_permission(
        self, workspace_id: str, permission_id: str, action: PermissionAction, reason: str = "", **further: bool
    ) -> bool:
        """Answer a request, with what else there is in `Grant`: `network=True`. False: somebody else was faster."""
        grant = Grant(permission=PermissionId(id=permission_id), action=action, reason=reason, **further)
        return (await self._post(Resolved, f"{workspace_path(workspace_id)}/permissions/grant", grant)).resolved

    # ── questions ──

    async def questions(self, workspace_id: str) -> tuple[QuestionBatchRequest, ...]:
        return await self._get(tuple[QuestionBatchRequest, ...], f"{workspace_path(workspace_id)}/questions")

    async def answer_questions(self, workspace_id: str, batch_id: str, responses: Sequence[QuestionResponse]) -> bool:
        """Answer all questions of a batch. False: somebody else was faster."""
        answers = AnswerQuestions(batch_request_id=batch_id, responses=tuple(responses))
        return (await self._post(Resolved, f"{workspace_path(workspace_id)}/questions/answer", answers)).resolved

    async def refuse_questions(self, workspace_id: str, batch_id: str) -> bool:
        """Answer none of a batch: the agent goes on without. False: somebody else was faster."""
        refusal = CancelQuestions(batch_request_id=batch_id)
        return (await self._post(Resolved, f"{workspace_path(workspace_id)}/questions/cancel", refusal)).resolved

    # ── jobs ──

    async def jobs(self, workspace_id: str) -> tuple[JobView, ...]:
        """Commands that sessions left running, and those that ended lately. Older servers list none."""
        return await self._list(JobView, f"{workspace_path(workspace_id)}/jobs")

    async def job(self, workspace_id: str, job_id: str) -> JobView:
        """One job, with the end of its output."""
        return await self._get(JobView, f"{workspace_path(workspace_id)}/jobs/{quoted(job_id)}")

    async def kill_job(self, workspace_id: str, job_id: str) -> JobView:
        """End a job with all its processes."""
        return await self._post(JobView, f"{workspace_path(workspace_id)}/jobs/{quoted(job_id)}/kill")
