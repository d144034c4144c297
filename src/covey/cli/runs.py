"""`covey runs`: find the runs of a directory, follow one that goes on by itself, or cancel it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from covey.cli import common, exits, runs_answer
from covey.cli.endings import in_flags
from covey.cli.ids import find_run
from covey.cli.listing import headed, row, sentences, tell
from covey.cli.open_runs import LOOKED_AT, OPEN, Request, only_open_run, open_requests, open_runs, waits_for
from covey.cli.screen import plain
from covey.cli.terminal_text import json_text, one_line
from covey.cli.waiting import wait
from covey.client.client import Client
from covey.lines.plain_text import visible
from covey.protocol.activity import WorkspaceRun
from covey.protocol.events import PermissionRequest
from covey.protocol.runs import CancelReceipt, Run

ENDED_SHOWN = 20
"""Of those that have ended, the latest."""
WAITS = {
    "permission": "waiting for a permission",
    "model": "waiting for the model",
    "store": "waiting for room on the disk",
}
PROMPT_SHOWN = 60
"""How much of a prompt fits on a line."""


def main(args: argparse.Namespace) -> int:
    if args.action == "wait":
        return wait(args, lambda client, workspace_id: _run_of(client, workspace_id, args), args.run_id or "")
    return common.run(_runs(args))


async def _run_of(client: Client, workspace_id: str, args: argparse.Namespace) -> Run:
    if args.run_id:
        return await find_run(client, workspace_id, args.run_id)
    return await only_open_run(client, workspace_id)


async def _runs(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        if args.everywhere and args.action in (None, "list"):
            return await _list_everywhere(client, args)
        workspace_id = (await common.join(client, args.cwd)).id
        return await ACTIONS.get(args.action, _list)(client, workspace_id, args)


# ── list ──


async def _list(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    runs = await open_runs(client, workspace_id)
    ended = await _ended_runs(client, workspace_id) if args.all else []
    runs += ended[:ENDED_SHOWN]
    asks: dict[str, list[Request]] = {}
    for request in await open_requests(client, workspace_id):
        asks.setdefault(request.run_id or "", []).append(request)
    if args.json:
        print(json_text([_as_json(run, asks.get(run.run_id, [])) for run in runs]))
        return exits.OK
    # What an agent does for another belongs to that one's run, unless somebody has to answer it.
    shown = [run for run in runs if not run.effective_options.delegate or run.run_id in asks]
    now = time.time()
    states = _states(shown)
    for run in shown:
        print(_line(run, now, runs, states))
        for request in asks.get(run.run_id, []):
            print(_asked(request))
    _say_of_more(ended)
    if not shown:
        common.note(f"There are no {'' if args.all else 'open '}runs in this directory.")
    return exits.OK


async def _list_everywhere(client: Client, args: argparse.Namespace) -> int:
    """Those of all directories. What one of them asks is answered where it is: `covey runs` there says how."""
    found: dict[str, WorkspaceRun] = {}
    for state in OPEN:
        found |= {run.run_id: run for run in await client.all_runs(state=state, limit=LOOKED_AT)}
    runs = [run for run in found.values() if not run.ended]
    ended = [run for run in await client.all_runs(limit=LOOKED_AT) if run.ended] if args.all else []
    runs += ended[:ENDED_SHOWN]
    runs.sort(key=lambda run: (run.accepted_at, run.seq), reverse=True)
    if args.json:
        print(json_text(runs))
        return exits.OK
    now = time.time()
    shown = [run for run in runs if not run.effective_options.delegate]
    states = _states(shown)
    for path in dict.fromkeys(run.path for run in shown):
        print(one_line(path))
        here = [run for run in shown if run.path == path]
        for run in here:
            print(_line(run, now, here, states, "  "))
    _say_of_more(ended)
    if not shown:
        common.note(f"There are no {'' if args.all else 'open '}runs.")
    return exits.OK


async def _ended_runs(client: Client, workspace_id: str) -> list[Run]:
    newest = await client.runs(workspace_id, limit=LOOKED_AT)
    return [run for run in newest if run.ended and not run.effective_options.delegate]


def _say_of_more(ended: Sequence[Run]) -> None:
    if len(ended) > ENDED_SHOWN:
        sys.stdout.flush()  # the note about what is left out comes below the list
        common.note(f"Only the latest {ENDED_SHOWN} that have ended are listed: there are more.")


def _as_json(run: Run, asked: list[Request]) -> dict[str, Any]:
    """`asks`: what kind of answer the run waits for; `requests`: all that it asks."""
    kinds = ["permission" if isinstance(request, PermissionRequest) else "question" for request in asked]
    return {**msgspec.to_builtins(run), "asks": kinds[0] if kinds else None, "requests": msgspec.to_builtins(asked)}


def _asked(request: Request) -> str:
    """What a run asks, and how it is answered from here: by the id of the request, which means nothing else."""
    if not isinstance(request, PermissionRequest):
        text = runs_answer.described(request).replace("\n", "\n          ")  # below the first question
        how = f"covey runs answer {request.id}{' TEXT' * len(request.questions)}"
        return plain(sentences(f"    asks: {text}\n      {how}"))
    text = runs_answer.described(request).replace("\n", "\n    ")  # not by words: every blank of a command counts
    ways = [visible(request.reason or "")] if request.asks_for else []
    ways.append(f"covey runs allow {request.id} · covey runs deny {request.id} [WHY]")
    if request.prefix_rules:
        ways.append(f"covey runs allow --prefix {request.id}    always here: {visible(request.prefix_rules[-1])}")
    return plain("\n".join([headed(f"    asks: {text}"), *(sentences(f"      {way}") for way in ways)]))


def _states(runs: Sequence[Run]) -> int:
    """Columns for what runs do."""
    return max((len(one_line(_state(run))) for run in runs), default=0)


def _line(run: Run, now: float, runs: Sequence[Run], states: int, indent: str = "") -> str:
    state = one_line(_state(run))
    words = "a summary of the session" if run.effective_options.summarize else " ".join(run.prompt.split())
    prompt = words if len(words) <= PROMPT_SHOWN else words[: PROMPT_SHOWN - 1] + "…"
    lines = [row(f"{indent}{run.run_id}  {state:{states}}  {age(now - run.accepted_at):>6} ago  ", plain(prompt))]
    if run.error:
        lines.append(f"{indent}    {' '.join(in_flags(run.error, run.effective_options).split())}")
    if waits := waits_for(run, runs):
        lines.append(f"{indent}    {waits}")
    return plain("\n".join([lines[0], *map(sentences, lines[1:])]))


def _state(run: Run) -> str:
    """What a run does, for people."""
    kind, _, name = (run.waiting_on or "").partition(":")
    if kind == "tool":
        return "waiting for an answer" if name == "question" else f"running {name}"
    return WAITS.get(kind) or (f"{run.state} ({run.waiting_on})" if run.waiting_on else run.state)


def age(seconds: float) -> str:
    """In the largest unit that makes at least one."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"


