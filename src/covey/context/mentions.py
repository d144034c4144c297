"""`@path` in a prompt: the file, a part of it (`@src/a.py:10-40`) or a directory's listing goes along with the prompt.

The prompt itself stays as it was written. Only what is really there, inside of the workspace, is meant: e-mail
addresses, decorators and names of people are left alone. Everything here blocks; call it in a thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from covey.context.inside import resolved_inside
from covey.machine.regular import read_regular
from covey.protocol.messages import Attachment

MAX_MENTIONS = 20
"""More are left alone: somebody who pastes a log did not mean them."""
MAX_TEXT_BYTES = 64 * 1024
"""Of one file; the model can view the rest."""
MAX_TOTAL_TEXT_BYTES = 256 * 1024
MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""What providers take for one picture."""
MAX_TOTAL_IMAGE_BYTES = 15 * 1024 * 1024
"""So that the message still fits into a request, which a picture enters one third larger than it is."""
MAX_ENTRIES = 200
MAX_SCANNED = 10_000
"""Entries of a directory that are looked at, to sort them."""
MAX_RANGED_BYTES = 5 * 1024 * 1024
"""How far into a file lines are counted."""
MAX_PROMPT_CHARS = 200_000
"""How far into a prompt mentions are looked for."""
MAX_CANDIDATES = 500
"""Words with an @ that are looked up: each costs a few calls to the file system."""
MAX_TRAILING = 8
"""Characters after a path that may belong to the sentence."""

_MENTION = re.compile(r"""(?<![^\s(\[{<,;:'"])@(?:"(?P<quoted>[^"\n]{1,1000})"|(?P<plain>[^\s"'`<>|*?]{1,1000}))""")
"""Before it stands nothing, or a blank or a bracket: not the name of a mailbox, nor a backtick."""
_RANGE = re.compile(r"(?P<path>.+?):(?P<first>[1-9]\d{0,6})(?:-(?P<last>[1-9]\d{0,6}))?")
_TRAILING = ".,;:!?)]}'…"
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_DECORATED = re.compile(
    r"[ \t]*@[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*(?:(?:async|def|class|public|private|protected|internal|static|final"
    r"|abstract|export|default|function|func|fun|fn|interface|struct|enum|void|suspend|override|val|var|let|const)\b"
    r"|\w[\w<>\[\], ]*\([^\n]*\{)"
)
"""Lines that begin with an @ and end before the beginning of a definition."""


_SHORTFALL = re.compile(
    rb"\((This (?:picture of|is a binary file|cannot be read)[^\n]*?|\d+ of \d+ bytes are not shown)\. ?[^\n]*\)\Z"
)
"""What `_attach` says of a file that is not shown, or not all of it. Its first sentence is for people too."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in the workspace that a prompt names."""

    path: Path
    """Without links, and inside of the root."""
    name: str
    """From the root, as it will be called."""
    lines: tuple[int, int] | None = None


def expand(prompt: str, root: Path, cwd: str = "") -> list[Attachment]:
    """What the prompt mentions, in order, each once. `cwd`: where in the root its author was."""
    attachments: list[Attachment] = []
    text_left, image_left = MAX_TOTAL_TEXT_BYTES, MAX_TOTAL_IMAGE_BYTES
    for mention in islice(find(prompt, root, cwd), MAX_MENTIONS):
        attachment = _attach(mention, text_left, image_left)
        if attachment.mime_type.startswith("image/"):
            image_left -= len(attachment.content)
        else:
            text_left = max(0, text_left - len(attachment.content))
        attachments.append(attachment)
    return attachments


def shortfall(name: str, content: bytes) -> str:
    """What people should know of a file that went along: that the model sees not all of it; '' if it does."""
    found = _SHORTFALL.search(content, max(0, len(content) - 200))
    return f"@{name}: {found[1].decode()}" if found else ""


def find(prompt: str, root: Path, cwd: str = "") -> Iterator[Mention]:
    """The mentions in a prompt, each once. What is not there from where its author was is looked for from the root."""
    root = root.resolve()
    seen: set[Mention] = set()
    for match in islice(_MENTION.finditer(_without_code(prompt[:MAX_PROMPT_CHARS])), MAX_CANDIDATES):
        mention = _meant(match, root, root / cwd) or (_meant(match, root, root) if cwd else None)
        if mention and mention not in seen:
            seen.add(mention)
            yield mention


