"""Skills of MCP servers, by the extension `io.modelcontextprotocol/skills`: which there are, and what of them counts.

An entry names every file of a skill with its digest. Entries are approved and pinned as tools are. A file is fetched
when it is asked for, and counts only if it is byte for byte the one that was approved. Nothing here reads anything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from covey.context.clean_text import visible_line
from covey.context.front_matter import Value, read_front_matter
from covey.context.texts import DESCRIPTION_LENGTH
from covey.engine.extensions.mcp_definitions import WrongTool, cleaned, cleaned_tree
from covey.protocol.extensions import OfferedTool

ENTRY = "SKILL.md"
FILES_LIMIT = 512
BYTES_LIMIT = 16 * 1024 * 1024
"""Of one skill: what every host has to take, by the extension."""
MATTER_LIMIT = 16 * 1024
"""Bytes of a head: somebody is asked to read it."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s?#]{1,500}")
_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9]){0,63}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class WrongSkill(Exception):
    """A skill that cannot be used, or a file that is not the approved one. The text says why."""


class SkillFile(msgspec.Struct, frozen=True):
    """One file of a skill, as its server describes it."""

    uri: str
    digest: str
    size: int


class PinnedSkill(msgspec.Struct, frozen=True):
    """A skill as it was approved: its head, and every file with its digest."""

    uri: str
    matter: dict[str, Any]
    files: tuple[SkillFile, ...]

    @property
    def name(self) -> str:
        return str(self.matter["name"])

    @property
    def description(self) -> str:
        return visible_line(str(self.matter["description"]), DESCRIPTION_LENGTH)

    @property
    def root(self) -> str:
        """Begins the URI of each of its files."""
        return self.uri.removesuffix(ENTRY)

    @property
    def further(self) -> tuple[str, ...]:
        """Its other files, relative to its folder."""
        return tuple(file.uri.removeprefix(self.root) for file in self.files if file.uri != self.uri)

    def shown(self) -> OfferedTool:
        """For whoever decides: no tool has a URI for its name."""
        files = {file.uri.removeprefix(self.root): f"{file.digest}, {file.size} bytes" for file in self.files}
        return OfferedTool(
            name=self.uri,
            description=f"A skill: {self.description}",
            schema={"head": cleaned_tree(self.matter), "files": files},
        )

    def file(self, path: str) -> SkillFile:
        """One of its files by its path; '': its own. Raises WrongSkill: what is not listed is not of the skill."""
        wanted = self.root + (path or ENTRY)
        for file in self.files:
            if file.uri == wanted:
                return file
        raise WrongSkill(f"the skill {self.name} has no file {path!r}. It has: {', '.join(self.further) or 'none'}")


# ── which there are ──


def usable_skills(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, PinnedSkill], list[str]]:
    """The skills of a list by URI, and what was left out of it, and why."""
    found: dict[str, PinnedSkill] = {}
    left_out: list[str] = []
    for item in items:
        try:
            skill = _skill(item)
            if skill.uri in found:
                raise WrongSkill("it is there twice")
            found[skill.uri] = skill
        except WrongSkill as wrong:
            left_out.append(f"{visible_line(str(item.get('uri', '?')), 200)}: {wrong}")
    return found, left_out


def _skill(item: Mapping[str, Any]) -> PinnedSkill:
    uri, matter = item.get("uri"), item.get("frontmatter")
    if not isinstance(uri, str) or not _is_plain(uri) or not uri.endswith(f"/{ENTRY}"):
        raise WrongSkill(f"its URI is none that ends with /{ENTRY}")
    if not isinstance(matter, dict) or not isinstance(said := matter.get("description"), str):
        raise WrongSkill("it has no description")
    if not cleaned(said):
        raise WrongSkill("its description says nothing")
    name = matter.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or uri.split("/")[-2] != name:
        raise WrongSkill("its name is not that of its folder: small letters, digits and dashes, 64 at most")
    if len(msgspec.json.encode(matter)) > MATTER_LIMIT:
        raise WrongSkill(f"its head is larger than {MATTER_LIMIT} bytes")
    try:
        cleaned_tree(matter)
    except WrongTool:
        raise WrongSkill("its head is nested too deeply") from None
    return PinnedSkill(uri=uri, matter=matter, files=_files(uri, item.get("resources")))