# ── cancel ──


async def _cancel(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    # A cancel for an id that nobody knows would be kept for a prompt to come: here it is a slip of the pen.
    run_id = (await find_run(client, workspace_id, args.run_id)).run_id
    receipt = await client.cancel_run(workspace_id, run_id)
    run = await client.run(workspace_id, run_id)
    if args.json:
        print(json_text({**msgspec.to_builtins(receipt), "run_id": run.run_id, "state": run.state}))
    else:
        tell(_cancelled(receipt, run))
    return exits.OK


def _cancelled(receipt: CancelReceipt, run: Run) -> str:
    if receipt.covered:
        return "\n".join(f"Run {one.run_id} was {one.state_found} and is cancelled." for one in receipt.covered)
    state = f"had ended already ({run.state})" if run.ended else f"is {run.state}"
    return f"There was nothing to cancel: run {run.run_id} {state}."


ACTIONS: dict[str | None, Callable[[Client, str, argparse.Namespace], Coroutine[Any, Any, int]]] = {
    "allow": runs_answer.answer,
    "deny": runs_answer.answer,
    "answer": runs_answer.answer,
    "say": runs_answer.say,
    "interrupt": runs_answer.say,
    "cancel": _cancel,
}
"""All but `wait`, and `list`, which is the default."""
