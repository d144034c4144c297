"""Skills, commands and agents: text files that people keep for agents, as one value. Nothing in them is executed.

A skill teaches how something is done: the model is told of it, and asks for it when it needs it. A command is a prompt
that a person asks for by name. An agent is a way to work for another one. The user's own come first: a project must not
replace what its user knows (S2). Everything here blocks; call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from covey.context.clean_text import visible_line, without_hidden
from covey.context.front_matter import FrontMatter, read_front_matter
from covey.context.text_places import FoundText, TextKind, find_texts
from covey.machine.regular import read_regular

MAX_FILE_BYTES = 128 * 1024
"""The largest real one has 74 kB. A run keeps all of them as they were when it began."""
MAX_TOTAL_BYTES = 8 * 1024 * 1024
DESCRIPTION_LENGTH = 1024
HINT_LENGTH = 200
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}){0,3}")
"""What a person can type after a slash, and a model in a call."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A skill, a command or an agent."""

    kind: TextKind
    name: str
    description: str
    """On one line, cleaned: a stranger may have written it."""
    path: Path
    real: Path
    is_own: bool
    matter: FrontMatter
    digest: str
    """Of the whole file."""
    stamp: tuple[int, ...] = ()
    """By which a change of the file is noticed without reading it."""

    @property
    def body(self) -> str:
        return self.matter.body

    @property
    def source(self) -> str:
        """All that it says, for whoever decides about it: its head as it was read, and its body."""
        fields = (f"{name}: {self.matter.text(name) or value}" for name, value in self.matter.fields.items())
        return "\n".join(("---", *fields, "---", self.body))

    @property
    def folder(self) -> Path:
        """Of a skill: where its further files are."""
        return self.real.parent

    @property
    def argument_hint(self) -> str:
        return visible_line(self.matter.text("argument-hint"), HINT_LENGTH)

    @property
    def is_for_models(self) -> bool:
        """A model is told of it: it has a description, and does not refuse."""
        return bool(self.description) and not self.matter.is_set("disable-model-invocation")

    @property
    def is_for_people(self) -> bool:
        """A person can ask for it by name."""
        return self.kind == "command" or (self.kind == "skill" and not self.matter.is_unset("user-invocable"))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that was meant to be a text and is none, or not now."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one workspace, at one moment."""

    files: tuple[TextFile, ...] = ()
    """All that can be used: the user's own, and of a trusted directory the project's."""
    withheld: tuple[TextFile, ...] = ()
    """Those of a directory that nobody has trusted: no model is told of them (S4)."""
    left_out: tuple[LeftOut, ...] = ()

    def find(self, kind: TextKind, name: str) -> TextFile | None:
        return next((file for file in self.files if file.kind == kind and file.name == name), None)

    def all(self, kind: TextKind) -> list[TextFile]:
        """By name: whatever shows them is the same as long as they are."""
        return sorted((file for file in self.files if file.kind == kind), key=lambda file: file.name)

    def typed(self, name: str) -> TextFile | None:
        """What a person means by `/name`: a command before a skill."""
        fitting = [file for file in self.files if file.name == name and file.is_for_people]
        return next((file for file in fitting if file.kind == "command"), next(iter(fitting), None))


NO_TEXTS = Texts()


def read_texts(root: Path, environ: Mapping[str, str], *, trusted: bool, previous: Texts | None = None) -> Texts:
    """The texts as they are now. `previous`: as they were; a file that is still the same is not read again."""
    known = {file.path: file for file in (*previous.files, *previous.withheld)} if previous else {}
    gathered = _Gathered(trusted)
    for found in find_texts(root, environ):
        before = known.get(found.path)
        is_same = before is not None and before.stamp == _stamp(found.real)
        gathered.add(before if before and is_same else _read(found))
    return gathered.texts()


@dataclass(slots=True)
class _Gathered:
    """What has been found so far; of two with one name the first one stays."""

    trusted: bool
    files: dict[tuple[TextKind, str], TextFile] = field(default_factory=dict)
    withheld: dict[tuple[TextKind, str], TextFile] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    size: int = 0

    def add(self, read: TextFile | LeftOut) -> None:
        if isinstance(read, LeftOut):
            self.left_out.append(read)
            return
        self.size += len(read.body)
        key = (read.kind, read.name)
        kept = self.files if read.is_own or self.trusted else self.withheld
        if self.size > MAX_TOTAL_BYTES:
            self.left_out.append(LeftOut(read.path, f"there is more than {MAX_TOTAL_BYTES} bytes of such files"))
        elif other := self.files.get(key) or kept.get(key):
            whose = "your own" if other.is_own and not read.is_own else "another"
            self.left_out.append(LeftOut(read.path, f"{whose} {read.kind} has the same name: {other.path}"))
        else:
            kept[key] = read

    def texts(self) -> Texts:
        return Texts(tuple(self.files.values()), tuple(self.withheld.values()), tuple(self.left_out))


def _stamp(path: Path | None) -> tuple[int, ...]:
    try:
        status = os.stat(path) if path else None
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) if status else ()


def _read(found: FoundText) -> TextFile | LeftOut:
    if found.real is None:
        return LeftOut(found.path, "a link in it leads out of its folder, and a project may not lead elsewhere")
    stamp = _stamp(found.real)  # before it is read: a change meanwhile is noticed the next time
    content = read_regular(found.real, MAX_FILE_BYTES)
    if content is None:
        return LeftOut(found.path, "it cannot be read")
    if content.size > MAX_FILE_BYTES:
        return LeftOut(found.path, f"it is larger than {MAX_FILE_BYTES} bytes")
    if b"\0" in content.data:
        return LeftOut(found.path, "it is no text")
    matter = read_front_matter(without_hidden(content.data.decode("utf-8", "replace")))
    name = matter.text("name") if found.kind != "command" else found.name
    name = name if NAME.fullmatch(name) else found.name
    description = visible_line(matter.text("description"), DESCRIPTION_LENGTH)
    if not NAME.fullmatch(name):
        return LeftOut(found.path, f"its name {name[:64]!r} has other characters than letters, digits, dots and dashes")
    if not description and found.kind != "command":
        return LeftOut(found.path, "it has no description: add a line `description: …` between two lines of `---`")
    if not matter.body and found.kind != "agent":
        return LeftOut(found.path, "there is nothing in it but its head")
    digest = hashlib.sha256(content.data).hexdigest()
    return TextFile(found.kind, name, description, found.path, found.real, found.is_own, matter, digest, stamp)
