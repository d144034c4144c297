"""Pins: the definitions of a server's tools as they were approved, kept in a file for each entry.

They are the catalogue as well: with them a run has its tools before the server was ever started.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from covey.engine.extensions.mcp_definitions import digest_of_tool
from covey.engine.extensions.mcp_skills import PinnedSkill
from covey.machine.replace import replace_file
from covey.protocol.extensions import OfferedTool
from covey.tools.mcp.words import Era

log = logging.getLogger(__name__)


class PinnedPrompt(msgspec.Struct, frozen=True):
    """A prompt of a server, which people use as a command."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool], ...] = ()
    """Names, and whether each is needed."""


class Pins(msgspec.Struct, frozen=True):
    """What was approved of one server, and what it was when it was last seen."""

    era: Era | None = None
    instructions: str = ""
    tools: tuple[OfferedTool, ...] = ()
    skills: tuple[PinnedSkill, ...] = ()
    prompts: tuple[PinnedPrompt, ...] = ()
    resources: int = 0

    @property
    def shown(self) -> tuple[OfferedTool, ...]:
        """All that somebody has to approve, as it is shown: skills beside the tools."""
        return (*self.tools, *(skill.shown() for skill in self.skills))

    @property
    def digests(self) -> dict[str, str]:
        return {each.name: digest_of_tool(each) for each in self.shown}


class PinFile:
    """Where the pins of one entry are: by the digest of the entry, so that another command has others. Blocks."""

    def __init__(self, data_dir: Path, digest: str) -> None:
        self._path = data_dir / "mcp" / f"{digest}.json"

    def read(self) -> Pins:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Pins)
        except FileNotFoundError:
            return Pins()
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be read, so that its tools have to be approved again: %s", self._path, error)
            return Pins()

    def write(self, pins: Pins) -> None:
        """Raises OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._path, msgspec.json.encode(pins), mode=0o600, keep_mode=False)
