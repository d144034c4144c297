"""What `/name arguments` stands for: the one place that knows, for every face and for the turns themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from covey.context.command_text import expand_command, parse_command
from covey.context.texts import TextFile, Texts
from covey.protocol.custom import COMMAND_TYPE, CustomCommand, ExpandedCommand
from covey.protocol.messages import Attachment

WITHHELD = (
    "/{name} is a {kind} of this project, and nobody has trusted its directory. Look at {path}; then approve it where "
    "you are asked about it, or run `covey trust` if you trust the project, and ask again"
)


class NotTrusted(Exception):
    """What was asked for is a project's that nobody has trusted; the text says what to do."""

    def __init__(self, file: TextFile) -> None:
        super().__init__(WITHHELD.format(name=file.name, kind=file.kind, path=file.path))
        self.file = file


def listed(texts: Texts) -> list[CustomCommand]:
    """All that a person can ask for by name, in the order of names; agents are asked for by theirs, too."""
    shown = [_described(file, needs_trust=False) for file in texts.files if _is_shown(texts.files, file)]
    withheld = [file for file in texts.withheld if not texts.typed(file.name) and _is_shown(texts.withheld, file)]
    shown += [_described(file, needs_trust=True) for file in withheld]
    return sorted(shown, key=lambda command: (command.name, command.kind))


def _is_shown(files: tuple[TextFile, ...], file: TextFile) -> bool:
    """A command hides a skill or an agent of its name, which would never be meant."""
    named = {other.kind for other in files if other.name == file.name and _can_be_typed(other)}
    first = next((kind for kind in ("command", "skill", "agent") if kind in named), "")
    return file.kind == first


def _can_be_typed(file: TextFile) -> bool:
    return file.kind == "agent" or file.is_for_people


def _described(file: TextFile, *, needs_trust: bool) -> CustomCommand:
    return CustomCommand(
        name=file.name,
        kind=file.kind,
        source="user" if file.is_own else "project",
        description=file.description,
        argument_hint=file.argument_hint,
        path=str(file.path).encode("utf-8", "replace").decode(),
        needs_trust=needs_trust,
    )


def expanded(texts: Texts, name: str, arguments: str) -> ExpandedCommand | None:
    """What a command says with these arguments; None: there is none of this name. Raises NotTrusted."""
    if file := texts.typed(name) or texts.find("agent", name):
        return ExpandedCommand(name=name, kind=file.kind, text=_text_of(file, arguments))
    if withheld := next((file for file in texts.withheld if file.name == name and _can_be_typed(file)), None):
        raise NotTrusted(withheld)
    return None


def _text_of(file: TextFile, arguments: str) -> str:
    if file.kind == "agent":
        return _errand(file, arguments)
    text = expand_command(file.body, arguments)
    if file.kind == "skill":
        return f"The skill {file.name} (its folder: {file.folder}):\n\n{text}"
    return text


def _errand(agent: TextFile, arguments: str) -> str:
    return f"Send the agent {agent.name} with the agent tool, and report what it found. Its task:\n\n{arguments}"


def with_approved(texts: Texts, file: TextFile) -> Texts:
    """The texts, with one of the withheld that somebody has approved as it is."""
    return replace(texts, files=(*texts.files, file))


class PromptSource(Protocol):
    """Commands that are no files: prompts of MCP servers."""

    def commands(self) -> list[CustomCommand]: ...

    async def expand(self, name: str, arguments: str) -> ExpandedCommand | None:
        """What it says; None: there is none of this name. Raises ToolFailed."""
        ...


class NoPrompts:
    def commands(self) -> list[CustomCommand]:
        return []

    async def expand(self, name: str, arguments: str) -> ExpandedCommand | None:
        return None


def attached(texts: Texts, prompt: str) -> Attachment | None:
    """What goes along with a prompt that asks for a command; None: it asks for none. Raises NotTrusted."""
    asked = parse_command(prompt)
    found = expanded(texts, *asked) if asked else None
    return attachment_of(found) if found else None


def attachment_of(found: ExpandedCommand) -> Attachment:
    """A command as it goes along with a prompt."""
    name = f"{found.kind} /{found.name}"
    return Attachment(file_path=name, file_name=name, mime_type=COMMAND_TYPE, content=found.text.encode())
