"""What the tools answer: runs, what they ask, sessions and messages, as text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from covey.lines.plain_text import one_line
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.markdown import section
from covey.protocol.messages import Message, Session
from covey.protocol.runs import Run, RunComplete
from covey.rpc.messages import Params

TEXT_SHOWN = 64 * 1024
"""Characters of one answer: more than most models want at once."""
OUTPUT_SHOWN = 2000
"""Of one tool result in a transcript."""

AskRequest = PermissionRequest | QuestionBatchRequest


def result(text: str, facts: Params, *, is_error: bool = False) -> Params:
    """The result of a tool: `facts` for programs, `text` for models."""
    return {"content": [{"type": "text", "text": _cut(text)}], "structuredContent": facts, "isError": is_error}


def failed(sentence: str) -> Params:
    return {"content": [{"type": "text", "text": sentence}], "isError": True}


def run_ended(terminal: RunComplete) -> Params:
    facts = {
        "run_id": terminal.run_id,
        "session_id": terminal.session_id,
        "state": terminal.outcome,
        "text": _cut(terminal.text or ""),
    }
    if terminal.error:
        facts["error"] = terminal.error
    said = terminal.text or ""
    if terminal.outcome != "completed":
        said = f"The run ended as {terminal.outcome}. {terminal.error or ''}\n\n{said}".strip()
    return result(said or "(no text)", facts, is_error=terminal.outcome in ("failed", "interrupted"))


def run_open(run_id: str, session_id: str, asks: Sequence[AskRequest]) -> Params:
    """It still works, or waits for an answer."""
    facts: Params = {"run_id": run_id, "session_id": session_id, "state": "waiting" if asks else "running"}
    if not asks:
        return result(f"It still runs. Call `wait` with run_id {run_id}.", facts)
    facts["asks"] = [ask_facts(ask) for ask in asks]
    text = "\n\n".join(_ask_text(ask) for ask in asks)
    return result(f"{text}\n\nCall `answer`, then `wait` with run_id {run_id}. Somebody else may answer, too.", facts)


def ask_facts(ask: AskRequest) -> Params:
    if isinstance(ask, PermissionRequest):
        bulky = ("old_content", "new_content")
        params = {name: value for name, value in ask.params.items() if name not in bulky}
        return {
            "ask_id": ask.id,
            "kind": "permission",
            "tool": ask.tool_name,
            "about": ask.description,
            "params": params,
        }
    questions = [msgspec.to_builtins(item) for item in ask.questions]
    return {"ask_id": ask.id, "kind": "questions", "questions": questions}


def _ask_text(ask: AskRequest) -> str:
    facts = msgspec.json.format(msgspec.json.encode(ask_facts(ask))).decode()
    what = "It asks for a permission" if isinstance(ask, PermissionRequest) else "It has questions"
    return f"{what}:\n{facts}"


def sessions_listed(sessions: Sequence[Session]) -> Params:
    rows = [_session(session) for session in sessions]
    text = "\n".join(f"{row['session_id']}  {row['updated_at']}  {row['title']}" for row in rows)
    return result(text or "There are no sessions here yet.", {"sessions": rows})


def _session(session: Session) -> Params:
    return {
        "session_id": session.id,
        "title": one_line(session.title),
        "messages": session.message_count,
        "is_busy": session.is_busy,
        "updated_at": when(session.updated_at),
    }


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def messages_read(session: Session, messages: Sequence[Message], *, has_older: bool) -> Params:
    facts: Params = {**_session(session)}
    if has_older and messages:
        facts["older"] = messages[0].id
    return result(transcript(messages) or "(empty)", facts)


def transcript(messages: Iterable[Message]) -> str:
    """The end of it, if it is long."""
    text = "".join(section(message, OUTPUT_SHOWN) for message in messages).strip()
    return text if len(text) <= TEXT_SHOWN else f"…\n{text[-TEXT_SHOWN:]}"


def run_state(run: Run) -> Params:
    facts = {"run_id": run.run_id, "session_id": run.session_id, "state": run.state}
    return result(f"The run {run.run_id} is {run.state}.", facts)


def _cut(text: str) -> str:
    if len(text) <= TEXT_SHOWN:
        return text
    half = TEXT_SHOWN // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"
