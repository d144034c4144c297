"""`covey jobs`: what the agent left running in the background, and how it ended.

Only `output` starts a server: without one nothing runs, but the end of what ran lately is kept."""

from __future__ import annotations

import argparse
import shlex
import time

from covey.cli import common, exits
from covey.cli.listing import row
from covey.cli.runs import age
from covey.cli.terminal_text import json_text, one_line, plain
from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.protocol.errors import ApiError, NotFound
from covey.protocol.jobs import JobView
from covey.protocol.printed import as_printed
from covey.protocol.requests import WorkspaceView

NO_SERVER = "No server is running, so no jobs run. `covey jobs output ID` still shows those that have ended."


def main(args: argparse.Namespace) -> int:
    if args.action == "list" and args.job:
        raise exits.UsageError("list takes no job; did you mean `covey jobs output`?")
    if args.action != "list" and not args.job:
        raise exits.UsageError(f"{args.action} needs the id of a job; see `covey jobs`")
    return common.run(_jobs(args))


async def _jobs(args: argparse.Namespace) -> int:
    try:
        async with common.connected(args, autostart=args.action == "output") as client:
            if args.action == "list":
                return await _list(client, args)
            return await _each(client, args)
    except ServerUnreachable as error:
        if args.action != "list" or args.host or error.code != ServerUnreachable.code:  # else one may well run
            raise
    if args.json:
        print(json_text([]))
    else:
        common.note(NO_SERVER)
    return exits.OK


async def _each(client: Client, args: argparse.Namespace) -> int:
    """End jobs, or show what they have written. With `--json` an object on a line for each."""
    workspace = await common.join(client, args.cwd)
    for job_id in args.job:
        try:
            job = await (client.kill_job if args.action == "kill" else client.job)(workspace.id, job_id)
        except NotFound:  # also of a route: whatever was written may have slashes in it
            raise exits.CommandFailed(await _where(client, workspace, job_id, args.action)) from None
        if args.action == "kill":
            _print_one(job, args)
        else:
            print(json_text(job) if args.json else plain(as_printed(job.output or "").rstrip("\n")))
    return exits.OK


async def _where(client: Client, here: WorkspaceView, job_id: str, action: str) -> str:
    """What to say of a job that is not of this directory; perhaps it is of others that are open."""
    others = [each for each in await client.workspaces() if each.id != here.id]
    found = [each.path for each in others if job_id in {job.id for job in await client.jobs(each.id)}]
    if not found:
        return f"there is no {job_id} of {here.path}, or it ended long ago; --cwd DIR looks in another directory"
    commands = (f"covey jobs {action} {job_id} --cwd {shlex.quote(path)}" for path in found)
    return f"there is no {job_id} of {here.path}, but of another directory: {', or '.join(commands)}"


async def _list(client: Client, args: argparse.Namespace) -> int:
    """Those of every directory that is open, and of this one: what ended there is kept though nobody has it open."""
    try:
        await common.join(client, args.cwd)
    except ApiError as error:  # of the others it can be said all the same
        common.complain(error.message)
    found = [(workspace, await client.jobs(workspace.id)) for workspace in await client.workspaces()]
    if args.json:
        rows = [{"workspace": workspace.path, "job": job} for workspace, jobs in found for job in jobs]
        print(json_text(rows))
        return exits.OK
    if not any(jobs for _, jobs in found):
        common.note("Nothing runs in the background.")
    for workspace, jobs in found:
        if jobs:
            _print_workspace(workspace, jobs)
    return exits.OK


def _print_workspace(workspace: WorkspaceView, jobs: tuple[JobView, ...]) -> None:
    print(plain(workspace.path))
    states = max(len(_state(job)) for job in jobs)
    for job in jobs:
        print(_line(job, states, "  "))


def _print_one(job: JobView, args: argparse.Namespace) -> None:
    print(json_text(job) if args.json else _line(job))


def _line(job: JobView, states: int = 0, indent: str = "") -> str:
    return row(f"{indent}{job.id:8}  {_state(job):{states}}  ", one_line(job.command))


def _state(job: JobView) -> str:
    if job.is_running:
        return f"running {age(time.time() - job.started_at)}"
    if job.exit_code is None:
        return "ended (with the server)" if job.state == "closed" else "ended (killed)" if job.was_killed else "ended"
    return f"ended (exit {job.exit_code})"
