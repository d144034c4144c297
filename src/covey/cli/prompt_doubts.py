"""What of a prompt will not do what its author seems to mean. It is said, and the prompt is sent all the same."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from covey.cli.prompt_input import MENTION
from covey.client.client import Client
from covey.protocol.messages import Attachment
from covey.protocol.requests import ConfigView, PostPrompt, WorkspaceView

_COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_][\w.:-]*)(?:\s.*)?", re.DOTALL)
"""As the server finds one: a path goes on with another slash."""
_FILE = re.compile(r"(?:[\w+-][\w.+-]*/)*[\w.+-]*\w\.[A-Za-z][A-Za-z0-9]{0,4}")
"""A name with an ending: `@here` and `@types/node` are no files that somebody has mistyped."""


async def doubts(client: Client, workspace: WorkspaceView, request: PostPrompt, typed: str) -> list[str]:
    """One sentence for each; `typed` is what came from the command line, and not out of a pipe."""
    root = Path(workspace.path)
    lost = missing(typed, root / request.cwd, root) if client.address.is_unix else []
    found = [_no_such_file(name) for name in lost]
    if name := asked_for(typed):
        known = [command.name for command in await client.commands(workspace.id)]
        found += [unknown_command(name, known)] if name not in known else []
    pictures = [each for each in request.attachments if each.mime_type.startswith("image/")]
    pictures += mentioned_pictures(typed, root / request.cwd, root) if client.address.is_unix else []
    if pictures:
        chosen = request.model or (await client.session(workspace.id, request.session_id)).model or ""
        found += unseen_pictures(workspace.config, chosen, pictures)
    return found


def asked_for(typed: str) -> str:
    """The name of the command that a prompt seems to ask for, or ''."""
    match = _COMMAND.fullmatch(typed)
    return match["name"] if match and not os.path.lexists(f"/{match['name']}") else ""


def unknown_command(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # only needed once something is wrong

    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean /{near[0]}?" if near else ""
    return f"there is no command /{name}, so the model reads it as it is{hint}"


def missing(typed: str, *directories: Path) -> list[str]:
    """The files that are mentioned, and in none of the directories."""
    names = _mentioned(typed)
    return [name for name in names if not any(os.path.lexists(directory / name) for directory in directories)]


def mentioned_pictures(typed: str, *directories: Path) -> list[Attachment]:
    """The pictures among the files that are mentioned, by their names and without their content."""
    names = [name for name in _mentioned(typed) if name.lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp"))]
    there = [name for name in names if any(os.path.isfile(directory / name) for directory in directories)]
    return [Attachment(file_path=name, file_name=name, mime_type="image/*", content=b"") for name in there]


def _mentioned(typed: str) -> list[str]:
    names = [re.sub(r":\d+(?:-\d+)?$", "", match["path"].rstrip(".,;:!?)")) for match in MENTION.finditer(typed)]
    return [name for name in dict.fromkeys(names) if _FILE.fullmatch(name)]


def _no_such_file(name: str) -> str:
    return f"there is no file {name} here, so the model reads the words @{name} and nothing more"


def unseen_pictures(config: ConfigView, chosen: str, pictures: Collection[Attachment]) -> list[str]:
    """If the model is one that is listed, and is not known to see them."""
    large = config.models.get("large")
    reference = chosen or (f"{large.provider}/{large.model}" if large else "")
    provider_id, _, model_id = reference.partition("/")
    provider = config.providers.get(provider_id)
    model = next((each for each in provider.models if each.id == model_id), None) if provider else None
    if model is None or model.supports_attachments:
        return []
    names = ", ".join(dict.fromkeys(each.file_name or each.file_path for each in pictures))
    return [
        f"{reference} is not known to see pictures: it is told the name of {names}, and sees nothing of it.\n"
        f"If it can, say sees_images = true where [providers.{provider_id}] lists it, in your config.toml."
    ]
