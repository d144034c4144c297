"""The bash tool: one shell command, from start to end, or left running as a job. It keeps no shell between calls."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.permissions.reach import reach_of
from covey.permissions.safe_paths import Repository
from covey.protocol.effects import Effect
from covey.sandbox.denials import recognised
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, is_inside, resolve
from covey.tools.git_guard import repository_of
from covey.tools.jobs import Job, Jobs
from covey.tools.links import WorkspaceLinks
from covey.tools.live_output import LiveOutput
from covey.tools.output import CommandOutput, Output, Spill, spill_for
from covey.tools.private_paths import private_paths
from covey.tools.processes import Completed, Processes
from covey.tools.sandbox_words import sandbox_facts, sandbox_note

OUTPUT_LIMIT = 30_000
"""Bytes, some 8,000 tokens: a test report fits, a runaway log does not fill the model's memory."""
MAX_TIMEOUT_S = 600

NOT_INTERACTIVE = {
    # Nobody sits at a terminal: what would page, colour, prompt, open an editor or watch for changes must not.
    # But this is no CI: with that variable, package managers refuse to update lock files, and warnings become errors.
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # Else a Python program that runs into the timeout takes its buffered output with it.
    "PYTHONUNBUFFERED": "1",
}


class BashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, msgspec.Meta(description="The shell command to run.")]
    description: Annotated[str, msgspec.Meta(description="What it does, in a few words.")] = ""
    timeout_s: Annotated[
        float,
        msgspec.Meta(gt=0, le=MAX_TIMEOUT_S, description="Seconds to wait; at most 600. After that it becomes a job."),
    ] = 120
    working_dir: Annotated[
        str, msgspec.Meta(description="Directory to run in, inside the workspace. Default: the workspace root.")
    ] = ""
    background: Annotated[
        bool, msgspec.Meta(description="Start it as a background job without waiting for it, and get the job id.")
    ] = False
    network: Annotated[bool, msgspec.Meta(description="It needs network access. The user is asked.")] = False
    unsandboxed: Annotated[
        bool,
        msgspec.Meta(description="It cannot work in the sandbox, even with network access. The user is asked."),
    ] = False


def bash_tool(processes: Processes, jobs: Jobs | None = None) -> Tool[BashParams]:
    """Without `jobs` nothing can be left running."""
    return built_in(
        "bash",
        Effect.RUNS_COMMANDS,
        BashParams,
        intent=_intent,
        describe=_described,
        run=lambda params, context: _run(params, context, processes, jobs),
        starts_processes=True,
        result_limit=OUTPUT_LIMIT + 2_000,  # the output, which is cut here, and some lines about it
    )


def _intent(params: BashParams, context: ToolContext) -> Intent:
    cwd = str(resolve(context, params.working_dir)) if params.working_dir else ""
    repository = repository_of(context.root) if "git" in params.command else Repository.OWN
    links = WorkspaceLinks(context.root)
    reach = reach_of(network=params.network, unsandboxed=params.unsandboxed)
    return Intent("bash", "execute", params.command, cwd=cwd, repository=repository, links=links, reach=reach)


def _described(params: BashParams, context: ToolContext) -> str:
    # The command itself, never the model's words about it: those are in the preview, beside it.
    command = " ".join(params.command.split())
    place = f" (in {params.working_dir})" if params.working_dir else ""
    return f"{command}{place}{' (left running in the background)' if params.background else ''}"


