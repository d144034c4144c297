"""`covey jobs`: what the agent left running in the background. Never starts a server: without one there are none."""

from __future__ import annotations

import argparse
import sys
import time

from covey.cli import common, exits
from covey.cli.runs import age
from covey.cli.terminal_text import json_text, one_line, plain
from covey.client.client import Client
from covey.protocol.jobs import JobView
from covey.protocol.requests import WorkspaceView


def main(args: argparse.Namespace) -> int:
    if args.action == "list" and args.job:
        raise exits.UsageError("list takes no job; did you mean `covey jobs output`?")
    if args.action != "list" and not args.job:
        raise exits.UsageError(f"{args.action} needs the id of a job; see `covey jobs`")
    return common.run(_jobs(args))


async def _jobs(args: argparse.Namespace) -> int:
    async with common.connected(args, autostart=False) as client:
        if args.action == "list":
            return await _list(client, args)
        workspace = await common.join(client, args.cwd)
        for job_id in args.job:
            if args.action == "kill":
                _print_one(await client.kill_job(workspace.id, job_id), args)
            else:
                job = await client.job(workspace.id, job_id)
                print(json_text(job) if args.json else plain((job.output or "").rstrip("\n")))
    return exits.OK


async def _list(client: Client, args: argparse.Namespace) -> int:
    found = [(workspace, await client.jobs(workspace.id)) for workspace in await client.workspaces()]
    if args.json:
        rows = [{"workspace": workspace.path, "job": job} for workspace, jobs in found for job in jobs]
        print(json_text(rows))
        return exits.OK
    if not any(jobs for _, jobs in found):
        print("Nothing runs in the background.", file=sys.stderr)
    for workspace, jobs in found:
        if jobs:
            _print_workspace(workspace, jobs)
    return exits.OK


def _print_workspace(workspace: WorkspaceView, jobs: tuple[JobView, ...]) -> None:
    print(plain(workspace.path))
    for job in jobs:
        print(f"  {_line(job)}")


def _print_one(job: JobView, args: argparse.Namespace) -> None:
    print(json_text(job) if args.json else _line(job))


def _line(job: JobView) -> str:
    return f"{job.id:8} {_state(job):18} {one_line(job.command)}"


def _state(job: JobView) -> str:
    if job.is_running:
        return f"running {age(time.time() - job.started_at)}"
    if job.exit_code is None:
        return "ended (killed)" if job.was_killed else "ended"
    return f"ended (exit {job.exit_code})"
