"""The messages that the engine itself writes into a conversation."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from msgspec import structs

from covey.engine.world import World
from covey.protocol.custom import HOOK_TYPE, JOB_TYPE
from covey.protocol.messages import (
    Attachment,
    Binary,
    BinaryPart,
    Message,
    Part,
    Role,
    Text,
    TextPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.runs import Run
from covey.tools.job_output import state_of
from covey.tools.jobs import Job, shown


def user_message(run: Run, attachments: Sequence[Attachment], world: World) -> Message:
    """A prompt as it stands in the conversation."""
    parts: list[Part] = [TextPart(data=Text(text=run.prompt))] if run.prompt else []
    parts += map(attachment_part, attachments)
    return structs.replace(_message(run, "user", tuple(parts), world), cwd=run.effective_options.cwd)


def attachment_part(attachment: Attachment) -> BinaryPart:
    """What comes with a prompt, as a part of its message."""
    data = base64.b64encode(attachment.content).decode()
    path = attachment.file_path or attachment.file_name
    return BinaryPart(data=Binary(Path=path, MIMEType=attachment.mime_type, Data=data))


def hook_words(told: str) -> Attachment:
    """What hooks tell the model with a prompt: it is not the user's, and stands apart from their words."""
    return Attachment(file_path="hooks", file_name="hooks", mime_type=HOOK_TYPE, content=told.encode())


def job_words(ended: Sequence[Job]) -> Attachment:
    """What the model is told, once, of jobs that have ended: how, and by what call it gets the rest."""
    lines = [f"{job.id} ({shown(job.command)}) is not running any more: {state_of(job)}." for job in ended]
    told = "\n".join([*lines, "What it wrote is shown by job_output."])
    return Attachment(file_path="jobs", file_name="jobs", mime_type=JOB_TYPE, content=told.encode())


def tool_message(result: ToolResult, run: Run, world: World) -> Message:
    """The result of one tool call."""
    return _message(run, "tool", (ToolResultPart(data=result),), world)


def empty_answer(run: Run, world: World, *, model: str = "", provider: str = "") -> Message:
    """The answer of a turn that ended before the model said anything."""
    return _message(run, "assistant", (), world, model=model, provider=provider)


def _message(
    run: Run, role: Role, parts: tuple[Part, ...], world: World, *, model: str = "", provider: str = ""
) -> Message:
    now = world.now_s()
    return Message(
        id=world.new_id(),
        role=role,
        session_id=run.session_id,
        parts=parts,
        model=model,
        provider=provider,
        created_at=now,
        updated_at=now,
        run_id=run.run_id,
    )
