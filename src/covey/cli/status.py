"""`covey status`: which server runs, and what it is doing. Never starts one."""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from covey.cli import common, exits
from covey.cli.listing import sentences
from covey.cli.screen import plain
from covey.cli.terminal_text import json_text
from covey.client.client import Client
from covey.client.connect import find_owner, resolve_address
from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable, SocketGone
from covey.lines.plain_text import visible
from covey.lines.words import counted
from covey.protocol.errors import NotFound
from covey.protocol.extensions import ExtensionView
from covey.protocol.paths import Address, default_data_dir
from covey.protocol.requests import Health, WorkspaceView
from covey.protocol.runs import Run, RunState

HEAVY_MB = 2048
"""More memory than an extension should have: it is marked."""


class WorkspaceStatus(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    path: str
    model: str
    busy: int
    """Sessions in which a run is active."""
    queued: int
    """Prompts that wait for their turn."""
    jobs: int = 0
    """Commands that were left running."""
    extensions: tuple[ExtensionView, ...] = ()


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes."""

    address: str
    version: str
    build_id: str
    pid: int | None
    store: str = ""
    """That it refuses to write, and where; '': all is well."""
    workspaces: list[WorkspaceStatus]


def main(args: argparse.Namespace) -> int:
    return common.run(_status(args))


async def _status(args: argparse.Namespace) -> int:
    try:
        return await _report(args)
    except (BadAnswer, ConnectionLost, SocketGone):
        raise
    except ServerUnreachable:
        address = resolve_address(args.host, common.data_dir(args))
        if not address.is_unix:
            raise  # that one is not started automatically
        common.complain(f"No server is running at {address}. Whatever needs one starts it, such as `covey run`.")
        return exits.UNREACHABLE


async def _report(args: argparse.Namespace) -> int:
    async with common.connected(args, autostart=False) as client:
        version = await client.version()
        found, health = await client.workspaces(), await client.health()
        status = Status(
            address=str(client.address),
            version=version.version,
            build_id=version.build_id,
            pid=server_pid(client.address, common.data_dir(args)),
            store=_store(health, found),
            workspaces=await _workspaces(client, found),
        )
    print(json_text(status) if args.json else sentences(_text(status)))
    return exits.OK


def _store(health: Health, found: Sequence[WorkspaceView]) -> str:
    where = f" in {visible(found[0].data_dir)}" if found else ""
    return f"the store{where} {health.store}" if health.store else ""


async def _workspaces(client: Client, found: Sequence[WorkspaceView]) -> list[WorkspaceStatus]:
    """By what is open: neither sessions nor runs that have ended are looked at."""
    active, queued = await asyncio.gather(_runs(client, found, "active"), _runs(client, found, "queued"))
    jobs = await asyncio.gather(*(client.jobs(workspace.id) for workspace in found))
    extensions = await asyncio.gather(*(client.extensions(workspace.id) for workspace in found))
    return [
        WorkspaceStatus(
            id=workspace.id,
            path=workspace.path,
            model=_model(workspace),
            busy=len({run.session_id for run in active[workspace.id]}),
            queued=len(queued[workspace.id]),
            jobs=sum(job.is_running for job in of_workspace),
            extensions=its_extensions,
        )
        for workspace, of_workspace, its_extensions in zip(found, jobs, extensions, strict=True)
    ]


async def _runs(client: Client, found: Sequence[WorkspaceView], state: RunState) -> dict[str, list[Run]]:
    """By workspace: in one request, or in one for each workspace of an older server."""
    runs: dict[str, list[Run]] = {workspace.id: [] for workspace in found}
    try:
        for run in await client.all_runs(state=state):
            runs.setdefault(run.workspace_id, []).append(run)
    except NotFound as error:
        if error.code != "not_found":
            raise
        of_each = await asyncio.gather(*(client.runs(workspace.id, state=state) for workspace in found))
        runs = {workspace.id: list(of_one) for workspace, of_one in zip(found, of_each, strict=True)}
    return runs


def _model(workspace: WorkspaceView) -> str:
    large = workspace.config.models.get("large")
    return f"{large.provider}/{large.model}" if large else ""


def _text(status: Status) -> str:
    pid = f", pid {status.pid}" if status.pid else ""
    lines = [f"Covey {status.version} (build {status.build_id}) at {status.address}{pid}"]
    if status.store:
        lines.append(f"  {status.store}: make room on its disk; runs go on by themselves then (see `covey logs`)")
    for workspace in status.workspaces:
        counts = f"{workspace.busy} busy, {workspace.queued} queued"
        if workspace.jobs:
            counts += f", {workspace.jobs} in the background (covey jobs)"
        lines.append(f"  {visible(workspace.path)}  {workspace.model or 'no model'}  {counts}")
        lines += [f"    {extension_line(extension)}" for extension in workspace.extensions]
    if not status.workspaces:
        lines.append("  no open workspace")
    return plain("\n".join(lines))


def extension_line(extension: ExtensionView) -> str:
    """One extension: its state, what its processes use, and what is wrong with it."""
    uses = ""
    if extension.memory_mb is not None and extension.cpu_s is not None:
        heavy = " (!)" if extension.memory_mb > HEAVY_MB else ""
        uses = f", {extension.memory_mb:.0f} MB{heavy}, {extension.cpu_s:.1f} s CPU"
    tools = f", {counted(len(extension.tools), 'tool')}" if extension.tools else ""
    why = f": {extension.why}" if extension.why else ""
    return visible(f"{extension.kind} {extension.name}  {extension.state.replace('_', ' ')}{tools}{uses}{why}")


def server_pid(address: Address, data_dir: Path | None = None) -> int | None:
    """Who listens there: as the kernel knows it, else as the owner of the data directory says; None: not known."""
    owner = find_owner(data_dir or default_data_dir())
    return _listener(address) or (owner.pid if owner and owner.address == address else None)


def _listener(address: Address) -> int | None:
    """Who listens on a socket; None on TCP and where the kernel does not say."""
    if not address.is_unix or sys.platform != "linux":
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(address.path)
            credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    pid: int = struct.unpack("3i", credentials)[0]
    return pid
