"""What each method of MCP does here, for both eras and every transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import assert_never

from covey.client.client import Client
from covey.client.connect import environment
from covey.client.errors import ServerUnreachable
from covey.client.prompt import new_run_id
from covey.mcp_server import eras, results, tools
from covey.mcp_server.runs import RunWatch, Tell, follow, post
from covey.protocol.errors import ApiError, NotFound
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt, QuestionResponse
from covey.rpc.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Params, RpcError

SCHEME = "covey://sessions/"
RESOURCES_PAGE = 50
READ_MESSAGES = 200
"""The newest messages of a session that is read as a resource."""
MOST_REMEMBERED = 10_000
"""Runs whose directory is known, so that they can be named by their id alone."""
CANCEL_S = 5.0
RESOURCE_NOT_FOUND = -32002


class McpService:
    """Answers requests. `root`: the directory that is meant where none is named."""

    def __init__(self, client: Client, root: str) -> None:
        self._client = client
        self._root = root
        self._roots: dict[str, str] = {}
        """By run, and by ask."""
        self.is_leaving = False
        """The caller has gone, or we have to: what was posted goes on. Otherwise a call that is cancelled ends it."""

    async def answer(self, method: str, params: Params, tell: Tell) -> Params:
        """The result of a request, as its era wants it. Raises RpcError. Cancelled: what it posted is cancelled too."""
        is_modern = eras.is_modern(method, params)
        if is_modern:
            eras.check_envelope(params)
            return eras.completed(method, await self._modern(method, params, tell))
        match method:
            case "initialize":
                return eras.initialized(params)
            case "ping":
                return {}
        return await self._either(method, params, tell, missing=RESOURCE_NOT_FOUND)

    async def _modern(self, method: str, params: Params, tell: Tell) -> Params:
        if method == "server/discover":
            return eras.discovered()
        return await self._either(method, params, tell, missing=INVALID_PARAMS)

    async def _either(self, method: str, params: Params, tell: Tell, *, missing: int) -> Params:
        match method:
            case "tools/list":
                return {"tools": tools.definitions()}
            case "tools/call":
                return await self._call(params, tell)
            case "resources/list":
                return await self._resources(params)
            case "resources/templates/list":
                return {"resourceTemplates": [_template()]}
            case "resources/read":
                return await self._read_resource(params, missing)
        raise RpcError(METHOD_NOT_FOUND, f"{method[:100]} is not known here")

    # ── tools ──

    async def _call(self, params: Params, tell: Tell) -> Params:
        name = str(params.get("name", ""))
        try:
            call = tools.read_call(name, params.get("arguments"))
            if call is None:
                raise RpcError(INVALID_PARAMS, f"there is no tool {name[:100]!r}")
            return await self._carry_out(call, tell)
        except tools.WrongArguments as wrong:
            return results.failed(str(wrong))
        except (ApiError, ServerUnreachable) as error:
            return results.failed(str(error))

    async def _carry_out(self, call: tools.ToolCallParams, tell: Tell) -> Params:
        match call:
            case tools.PromptCall():
                return await self._prompt(call, tell)
            case tools.WaitCall():
                return await self._wait(call, tell)
            case tools.CancelCall():
                workspace_id = await self._workspace(call.cwd or self._roots.get(call.run_id, ""))
                await self._client.cancel_run(workspace_id, call.run_id)
                return results.run_state(await self._client.run(workspace_id, call.run_id, wait=CANCEL_S))
            case tools.AnswerCall():
                return await self._answer(call)
            case tools.ListCall():
                workspace_id = await self._workspace(call.cwd)
                found = await self._client.sessions(workspace_id, before=call.before, limit=call.limit)
                return results.sessions_listed(found)
            case tools.ReadCall():
                return await self._read(call)
            case _:
                assert_never(call)

    async def _prompt(self, call: tools.PromptCall, tell: Tell) -> Params:
        root = call.cwd or self._root
        workspace_id = await self._workspace(root)
        session_id = call.session_id or (await self._client.create_session(workspace_id)).id
        run_id = new_run_id()
        self._remember(run_id, root)
        prompt = PostPrompt(session_id=session_id, prompt=call.prompt, run_id=run_id, model=call.model, plan=call.plan)
        watch = RunWatch(session_id, run_id, tell)
        try:
            ended = await post(self._client, workspace_id, prompt, watch, call.wait_s, is_first=not call.session_id)
        except asyncio.CancelledError:
            if not self.is_leaving:
                await self._cancel(workspace_id, run_id)
            raise
        return results.run_ended(ended) if ended else self._open(run_id, session_id, watch, root)

    async def _cancel(self, workspace_id: str, run_id: str) -> None:
        with suppress(ApiError, ServerUnreachable, TimeoutError):
            async with asyncio.timeout(CANCEL_S):
                await self._client.cancel_run(workspace_id, run_id)

    def _open(self, run_id: str, session_id: str, watch: RunWatch, root: str) -> Params:
        for ask_id in watch.asks:
            self._remember(ask_id, root)
        return results.run_open(run_id, session_id, list(watch.asks.values()))

    async def _wait(self, call: tools.WaitCall, tell: Tell) -> Params:
        root = call.cwd or self._roots.get(call.run_id, "")
        workspace_id = await self._workspace(root)
        run = await self._client.run(workspace_id, call.run_id)
        watch = RunWatch(run.session_id, run.run_id, tell)
        ended = await follow(self._client, workspace_id, run, watch, call.wait_s)
        return results.run_ended(ended) if ended else self._open(run.run_id, run.session_id, watch, root)

    async def _answer(self, call: tools.AnswerCall) -> Params:
        workspace_id = await self._workspace(call.cwd or self._roots.get(call.ask_id, ""))
        permission = any(ask.id == call.ask_id for ask in await self._client.permissions(workspace_id))
        if permission and call.action is None:
            return results.failed("This is a permission: answer it with `action`.")
        if permission and call.action:
            counted = await self._client.answer_permission(
                workspace_id, call.ask_id, call.action, call.reason, network=call.network
            )
        elif call.answers:
            given = [
                QuestionResponse(
                    request_id=each.question_id, yes=each.yes, selected_ids=each.choice_ids, fill_in_text=each.text
                )
                for each in call.answers
            ]
            counted = await self._client.answer_questions(workspace_id, call.ask_id, given)
        else:
            counted = await self._client.refuse_questions(workspace_id, call.ask_id)
        said = "It was taken." if counted else "It came too late: somebody else has answered, or the run has ended."
        return results.result(said, {"ask_id": call.ask_id, "counted": counted})

    async def _read(self, call: tools.ReadCall) -> Params:
        workspace_id = await self._workspace(call.cwd)
        session = await self._client.session(workspace_id, call.session_id)
        found = await self._client.messages(workspace_id, session.id, before=call.before, limit=call.limit + 1)
        return results.messages_read(session, found[-call.limit :], has_older=len(found) > call.limit)

    # ── resources ──

    async def _resources(self, params: Params) -> Params:
        cursor = params.get("cursor")
        workspace_id = await self._workspace("")
        before = cursor if isinstance(cursor, str) else ""
        try:
            found = await self._client.sessions(workspace_id, before=before, limit=RESOURCES_PAGE + 1)
        except ApiError as error:
            raise RpcError(INVALID_PARAMS, error.message) from None
        page = found[:RESOURCES_PAGE]
        listed: Params = {"resources": [_resource(session) for session in page]}
        return {**listed, "nextCursor": page[-1].id} if len(found) > RESOURCES_PAGE else listed

    async def _read_resource(self, params: Params, missing: int) -> Params:
        uri = str(params.get("uri", ""))
        session_id = uri.removeprefix(SCHEME) if uri.startswith(SCHEME) else ""
        workspace_id = await self._workspace("")
        try:
            if not session_id:
                raise NotFound("no such resource", "session_not_found")
            await self._client.session(workspace_id, session_id)
            messages = await self._client.messages(workspace_id, session_id, before="", limit=READ_MESSAGES)
        except NotFound:
            raise RpcError(missing, "there is no such resource", {"uri": uri[:1000]}) from None
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": results.transcript(messages)}]}

    # ── inside ──

    async def _workspace(self, cwd: str) -> str:
        root = cwd or self._root
        await self._client.revive()  # one that was started for somebody leaves when nobody has needed it for a minute
        return (await self._client.create_workspace(root, env=environment(self._client.address))).id

    def _remember(self, run_id: str, root: str) -> None:
        self._roots[run_id] = root
        if len(self._roots) > MOST_REMEMBERED:
            del self._roots[next(iter(self._roots))]


def _resource(session: Session) -> Params:
    return {
        "uri": f"{SCHEME}{session.id}",
        "name": session.id,
        "title": session.title or session.id,
        "mimeType": "text/markdown",
        "annotations": {"lastModified": results.when(session.updated_at)},
    }


def _template() -> Params:
    return {
        "uriTemplate": f"{SCHEME}{{session_id}}",
        "name": "session",
        "title": "A session as Markdown",
        "mimeType": "text/markdown",
    }


def internal(error: Exception) -> RpcError:
    """What is said about an error that no method expects."""
    if isinstance(error, ApiError | ServerUnreachable):
        return RpcError(-32603, str(error))
    return RpcError(-32603, f"{type(error).__name__}: {error}")


Progress = Callable[[Params], None]


class Teller:
    """Tells a caller who wants to know (`progressToken`) what goes on: the number rises with each line."""

    def __init__(self, params: Params, send: Progress) -> None:
        token = eras.meta_of(params).get("progressToken")
        self._token = token if isinstance(token, str | int) else None
        self._send = send
        self._count = 0

    def __call__(self, line: str) -> None:
        if self._token is not None:
            self._count += 1
            self._send({"progressToken": self._token, "progress": self._count, "message": line})
