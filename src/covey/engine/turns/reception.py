"""What happens to a prompt before a model reads it: hooks have their say, and the command that it asks for goes along.

It happens in the turn, and not when the prompt is posted: nobody who posts waits for it, a prompt that was edited while
it waited means what it says now, and a cancel reaches it. It is written before the model sees it, so that the model
reads what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from covey.context import mentions
from covey.context.command_text import parse_command
from covey.engine.agent import Agent
from covey.engine.asks.text_approvals import TextApprovals
from covey.engine.expansion import NotTrusted, attached, attachment_of, with_approved
from covey.engine.recorder import Batch, Recorder
from covey.engine.turns.hooks import TurnHooks
from covey.engine.turns.messages import attachment_part, hook_words, job_words
from covey.lifecycle.hooks import HookDecision
from covey.protocol.messages import Attachment, BinaryPart, Message, SessionMode
from covey.protocol.runs import Run
from covey.tools.base import ToolFailed
from covey.tools.threads import in_thread


class Refused(Exception):
    """A prompt may not be worked on; the text is for people."""


class Reception:
    """Receives the prompts of a workspace's turns."""

    def __init__(self, agent: Agent, recorder: Recorder, hooks: TurnHooks, approvals: TextApprovals) -> None:
        self._agent = agent
        self._recorder = recorder
        self._hooks = hooks
        self._approvals = approvals

    async def receive(
        self, run: Run, prompts: Sequence[Message], mode: SessionMode, *, beginning: str = ""
    ) -> list[Message]:
        """The prompts, with what goes along with each. What a model wrote asks for no command. Raises Refused.

        `beginning`: what hooks tell the model at the beginning of a session.
        """
        if run.effective_options.delegate or run.effective_options.summarize:
            return list(prompts)
        received = []
        for prompt in prompts:
            received.append(prompt if prompt.is_command else await self._received(run, prompt, mode, beginning))
            beginning = ""
        return received

    async def _received(self, run: Run, prompt: Message, mode: SessionMode, beginning: str) -> Message:
        said = await self._hooks.submit(run, prompt, mode)
        if said.decision is HookDecision.DENY or said.stops:
            raise Refused(f"a hook refused the prompt: {said.reason or said.stop_reason}")
        told = "\n".join(filter(None, (beginning, said.context)))
        along = [*await self._command(prompt), *([hook_words(told)] if told else [])]
        if ended := self._agent.jobs.unheard(prompt.session_id):
            along.append(job_words(ended))
        if not along:
            return prompt
        prompt = structs.replace(prompt, parts=(*prompt.parts, *map(attachment_part, along)))
        batch = Batch()
        batch.update_message(prompt)
        await self._recorder.write(batch)
        self._agent.jobs.heard(*ended)
        return prompt

    async def _command(self, prompt: Message) -> list[Attachment]:
        """The command that a prompt asks for, with the files that it mentions."""
        if parse_command(prompt.text) is None:
            return []
        texts = self._agent.texts_of(prompt.session_id)
        try:
            command = attached(texts, prompt.text)
        except NotTrusted as refused:
            if not await self._approvals.is_approved(refused.file):
                raise Refused(str(refused)) from None
            command = attached(with_approved(texts, refused.file), prompt.text)
        if command is None:
            return await self._server_prompt(prompt)
        more = await in_thread(lambda: mentions.expand(command.content.decode(), self._agent.root))
        known = {part.data.Path for part in prompt.parts if isinstance(part, BinaryPart)}
        return [command, *(each for each in more if each.file_path not in known)]

    async def _server_prompt(self, prompt: Message) -> list[Attachment]:
        """The prompt of an MCP server that is asked for; its text mentions no files, as a stranger wrote it."""
        asked = parse_command(prompt.text)
        try:
            found = await self._agent.prompts.expand(*asked) if asked else None
        except ToolFailed as error:
            raise Refused(str(error)) from None
        return [attachment_of(found)] if found else []