async def _run(params: BashParams, context: ToolContext, processes: Processes, jobs: Jobs | None) -> ToolOutput:
    if not params.command.strip():
        raise ToolFailed("The command is empty.")
    directory, env = _directory(params, context), {**context.env, **NOT_INTERACTIVE}
    policy = context.confinement.command()
    try:
        if params.background:
            return await _start(params, context, jobs, directory, env)
        live = LiveOutput(context.open_sink(outlives_call=jobs is not None))
        output = CommandOutput(OUTPUT_LIMIT, spill_for(context, "bash"), live)
        work = processes.run_command(
            params.command,
            cwd=directory,
            env=env,
            tag=context.call_tag,
            timeout_s=None if jobs else params.timeout_s,
            output=output,
            policy=policy,
            sandbox=context.confinement.mode,
        )
        done = await _ended_or_moved(work, params, context, jobs, output, live)
    except (OSError, ValueError) as error:
        raise ToolFailed(f"The command could not be started: {error}") from None
    if isinstance(done, Job):
        return _moved(done, output, params.timeout_s)
    completed = done
    denial = recognised(policy, completed.exit_code, completed.output, str(directory)) if policy else None
    unseen = private_paths(params.command, policy, completed.private)
    return ToolOutput(
        content=_report(completed, params.timeout_s, output.spill, sandbox_note(denial, completed.put_back, unseen)),
        # A command that ran and failed is an answer (tests that fail, a grep that finds nothing), not a failed
        # call: marked as an error, models tend to retry it or to doubt the tool instead of reading the output.
        is_error=completed.timed_out,
        metadata={
            "exit_code": completed.exit_code,
            "timed_out": completed.timed_out,
            "truncated_bytes": completed.truncated_bytes,
            **sandbox_facts(policy, denial, completed.put_back, unseen),
        },
    )


async def _ended_or_moved(
    work: Coroutine[None, None, Completed],
    params: BashParams,
    context: ToolContext,
    jobs: Jobs | None,
    output: Output,
    live: LiveOutput,
) -> Completed | Job:
    """Wait for a command as long as the call may take. What is not done then goes on as a job, if one more may run."""
    task, began = asyncio.create_task(work), asyncio.get_running_loop().time()
    moved = False
    try:
        await asyncio.wait({task}, timeout=params.timeout_s if jobs else None)
        if not task.done() and jobs:
            try:
                runs_s = asyncio.get_running_loop().time() - began
                job = jobs.adopt(context.session_id, params.command, task, output, live, runs_s)
            except ToolFailed:  # no room for one more
                return await _cut_off(task, output)
            moved = True
            return job
        return await task
    finally:
        if not moved:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            live.close()


async def _cut_off(task: asyncio.Task[Completed], output: Output) -> Completed:
    task.cancel()
    await asyncio.wait({task})
    return Completed(None, output.text(), output.dropped, timed_out=True)


def _moved(job: Job, output: Output, waited_s: float) -> ToolOutput:
    so_far = output.text().rstrip("\n") or "(no output yet)"
    note = (
        f"Not finished after {waited_s:g} s: it goes on as {job.id}. Do something else meanwhile, or wait for it with "
        "job_output and `wait_s`; stop it with job_kill if it is not needed."
    )
    return ToolOutput(f"{so_far}\n\n{note}", metadata={"job_id": job.id, "exit_code": None, "timed_out": False})


async def _start(
    params: BashParams, context: ToolContext, jobs: Jobs | None, directory: Path, env: dict[str, str]
) -> ToolOutput:
    if jobs is None:
        raise ToolFailed("There are no background jobs here. Run the command without `background`.")
    confined = context.confinement
    live = LiveOutput(context.open_sink(outlives_call=True))
    job = await jobs.start(
        context.session_id, params.command, directory, env, confined.command(), confined.mode, live=live
    )
    started = f"Started {job.id}. Read its output with job_output, stop it with job_kill when you no longer need it."
    return ToolOutput(started, metadata={"job_id": job.id})


def _directory(params: BashParams, context: ToolContext) -> Path:
    directory = resolve(context, params.working_dir)
    if not is_inside(context, directory):
        raise ToolFailed(f"working_dir {params.working_dir} is outside the workspace. Leave it out, or use cd.")
    if not directory.is_dir():
        raise ToolFailed(f"working_dir {params.working_dir} is not a directory.")
    return directory


def _report(completed: Completed, timeout_s: float, spill: Spill | None, about_sandbox: str) -> str:
    output = completed.output.rstrip("\n") or "(no output)"
    note = f"[{kept}]\n" if spill and (kept := spill.note()) else ""
    ending = _ending(completed, timeout_s)
    return f"{output}\n\n{note}{ending}" + (f"\n{about_sandbox}" if about_sandbox else "")


def _ending(completed: Completed, timeout_s: float) -> str:
    if completed.timed_out:
        return f"Not finished after {timeout_s:g} s: the command and all its processes were ended."
    return exit_text(completed.exit_code)


def exit_text(code: int | None) -> str:
    """How a command ended by itself."""
    if code is None:
        return "exit code unknown"
    if code < 0:
        return f"exit code {128 - code} (ended by {_signal_name(-code)})"
    return f"exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
