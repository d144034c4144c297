"""Skills in use: what a session has been given of them, and what they wish for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from covey.context.catalogue import named
from covey.context.inside import resolved_inside
from covey.context.texts import TextFile
from covey.engine.agent import Agent
from covey.machine.regular import read_regular
from covey.protocol.claude_names import wished_for
from covey.protocol.messages import Message
from covey.tools.base import ToolFailed, ToolOutput
from covey.tools.threads import in_thread

FILE_BYTES = 256 * 1024
"""Of a further file of a skill; what is longer can be viewed."""
LISTED_FILES = 50
WALKED = 200
"""Folders of a skill that are looked at."""
SEEN_SESSIONS = 1_000
"""Of which it is remembered what they have; older ones are read from what is stored."""
AGAIN = "The skill {name} is in this conversation already, and has not changed since: go on by it."


class _Fact(msgspec.Struct, frozen=True):
    """What the result of a call says about the skill that it gave."""

    skill: str = ""
    digest: str = ""


class Skills:
    """The skills of a workspace's sessions."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._seen: dict[str, dict[str, str]] = {}
        """For each session: what its model can still read, by name, with the digest of its text."""

    def recall(self, session_id: str, visible: Iterable[Message]) -> None:
        """Know what a model can read: all that it sees from the last summary on (S5)."""
        self._seen.pop(session_id, None)
        self._seen[session_id] = dict(_given(visible))
        if len(self._seen) > SEEN_SESSIONS:
            del self._seen[next(iter(self._seen))]

    def forget(self, session_id: str) -> None:
        """The conversation begins anew with a summary, in which no skill stands."""
        self._seen.pop(session_id, None)

    async def give(self, session_id: str, name: str, file: str = "") -> ToolOutput:
        """A skill, or one of its further files. Raises ToolFailed."""
        skills = [skill for skill in self._agent.texts_of(session_id).all("skill") if skill.is_for_models]
        skill = next((skill for skill in skills if skill.name == name), None)
        if skill is None:
            raise ToolFailed(f"There is no skill {name!r}. There are: {named(skills)}.")
        if file:
            return ToolOutput(await in_thread(lambda: _further(skill, file)))
        seen = self._seen.setdefault(session_id, {})
        if seen.get(name) == skill.digest:
            return ToolOutput(AGAIN.format(name=name))
        listing = await in_thread(lambda: _listing(skill))
        seen[name] = skill.digest
        text = f"The skill {name} (its folder: {skill.folder}){listing}\n\n{skill.body}"
        return ToolOutput(text, metadata={"skill": name, "digest": skill.digest})

    def wish(self, session_id: str, tool: str) -> str:
        """Which skill in use wishes for a tool: it grants nothing, but whoever is asked may know (S7). '': none."""
        texts = self._agent.texts_of(session_id)
        for name in self._seen.get(session_id, {}):
            skill = texts.find("skill", name)
            wishes = skill.matter.words("allowed-tools") if skill else ()
            if fitting := [wish for wish in wishes if wished_for(wish) == tool]:
                return f"The skill {name} wishes for {', '.join(fitting)}."
        return ""


def _given(visible: Iterable[Message]) -> Iterator[tuple[str, str]]:
    for message in visible:
        for result in message.tool_results:
            if result.name == "skill" and '"digest"' in result.metadata and not result.is_error:
                fact = _fact(result.metadata)
                yield fact.skill, fact.digest


def _fact(metadata: str) -> _Fact:
    try:
        return msgspec.json.decode(metadata, type=_Fact)
    except msgspec.MsgspecError:
        return _Fact()


def _listing(skill: TextFile) -> str:
    """The further files of a skill, as far as they can be told in a few lines."""
    found: list[str] = []
    for directory, folders, files in islice(os.walk(skill.folder), WALKED):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = os.path.relpath(directory, skill.folder)
        found += [os.path.normpath(os.path.join(inner, name)) for name in sorted(files) if name != "SKILL.md"]
        if len(found) > LISTED_FILES:
            break
    shown = [name.encode("utf-8", "replace").decode() for name in found[:LISTED_FILES]]
    more = ", and more" if len(found) > LISTED_FILES else ""
    return f"\nIts further files: {', '.join(shown)}{more}" if shown else ""


def _further(skill: TextFile, file: str) -> str:
    path = Path(os.path.normpath(skill.folder / file))
    if not path.is_relative_to(skill.folder):
        raise ToolFailed(f"{file!r} is not in the folder of the skill {skill.name}.")
    real = path.resolve() if skill.is_own else resolved_inside(path, skill.folder)
    if real is None:
        raise ToolFailed(f"{file!r} leads out of the folder of the skill {skill.name}.")
    content = read_regular(real, FILE_BYTES)
    if content is None:
        raise ToolFailed(f"The skill {skill.name} has no file {file!r}.")
    if b"\0" in content.data[:8192]:
        raise ToolFailed(f"{file!r} is no text ({content.size} bytes).")
    more = f"\n({content.size - FILE_BYTES} more bytes: view {path})" if content.size > FILE_BYTES else ""
    return content.data.decode("utf-8", "replace") + more