def _files(uri: str, resources: Any) -> tuple[SkillFile, ...]:
    if resources == "dynamic":
        raise WrongSkill("it is made anew each time it is read, so that nobody can approve it as it is")
    try:
        files = msgspec.convert(resources, tuple[SkillFile, ...])
    except msgspec.ValidationError:
        raise WrongSkill("its list of files is none") from None
    root = uri.removesuffix(ENTRY)
    uris = {file.uri for file in files}
    if uri not in uris or len(uris) < len(files):
        raise WrongSkill("its list of files lacks one, or has one twice")
    for file in files:
        inner = file.uri.removeprefix(root)
        if not _is_plain(file.uri) or inner == file.uri or not {"", ".", ".."}.isdisjoint(inner.split("/")):
            raise WrongSkill("its list of files leads out of its folder")
        if not _DIGEST.fullmatch(file.digest) or file.size < 0:
            raise WrongSkill("its list of files has a digest or a size that is none")
    if len(files) > FILES_LIMIT or sum(file.size for file in files) > BYTES_LIMIT:
        raise WrongSkill(f"it has more than {FILES_LIMIT} files or {BYTES_LIMIT // 1024 // 1024} MiB")
    return files


def _is_plain(uri: str) -> bool:
    return bool(_URI.fullmatch(uri)) and cleaned(uri) == uri


def labels(skills: Sequence[PinnedSkill]) -> dict[str, PinnedSkill]:
    """What each skill of one server is asked for by: its name, or its URI where two have one name."""
    names = [skill.name for skill in skills]
    return {skill.name if names.count(skill.name) == 1 else skill.uri: skill for skill in skills}


# ── that a file is the one ──


def verified(skill: PinnedSkill, file: SkillFile, result: Mapping[str, Any]) -> bytes:
    """What a server answered when it was asked for a file of an approved skill. Raises WrongSkill."""
    data = _content(result)
    if len(data) != file.size:
        raise WrongSkill(f"{file.uri} has {len(data)} bytes, and {file.size} were approved")
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != file.digest:
        raise WrongSkill(f"{file.uri} is not what was approved: its digest is another")
    if file.uri == skill.uri:
        head = read_front_matter(data.decode("utf-8", "replace")).fields
        different = sorted(key for key in {*head, *skill.matter} if not _is_same(head, skill.matter, key))
        if different:
            raise WrongSkill(f"the head of {file.uri} is not what was approved: {visible_line(str(different), 200)}")
    return data


def _content(result: Mapping[str, Any]) -> bytes:
    contents = result.get("contents")
    [first] = contents if isinstance(contents, list) and len(contents) == 1 else [None]
    if isinstance(first, dict) and isinstance(text := first.get("text"), str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(first["blob"], validate=True) if first else b""
    except (TypeError, KeyError, ValueError, binascii.Error):
        raise WrongSkill("the answer has no content that can be read") from None


def _is_same(head: Mapping[str, Value], matter: Mapping[str, Any], key: str) -> bool:
    return key in head and key in matter and _means(head[key], matter[key])


def _means(read: Value, said: Any) -> bool:
    """Whether what stands in a file is what its entry says. What our reader cannot tell counts as another."""
    if isinstance(said, list):
        return isinstance(read, tuple) and len(read) == len(said) and all(map(_means, read, said))
    if isinstance(said, dict):
        if not isinstance(read, Mapping) or read.keys() != said.keys():
            return False
        return all(_means(read[key], said[key]) for key in said)
    return isinstance(read, str) and _says(read.strip(), said)


def _says(read: str, said: Any) -> bool:
    if said is None:
        return read in ("", "~", "null")
    if isinstance(said, bool):
        return read.lower() == str(said).lower()
    if isinstance(said, int | float):
        return _number(read) == said
    return isinstance(said, str) and read.split() == said.split()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
