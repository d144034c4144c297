"""What a prompt must be to be accepted (R1), and the row that it becomes. Decides nothing about runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from covey.context import mentions
from covey.engine.world import World
from covey.lifecycle.decisions import waits_as
from covey.lifecycle.output_schema import UnusableSchema, check_schema
from covey.permissions.rule_names import why_never
from covey.permissions.rules import plain_rule
from covey.protocol.errors import BadRequest
from covey.protocol.messages import Attachment
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Mode, Run, RunOptions
from covey.protocol.who import Who
from covey.store.base import RunRow, prompt_digest
from covey.tools.threads import in_thread


def check(request: PostPrompt) -> None:
    """Raise BadRequest for what can never be a prompt."""
    if not request.session_id:
        raise BadRequest("session_id is missing", "invalid_request")
    if not request.prompt.strip() and not any(attachment.is_text for attachment in request.attachments):
        raise BadRequest("the prompt is empty; send a text, or attach a text file", "empty_prompt")
    check_cwd(request.cwd)
    if request.output_schema is not None:
        try:
            check_schema(request.output_schema)
        except UnusableSchema as error:
            raise BadRequest(f"output_schema cannot be used: {error}", "unusable_schema") from None


def check_cwd(path: str) -> None:
    """Raise BadRequest for what is not below the root, by its words alone: what is said in a directory that is gone is
    still a prompt."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise BadRequest("cwd is a directory of the workspace, from its root, such as src/api", "invalid_request")


def check_rules(rules: Iterable[str]) -> None:
    """Raise BadRequest for a rule about a tool that there is not: it would never allow anything."""
    for rule in rules:
        if why := why_never(plain_rule(rule)):
            raise BadRequest(f"the rule {rule!r} {why}", "invalid_rule")


async def mentioned(request: PostPrompt, root: Path) -> tuple[Attachment, ...]:
    """The files that a prompt mentions as `@path`, as they are now."""
    if "@" not in request.prompt:
        return ()
    return tuple(await in_thread(lambda: mentions.expand(request.prompt, root, request.cwd)))


def digest(request: PostPrompt, options: RunOptions) -> str:
    """What makes two posts the same (R14): also if somebody watches only one of them."""
    return prompt_digest(request.session_id, request.prompt, request.attachments, _unless_default(options.decides))


def mode_of(request: PostPrompt, options: RunOptions) -> Mode | None:
    """How the prompt is to wait, as far as the post says so."""
    return _mode(request, options) if request.mode else None


def _mode(request: PostPrompt, options: RunOptions) -> Mode:
    return waits_as(request.mode, is_named=bool(request.run_id), has_options=options.are_own)


def _unless_default(options: RunOptions) -> RunOptions | None:
    return None if options == RunOptions() else options


def accepted(
    request: PostPrompt,
    options: RunOptions,
    more: tuple[Attachment, ...],
    seq: int,
    world: World,
    who: Who,
    chosen_id: str = "",
) -> RunRow:
    """The row of a prompt. `more` is attached, but is no part of what was posted: files change, a post does not.

    `chosen_id`: the id if the caller gave none; it makes the prompt no other than one without (R7).
    """
    run = Run(
        run_id=request.run_id or chosen_id or world.new_id(),
        session_id=request.session_id,
        seq=seq,
        state="accepted",
        mode=_mode(request, options),
        prompt=request.prompt,
        accepted_at=world.now(),
        options=_unless_default(options),
        posted_by=who.label,
    )
    return RunRow(run, digest(request, options), (*request.attachments, *more))
