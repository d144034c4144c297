"""What a client does all day, with nothing that only one version of Covey has: run by old code and by new.

    PYTHONPATH=<sources> python either_client.py tcp://127.0.0.1:PORT TOKEN DIRECTORY

Prints what it saw, as one JSON object. Imports `covey` and nothing of the tests.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.prompt import run_prompt
from covey.protocol.events import MessageDelta, PermissionRequest
from covey.protocol.requests import PostPrompt, UndoTurns, UpdateSession
from covey.protocol.runs import RunComplete

SILENT = '[[{"text": "half an answer ", "ending": "silence"}]]'
TOUCH = '[[{"tools": [{"name": "bash", "input": {"command": "touch made"}}]}, {"text": "made it"}]]'
WRITE = '[[{"tools": [{"name": "write", "input": {"file_path": "new.txt", "content": "new"}}]}, {"text": "wrote it"}]]'


class Day:
    def __init__(self, client: Client, workspace_id: str) -> None:
        self._client = client
        self._workspace = workspace_id
        self._answering: set[asyncio.Task[bool]] = set()

    async def prompt(self, session_id: str, text: str, run_id: str) -> RunComplete:
        """One prompt to its end; whatever is asked is allowed."""

        def on_event(event: Any, change: Any) -> None:
            if isinstance(event.payload, PermissionRequest):
                answer = self._client.answer_permission(self._workspace, event.payload.id, "allow")
                self._answering.add(asyncio.ensure_future(answer))

        request = PostPrompt(session_id=session_id, prompt=text, run_id=run_id)
        return await run_prompt(self._client, self._workspace, request, on_event=on_event)

    async def runs(self) -> dict[str, Any]:
        client, workspace = self._client, self._workspace
        session = await client.create_session(workspace, "A day")
        said = await self.prompt(session.id, "hello", "said")
        allowed = await self.prompt(session.id, TOUCH, "allowed")
        wrote = await self.prompt(session.id, WRITE, "wrote")
        undone = await client.undo(workspace, session.id, UndoTurns())
        receipt = await client.summarize(workspace, session.id)
        summed_up = await client.run(workspace, receipt.run_id, wait=30)
        return {
            "said": said.text,
            "allowed": allowed.outcome,
            "answers": [await answer for answer in self._answering],
            "wrote": wrote.text,
            "undone": [turn.run_id for turn in undone.undone],
            "summed_up": summed_up.state,
            "roles": [message.role for message in await client.messages(workspace, session.id)],
        }

    async def queue(self) -> dict[str, Any]:
        client, workspace = self._client, self._workspace
        session = await client.create_session(workspace)
        async with EventStream(client, workspace, session_id=session.id) as stream:
            for run_id, text in (("active", SILENT), ("second", "two"), ("third", "three")):
                await client.post_prompt(workspace, PostPrompt(session_id=session.id, prompt=text, run_id=run_id))
            async for event in stream:
                if isinstance(event.payload, MessageDelta):
                    break
            queued = await client.queued_prompts(workspace, session.id)
            await client.clear_queue(workspace, session.id)
            covered = (await client.cancel_session(workspace, session.id)).covered
            ended: dict[str, str] = {}
            async for event in stream:
                if isinstance(event.payload, RunComplete):
                    ended[event.payload.run_id] = event.payload.outcome
                if len(ended) == 3:
                    break
        return {"queued": list(queued), "covered": [each.run_id for each in covered], "ended": ended}

    async def sessions(self) -> dict[str, Any]:
        client, workspace = self._client, self._workspace
        kept, gone = await client.create_session(workspace, "Kept"), await client.create_session(workspace, "Gone")
        renamed = await client.update_session(workspace, kept.id, UpdateSession(title="Renamed"))
        await client.delete_session(workspace, gone.id)
        titles = {session.title for session in await client.sessions(workspace)}
        return {"renamed": renamed.title, "listed": sorted(titles & {"Kept", "Gone", "Renamed"})}


async def main(host: str, token: str, directory: str) -> None:
    async with Client.connect(host, token=token) as client:
        workspace = await client.create_workspace(directory)
        day = Day(client, workspace.id)
        seen = {"runs": await day.runs(), "queue": await day.queue(), "sessions": await day.sessions()}
        print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
