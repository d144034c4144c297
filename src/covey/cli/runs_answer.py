"""`covey runs allow`, `deny`, `answer`, `say` and `interrupt`: have a say in a run without waiting for it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from covey.cli import common, exits
from covey.cli.asks import Heard, QuestionAnswers, QuestionAsk, question_text
from covey.cli.ids import find_run
from covey.cli.listing import headed, sentences, tell
from covey.cli.open_runs import Request, open_requests, waits_for
from covey.cli.terminal_text import json_text
from covey.client.client import Client
from covey.client.cwd import cwd_in
from covey.client.prompt import new_run_id
from covey.lines.plain_text import visible
from covey.lines.request_text import request_text
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Mode, Run

RULES: dict[str, Callable[[PermissionRequest], tuple[str, ...]]] = {
    "allow_always": lambda request: request.rules,
    "allow_prefix": lambda request: request.prefix_rules,
}
"""What an answer adds to the rules of a directory."""


async def answer(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    """Answer the one request that is meant. Says what was answered, so that nothing is allowed unseen."""
    request = await _find_request(client, workspace_id, args.run_id)
    if args.action == "answer":
        resolved = await _answer_question(client, workspace_id, request, args.text)
    elif args.action == "deny" and isinstance(request, QuestionBatchRequest):
        resolved = await client.refuse_questions(workspace_id, request.id)
    else:
        resolved = await _answer_permission(client, workspace_id, request, args)
    if args.json:
        print(json_text({"id": request.id, "run_id": request.run_id, "resolved": resolved, **_facts(request, args)}))
    elif resolved:
        done = {"allow": "Allowed", "deny": "Denied", "answer": "Answered"}[args.action]
        shown = headed if isinstance(request, PermissionRequest) else sentences
        print(shown(f"{done}{_with_network(request, args)}: {described(request)}"))
        if further := _from_now_on(request, args):
            tell(further)
    else:
        raise exits.UsageError("somebody else was faster, or the run has ended")
    return exits.OK if resolved else exits.USAGE


def _facts(request: Request, args: argparse.Namespace) -> dict[str, Any]:
    """What was allowed or denied, for programs."""
    if not isinstance(request, PermissionRequest):
        return {}
    facts = {"action": "deny", "tool": request.tool_name, "description": request.description}
    if args.action != "allow":
        return facts
    further = {"network": _has_network(request, args), "unsandboxed": args.unsandboxed}
    return {**facts, "action": args.how, **further}


def _from_now_on(request: Request, args: argparse.Namespace) -> str:
    """What an answer allows beyond this once."""
    if args.action != "allow" or not isinstance(request, PermissionRequest):
        return ""
    if rules := RULES[args.how](request) if args.how in RULES else ():
        return f"From now on in {visible(request.path)}: {visible(' '.join(rules))}"
    return "The same again in this session, too." if args.how == "allow_session" else ""


async def _answer_permission(client: Client, workspace_id: str, request: Request, args: argparse.Namespace) -> bool:
    if not isinstance(request, PermissionRequest):
        raise exits.UsageError(f"the run asks a question: `covey runs answer {request.id} TEXT` answers it")
    if args.action == "deny":
        return await client.answer_permission(workspace_id, request.id, "deny", " ".join(args.text))
    if args.how in RULES and not RULES[args.how](request):
        raise exits.UsageError("no rule can say this: allow it once, or with --session")
    further = {"network": _has_network(request, args), "unsandboxed": args.unsandboxed}
    return await client.answer_permission(workspace_id, request.id, args.how, **further)


def _with_network(request: Request, args: argparse.Namespace) -> str:
    if args.action != "allow" or not isinstance(request, PermissionRequest):
        return ""
    return " with network" if _has_network(request, args) else ""


def _has_network(request: PermissionRequest, args: argparse.Namespace) -> bool:
    """As it was said, else as the call asks."""
    return request.yes_has_network if args.network is None else bool(args.network)


async def _answer_question(client: Client, workspace_id: str, request: Request, texts: Sequence[str]) -> bool:
    if not isinstance(request, QuestionBatchRequest):
        raise exits.UsageError(f"the run asks for a permission: `covey runs allow {request.id}` or deny")
    ask = QuestionAsk(request)
    count = len(request.questions)
    answers = [" ".join(texts)] if count == 1 else list(texts)
    if len(answers) != count:
        raise exits.UsageError(
            f"the run asks {count} questions: give one text for each, in quotes\n{described(request)}"
        )
    for text in answers:
        item = request.questions[len(ask.responses)]
        heard = ask.hear(text)
        if heard is Heard.AGAIN:
            choices = ", ".join(f"{choice.id} {choice.label}" for choice in item.choices) or "yes or no"
            raise exits.UsageError(f"{visible(text)!r} does not answer {visible(item.question)!r}: {visible(choices)}")
    assert isinstance(heard, QuestionAnswers) and heard.responses is not None
    return await client.answer_questions(workspace_id, request.id, heard.responses)


async def _find_request(client: Client, workspace_id: str, name: str) -> Request:
    """By its own id, or by that of its run if it asks nothing else."""
    requests = await open_requests(client, workspace_id)
    if found := next((request for request in requests if request.id == name), None):
        return found
    try:
        run = await find_run(client, workspace_id, name)
    except exits.UsageError as error:
        waits = "nothing that waits for an answer has this id: it may be answered already, or its run has ended"
        raise exits.UsageError(f"{error}\n{waits}") from None
    speaker = run.folded_into or run.run_id
    asked = [request for request in requests if request.run_id == speaker]
    if not asked:
        raise exits.UsageError(f"run {run.run_id} asks nothing now: it is {run.state}")
    if len(asked) > 1:
        listed = "\n".join(f"{request.id}  {described(request)}" for request in asked)
        raise exits.UsageError(f"run {run.run_id} asks more than one thing: say which one\n{listed}")
    return asked[0]


def described(request: Request) -> str:
    """All of what is asked: a command is never cut, so that no part of it is allowed unseen."""
    if isinstance(request, QuestionBatchRequest):
        return "\n".join(question_text(item) for item in request.questions)
    return request_text(request, whole="command" in request.params)


async def say(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    """Post a prompt into the session of a run that is open: to be read by it, or instead of it."""
    run = await find_run(client, workspace_id, args.run_id)
    if run.ended:
        further = f'`covey run -s {run.session_id} "…"` goes on in its session'
        raise exits.UsageError(f"run {run.run_id} has ended ({run.state}): {further}")
    mode: Mode = "fold" if args.action == "say" else "interrupt"
    prompt = PostPrompt(
        session_id=run.session_id,
        prompt=" ".join(args.text),
        run_id=new_run_id(),
        mode=mode,
        cwd=cwd_in(common.working_directory(args.cwd)),
    )
    receipt = await client.post_prompt(workspace_id, prompt)
    if args.json:
        print(json_text(receipt))
    else:
        posted = await client.run(workspace_id, receipt.run_id)
        tell(_said(posted, await client.runs(workspace_id, session_id=run.session_id)))
    return exits.OK


def _said(posted: Run, runs: Sequence[Run]) -> str:
    if posted.folded_into:
        return f"Said to run {posted.folded_into}, as {posted.run_id}."
    waits = waits_for(posted, runs)
    return f"Posted as run {posted.run_id}: {waits or posted.state}."
