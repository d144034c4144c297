"""What an editor can choose for a session: its mode, its model, and the commands that a prompt may begin with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from covey.acp.content import Json
from covey.lines.plain_text import one_line
from covey.protocol.custom import CustomCommand
from covey.protocol.messages import Session, SessionMode
from covey.protocol.requests import WorkspaceView

MODES: dict[SessionMode, tuple[str, str]] = {
    "ask": ("Ask", "Asks before it changes something or runs a command, as your rules say."),
    "plan": ("Plan", "Looks, and says what it would do; changes nothing."),
    "accept_edits": ("Accept edits", "Edits files of the project without asking; asks about commands."),
    "sandboxed": ("Sandboxed", "Edits, and runs commands in the sandbox without the network; asks about the rest."),
}
assert set(MODES) == set(get_args(SessionMode))

SUMMARIZE: Json = {
    "name": "summarize",
    "description": "Replace the conversation by a summary of it",
    "input": {"hint": "what the summary must keep"},
}
"""What the bridge does itself; the server takes up all others by their name."""


def commands_update(custom: Sequence[CustomCommand]) -> Json:
    """What a prompt may begin with: ours, and what the user and the project have."""
    usable = [command for command in custom if not command.needs_trust and command.name != SUMMARIZE["name"]]
    return {"sessionUpdate": "available_commands_update", "availableCommands": [SUMMARIZE, *map(_command, usable)]}


def _command(command: CustomCommand) -> Json:
    hint = {"input": {"hint": one_line(command.argument_hint)}} if command.argument_hint else {}
    return {"name": command.name, "description": one_line(command.description) or command.kind, **hint}


def mode_of(session: Session | None) -> SessionMode:
    return (session.mode if session else None) or "ask"


def modes(session: Session | None) -> Json:
    available = [{"id": id, "name": name, "description": about} for id, (name, about) in MODES.items()]
    return {"currentModeId": mode_of(session), "availableModes": available}


def model_of(session: Session | None, workspace: WorkspaceView | None) -> str:
    """`provider/model` that the session uses; '' if none is configured."""
    if session and session.model:
        return session.model
    chosen = workspace.config.models.get("large") if workspace else None
    return f"{chosen.provider}/{chosen.model}" if chosen else ""


def config_options(session: Session | None, workspace: WorkspaceView | None) -> list[Json]:
    """Editors that know these show no modes besides, so the mode is among them."""
    options = [
        {
            "id": "mode",
            "name": "Mode",
            "description": "What is asked about in this session",
            "category": "mode",
            "type": "select",
            "currentValue": mode_of(session),
            "options": [{"value": id, "name": name, "description": about} for id, (name, about) in MODES.items()],
        }
    ]
    if models := _models(session, workspace):
        options.append(
            {
                "id": "model",
                "name": "Model",
                "category": "model",
                "type": "select",
                "currentValue": model_of(session, workspace),
                "options": models,
            }
        )
    return options


def _models(session: Session | None, workspace: WorkspaceView | None) -> list[Json]:
    current = model_of(session, workspace)
    providers = workspace.config.providers.values() if workspace else ()
    found = {
        f"{provider.id}/{model.id}": f"{model.name or model.id} ({provider.name or provider.id})"
        for provider in providers
        for model in provider.models
    }
    if current and current not in found:
        found = {current: current, **found}
    return [{"value": value, "name": name} for value, name in found.items()]
