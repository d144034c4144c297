"""A view → what the editor that shows its session is told (`session/update`). Pure: inputs in, updates out when asked.

updates.step(fed, step)        # after each input of the view
for update in updates.take():  # when the editor can be told something
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from covey.acp.asking import question_text
from covey.acp.content import Json, fenced, shown, text_block
from covey.acp.settings import config_options, mode_of
from covey.acp.transcript_updates import TranscriptUpdates
from covey.client.view.inputs import Received, ViewInput
from covey.client.view.meters import meters_of
from covey.client.view.view import Step, View
from covey.lines.plain_text import plain, visible
from covey.protocol.events import AgentEvent, QuestionBatchRequest, ToolOutputDelta
from covey.protocol.messages import Session

MESSAGES_AT_ONCE = 50
"""Between two looks at whether the editor still reads."""
OUTPUT_SHOWN = 4096
"""Characters at the end of what a running call prints: it is sent whole with each change."""


class SessionUpdates:
    """For one session that an editor shows. `own`: the runs of its prompts. `notices`: it can show notices."""

    def __init__(self, view: View, session_id: str, root: str, own: Container[str], *, notices: bool = False) -> None:
        self._view = view
        self._session_id = session_id
        self._notices = notices
        self._transcript = TranscriptUpdates(own, root)
        self._printed: dict[str, None] = {}
        """Calls that have printed something since."""
        self._told: list[Json] = []
        self._title: str | None = None
        self._mode: str | None = None
        self._options: list[Json] | None = None
        self._plan: list[Json] = []
        self._usage: Json = {}

    # ── what happened ──

    def step(self, fed: ViewInput, step: Step) -> None:
        """The view has taken this in."""
        if step.change:
            self._transcript.changed(step.change, self._view.conversation.messages)
        match fed:
            case Received(event) if event.session_id == self._session_id:
                match event.payload:
                    case ToolOutputDelta() as delta:
                        self._printed[delta.tool_call_id] = None
                    case AgentEvent(type="retry" | "warning") as said:
                        self.tell(said.reason or said.error or "The model is asked again.")

    def tell(self, text: str) -> None:
        """Something that whoever looks should know, and that is no part of the conversation."""
        if self._notices:
            self._told.append({"sessionUpdate": "notice", "severity": "warning", "title": plain(text) or "?"})
        else:
            self._told.append({"sessionUpdate": "agent_thought_chunk", "content": text_block(f"{plain(text)}\n\n")})

    def tell_question(self, batch: QuestionBatchRequest) -> None:
        """To an editor that cannot ask: it has to be answered elsewhere."""
        text = (
            f"The agent asks:\n\n{question_text(batch.questions)}\n\nThis editor cannot answer it. "
            f"In a terminal: `covey runs answer {visible(batch.run_id or '')}`. Cancel to go on without."
        )
        self._told.append({"sessionUpdate": "agent_message_chunk", "content": text_block(text)})

    # ── what the editor is told ──

    @property
    def is_pending(self) -> bool:
        return self._transcript.is_pending

    def begin(self, *, replay: bool) -> None:
        """The editor begins to look: at everything that there was, or only at what comes from here on."""
        messages = self._view.conversation.messages
        if replay:
            self._transcript.replay(messages)
        else:
            self._transcript.skip(messages)
        session = self._session
        self._plan, self._usage = [], {}
        self._title = session.title if session else None
        self._mode = mode_of(session)
        self._options = config_options(session, self._view.workspace)

    def take(self) -> list[Json]:
        """What has come since; while `is_pending`, there is more."""
        found = list(self._transcript.take(self._view.conversation.messages, MESSAGES_AT_ONCE))
        if self._transcript.is_pending:
            return found
        told, self._told = self._told, []
        return [*found, *self._outputs(), *told, *self._settings()]

    @property
    def _session(self) -> Session | None:
        record = self._view.sessions.get(self._session_id)
        return record.session if record else None

    def _outputs(self) -> Iterator[Json]:
        printed, self._printed = self._printed, {}
        for call_id in printed:
            output = self._view.conversation.outputs.get(call_id)
            if output is None or not self._transcript.knows(call_id):
                continue  # it has its result by now, or is a job: the call that started it has ended
            text = plain(output.text[-OUTPUT_SHOWN:])
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": call_id,
                "status": "in_progress",
                "content": [shown(text_block(fenced(text)))],
            }

    def _settings(self) -> Iterator[Json]:
        session = self._session
        if session is None:
            return
        if session.title != self._title:
            self._title = session.title
            yield {"sessionUpdate": "session_info_update", "title": plain(session.title)}
        if (mode := mode_of(session)) != self._mode:
            self._mode = mode
            yield {"sessionUpdate": "current_mode_update", "currentModeId": mode}
        if (options := config_options(session, self._view.workspace)) != self._options:
            self._options = options
            yield {"sessionUpdate": "config_option_update", "configOptions": options}
        if (plan := _plan(session)) != self._plan:
            self._plan = plan
            yield {"sessionUpdate": "plan", "entries": plan}
        if (usage := self._used(session)) and usage != self._usage:
            self._usage = usage
            yield {"sessionUpdate": "usage_update", **usage}

    def _used(self, session: Session) -> Json:
        meters = meters_of(session, self._view.workspace)
        used = meters.prompt_tokens + meters.completion_tokens
        if not used or not meters.context_window:
            return {}
        return {"used": used, "size": meters.context_window, "cost": {"amount": meters.cost, "currency": "USD"}}


_STATUSES = ("pending", "in_progress", "completed")


def _plan(session: Session) -> list[Json]:
    """The session's list of things to do."""
    return [
        {
            "content": plain(str(todo.get("content", ""))),
            "priority": "medium",
            "status": status if (status := str(todo.get("status"))) in _STATUSES else "pending",
        }
        for todo in session.todos or ()
    ]