def _without_code(prompt: str) -> str:
    """The prompt without pasted code, in which an @ means something else."""
    text = _FENCE.sub("\n", prompt)
    if "@" not in text:
        return ""
    lines = text.split("\n")
    kept: list[str] = []
    for number, line in enumerate(lines):
        ahead = "\n".join(line[:200] for line in lines[number : number + 6])
        kept.append("" if line.lstrip().startswith("@") and _DECORATED.match(ahead) else line)
    return "\n".join(kept)


def _meant(match: re.Match[str], root: Path, start: Path) -> Mention | None:
    """The longest beginning of the words that is there: the end may belong to the sentence."""
    if quoted := match["quoted"]:
        return _place(quoted, root, start)
    words = match["plain"]
    for _ in range(MAX_TRAILING + 1):
        if mention := _place(words, root, start):
            return mention
        if words[-1] not in _TRAILING or len(words) == 1:
            return None
        words = words[:-1]
    return None


def _place(words: str, root: Path, start: Path) -> Mention | None:
    if words.startswith("~"):
        return None
    if (path := resolved_inside(start / words, root)) and os.path.exists(path):
        return Mention(path, _name(path, root))
    if ranged := _RANGE.fullmatch(words):
        path = resolved_inside(start / ranged["path"], root)
        first, last = int(ranged["first"]), int(ranged["last"] or ranged["first"])
        if path and path.is_file() and first <= last:
            return Mention(path, f"{_name(path, root)}:{first}-{last}", (first, last))
    return None


def _name(path: Path, root: Path) -> str:
    name = str(path.relative_to(root)) + "/" * path.is_dir()
    return name.encode("utf-8", "replace").decode()


# ── what goes along ──


def _attach(mention: Mention, text_left: int, image_left: int) -> Attachment:
    if mention.path.is_dir():
        return _text(mention, _listing(mention.path))
    read = read_regular(mention.path, MAX_RANGED_BYTES if mention.lines else MAX_IMAGE_BYTES + 1)
    if read is None:
        return _text(mention, "(This cannot be read: it is not a regular file, or you have no right to read it.)")
    content, size = read
    if kind := image_type(content):
        if len(content) > min(MAX_IMAGE_BYTES, image_left):
            return _text(mention, f"(This picture of {size} bytes is too large to go along.)")
        return _attachment(mention, kind, content)
    if b"\0" in content[:8192]:
        return _text(mention, f"(This is a binary file of {size} bytes. It is not shown.)")
    if mention.lines:
        return _text(mention, _range(content, *mention.lines, min(MAX_TEXT_BYTES, text_left)))
    return _text(mention, _cut(content, size, min(MAX_TEXT_BYTES, text_left)))


def image_type(content: bytes) -> str | None:
    """The type of a picture, by its first bytes; its name may say anything."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def _cut(content: bytes, size: int, limit: int) -> str:
    if size <= limit:
        return content.decode("utf-8", "replace")
    shown = content[:limit].rpartition(b"\n")[0] or content[:limit]
    note = f"({size - len(shown)} of {size} bytes are not shown. View the file for the rest.)"
    return "\n".join(part for part in (shown.decode("utf-8", "ignore"), note) if part)


def _range(content: bytes, first: int, last: int, limit: int) -> str:
    lines = content.split(b"\n")
    if len(lines) > 1 and not lines[-1]:
        del lines[-1]
    if first > len(lines):
        return f"(There is no line {first}: the file has {len(lines)} lines.)"
    wanted = b"\n".join(lines[first - 1 : last])
    return _cut(wanted, len(wanted), limit)


def _listing(directory: Path) -> str:
    try:
        with os.scandir(directory) as found:
            entries = sorted(entry.name + "/" * entry.is_dir() for entry in islice(found, MAX_SCANNED))
    except OSError as error:
        return f"(This directory cannot be read: {error.strerror}.)"
    entries = [entry for entry in entries if entry != ".git/"]
    more = [f"(and {len(entries) - MAX_ENTRIES} more)"] if len(entries) > MAX_ENTRIES else []
    return "\n".join(entries[:MAX_ENTRIES] + more) or "(This directory is empty.)"


def _text(mention: Mention, text: str) -> Attachment:
    return _attachment(mention, "text/plain", text.encode("utf-8", "replace"))


def _attachment(mention: Mention, kind: str, content: bytes) -> Attachment:
    return Attachment(file_path=mention.name, file_name=mention.name, mime_type=kind, content=content)
