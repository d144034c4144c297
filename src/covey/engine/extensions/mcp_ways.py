"""How a server is reached: its process is started, or its URL connected to."""

from __future__ import annotations

import os
from pathlib import Path

from covey.config.schema import McpSettings
from covey.credentials.mcp_tokens import StoredBearer
from covey.engine.extensions.kind import ExtensionParts
from covey.machine.programs import find_program
from covey.sandbox.confinement import Confinement
from covey.tools.mcp.connection import McpTransport
from covey.tools.mcp.http import HttpMcpTransport
from covey.tools.mcp.stdio import StdioTransport
from covey.tools.mcp.words import McpError


def open_way(parts: ExtensionParts, name: str, settings: McpSettings, confinement: Confinement) -> McpTransport:
    """Raises McpError, OSError or ValueError. `settings` have their variables filled in."""
    if settings.url:
        names = {name.lower() for name in settings.headers}
        stored = None if "authorization" in names else StoredBearer(parts.shared.data_dir, settings.url)
        return HttpMcpTransport(settings.url, settings.headers, stored)
    env = parts.environment(settings.env)
    cwd = parts.root / Path(settings.cwd).expanduser()
    child = parts.processes.open(
        [_program(settings.command, cwd, env.get("PATH", os.defpath), parts.root), *settings.args],
        cwd=cwd,
        env=env,
        tag=parts.tag("mcp", name),
        policy=confinement.command(),
        sandbox=confinement.mode,
    )
    return StdioTransport(child)


def _program(command: str, cwd: Path, search_path: str, root: Path) -> str:
    """A name is looked for on the PATH, and never in the project: what lies there has to be named by its path."""
    command = os.path.expanduser(command)
    if "/" in command:
        path = cwd / command
        if not path.exists():
            raise McpError(f"there is no program {str(path)!r}: correct its `command`, or install it")
        return str(path)
    if found := find_program(command, search_path, root):
        return found
    raise McpError(f"there is no program {command!r} on the PATH: correct its `command`, or install it")
