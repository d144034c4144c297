"""Sends prompts and cancels of a view: for each session one after the other, in the order in which they were given.

So a cancel that follows a prompt covers it. What could not be sent is tried again, where twice is the same as once.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, assert_never

from covey.client.client import Client
from covey.client.errands import Errands
from covey.client.errors import ServerUnreachable, is_passing
from covey.client.view.commands import SendCancel, SendPrompt
from covey.client.view.inputs import CancelAnswered, CancelFailed, PromptAccepted, PromptRefused, ViewInput
from covey.client.view.view import View
from covey.protocol.errors import ApiError

FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 2.0
"""Somebody looks at a prompt that is not sent yet."""

SendCommand = SendPrompt | SendCancel


class ViewShell(Protocol):
    """What is around a view."""

    view: View

    @property
    def client(self) -> Client: ...

    @property
    def workspace_id(self) -> str: ...

    def feed(self, fed: ViewInput) -> None: ...


class Outgoing:
    """What is on its way to the server, by session."""

    def __init__(self, shell: ViewShell) -> None:
        self._shell = shell
        self._lanes: dict[str, list[SendCommand]] = {}
        """Of each session that something is sent to; the first one is being sent."""

    def add(self, command: SendCommand, errands: Errands, *, is_connected: bool) -> None:
        """While nothing is connected only a cancel of a session is tried: for all else the view asks again then."""
        session_id = self._session_of(command)
        may_wait = isinstance(command, SendPrompt) or bool(command.run_id)
        if not session_id or (may_wait and not is_connected):
            return
        lane = self._lanes.get(session_id)
        if lane is None:
            lane = self._lanes[session_id] = [command]
            errands.begin(("send", session_id), self._send_all(session_id, lane))
        elif command not in lane:
            lane.append(command)

    def clear(self) -> None:
        """Nothing of it is sent any more: its tasks have been cancelled."""
        self._lanes.clear()

    def _session_of(self, command: SendCommand) -> str:
        """Empty for a prompt that is not in the outbox: it is a run by now."""
        if isinstance(command, SendCancel):
            return command.session_id
        sent = self._shell.view.outbox.prompts.get(command.run_id)
        return sent.prompt.session_id if sent else ""

    async def _send_all(self, session_id: str, lane: list[SendCommand]) -> None:
        delay_s = FIRST_DELAY_S
        while lane:
            command = lane[0]
            if await self._send(command):
                lane.remove(command)
                delay_s = FIRST_DELAY_S
            else:
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, LONGEST_DELAY_S)
                lane.sort(key=lambda each: isinstance(each, SendPrompt))  # no cancel waits for such a prompt
        if self._lanes.get(session_id) is lane:
            del self._lanes[session_id]

    async def _send(self, command: SendCommand) -> bool:
        """False: it has to be sent again."""
        match command:
            case SendPrompt(run_id):
                return await self._post(run_id)
            case SendCancel(session_id, run_id):
                return await self._cancel(session_id, run_id)
            case _:
                assert_never(command)

    async def _post(self, run_id: str) -> bool:
        shell = self._shell
        sent = shell.view.outbox.prompts.get(run_id)
        if sent is None or sent.state != "sending":
            return True
        try:
            receipt = await shell.client.post_prompt(shell.workspace_id, sent.prompt)
        except (ServerUnreachable, ApiError) as error:
            if is_passing(error):
                return False
            shell.feed(PromptRefused(run_id, str(error), error.code))
        else:
            shell.feed(PromptAccepted(receipt))
        return True

    async def _cancel(self, session_id: str, run_id: str) -> bool:
        """That of a session is sent once: later, it would cover prompts that were accepted meanwhile."""
        shell = self._shell
        cancel = shell.view.outbox.cancels.get((session_id, run_id))
        if cancel is None or cancel.covered is not None:
            return True
        client, workspace_id = shell.client, shell.workspace_id
        try:
            sending = (
                client.cancel_run(workspace_id, run_id) if run_id else client.cancel_session(workspace_id, session_id)
            )
            receipt = await sending
        except (ServerUnreachable, ApiError) as error:
            if run_id and is_passing(error):
                return False
            shell.feed(CancelFailed(session_id, run_id))
        else:
            shell.feed(CancelAnswered(session_id, receipt, run_id))
        return True
