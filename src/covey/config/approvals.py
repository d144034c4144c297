"""Trust that is bound to content: what a project's files name is used only as somebody has approved it.

An entry is one thing that a file names: a program that would be started, or a text that the model would read. The
user's own files are approved by being the user's own. What a project names needs its directory to be trusted *and* the
digest of the entry to be an approved one; `trusted.toml` keeps both. Reads only, but for `approve` and `disapprove`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from covey.config.expand import references
from covey.config.load import PROJECT_FILE, is_trusted, load, read_trusted
from covey.config.schema import ExtensionSections, LspSettings, McpSettings
from covey.machine.regular import NotRegular, open_regular
from covey.protocol.extensions import ApprovalRequest, ExtensionKind

SCRIPT_LIMIT = 64 * 1024 * 1024
"""Bytes of a script that are looked at: whatever is larger is no script, and its size counts instead."""
SHOWN_TEXT = 64 * 1024
"""Characters of a text that whoever decides gets to see."""

Standing = Literal["own", "approved", "not_approved", "not_trusted"]

_FETCHERS = re.compile(r"^(?:npx|bunx|pnpx|uvx|pipx|dlx)$")
_PROJECT_DIR = re.compile(r"""["']?\$\{?(?:CLAUDE|COVEY)_PROJECT_DIR\}?["']?""")
_HAS_VERSION = re.compile(r"(?:.@|==)[0-9][\w.\-+]*$")


@dataclass(frozen=True, slots=True)
class ExtensionEntry:
    """One thing that a file names. `name` is unique in its kind and file."""

    kind: ExtensionKind
    name: str
    source: Path
    is_users_own: bool
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    """As it is written; empty: the workspace's directory."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """As they are written: values may be secrets, and are neither shown nor a part of the digest."""
    url: str = ""
    headers: tuple[str, ...] = ()
    matcher: str = ""
    text: str = ""
    """For what is only read: all of it."""


@dataclass(frozen=True, slots=True)
class JudgedEntry:
    entry: ExtensionEntry
    digest: str
    standing: Standing

    @property
    def is_approved(self) -> bool:
        return self.standing in ("own", "approved")

    @property
    def may_be_asked_about(self) -> bool:
        """Whether somebody is asked on the wire. In a directory that is not trusted nobody is: `covey trust` asks."""
        return self.standing == "not_approved"


def mcp_entry(name: str, settings: McpSettings, source: Path, *, is_users_own: bool) -> ExtensionEntry:
    return ExtensionEntry(
        "mcp",
        name,
        source,
        is_users_own,
        command=settings.command,
        args=settings.args,
        cwd=settings.cwd,
        variables=settings.env,
        url=settings.url,
        headers=tuple(sorted(settings.headers)),
    )


def lsp_entry(name: str, settings: LspSettings, source: Path, *, is_users_own: bool) -> ExtensionEntry:
    """Its options count as well: some servers run whatever program they name."""
    told = {"options": settings.options, "settings": settings.settings}
    return ExtensionEntry(
        "lsp",
        name,
        source,
        is_users_own,
        command=settings.command,
        args=settings.args,
        variables=settings.env,
        text=msgspec.json.encode(told, order="sorted").decode() if any(told.values()) else "",
    )


def judge_entries(entries: Iterable[ExtensionEntry], directory: Path, environ: Mapping[str, str]) -> list[JudgedEntry]:
    """Whether each of them may be used in this directory. Reads `trusted.toml`, and scripts that are named; blocks.

    Raises ConfigError if `trusted.toml` cannot be understood.
    """
    trusts = is_trusted(directory, environ)
    approved = set(read_trusted(environ).digests(directory))

    def standing(entry: ExtensionEntry, digest: str) -> Standing:
        if entry.is_users_own:
            return "own"
        if not trusts:
            return "not_trusted"
        return "approved" if digest in approved else "not_approved"

    digested = [(entry, digest_of(entry, directory)) for entry in entries]
    return [JudgedEntry(entry, digest, standing(entry, digest)) for entry, digest in digested]


def digest_of(entry: ExtensionEntry, directory: Path) -> str:
    """SHA-256 of what would be executed, in canonical JSON. Scripts in the directory count with their bytes."""
    content = {
        "kind": entry.kind,
        "id": entry.name,
        "command": entry.command,
        "args": entry.args,
        "variables": sorted(_named(entry)),
        "url": entry.url,
        "headers": entry.headers,
        "cwd": entry.cwd,
        "matcher": entry.matcher,
        "text": entry.text,
        "scripts": _scripts(entry, directory),
    }
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _named(entry: ExtensionEntry) -> list[str]:
    """The variables that it gets, with the names of those that they are made of."""
    described = []
    for name, value in entry.variables.items():
        sources = ", ".join(f"${source}" for source in sorted(references(value)))
        described.append(f"{name} (from {sources})" if sources and sources != f"${name}" else name)
    return described


def _scripts(entry: ExtensionEntry, directory: Path) -> dict[str, str]:
    """The files inside the directory that the command names, with a digest of their content."""
    if not entry.command:
        return {}
    root = directory.resolve()
    found: dict[str, str] = {}
    for text in map(_from_here, (entry.command, *entry.args)):
        # What is a line for a shell names files as well, and so does `--config=tool.py`.
        words = {text, *re.split(r"[\s;&|<>()'\"]+", text)}
        for name in sorted(words | {word.rpartition("=")[2] for word in words}):
            if name and (digest := _script(root, root / entry.cwd, name)):
                found[name] = digest
    return found


def _from_here(text: str) -> str:
    """The text with a dot for the variable by which hooks name the directory: what follows it is a path in it."""
    return _PROJECT_DIR.sub(".", text)


def _script(root: Path, cwd: Path, name: str) -> str:
    try:
        path = (cwd / name).resolve()
        if not path.is_relative_to(root) or path.is_dir():
            return ""
        with open_regular(path, follow_links=True) as (file, status):
            if status.st_size > SCRIPT_LIMIT:
                return f"{status.st_size} bytes"
            return hashlib.sha256(file.read(SCRIPT_LIMIT + 1)).hexdigest()
    except (
        OSError,
        RuntimeError,
        ValueError,
        NotRegular,
    ):  # no file at all, or none that can be read: nor can it be run
        return ""


def approval_of(judged: JudgedEntry, directory: Path) -> ApprovalRequest:
    """All that whoever decides about an entry must see."""
    entry = judged.entry
    cwd = str((directory / entry.cwd).resolve()) if entry.command else None
    return ApprovalRequest(
        id=judged.digest,
        kind=entry.kind,
        name=entry.name,
        source=str(entry.source),
        command=entry.command or None,
        args=entry.args,
        cwd=cwd,
        variables=tuple(sorted(_named(entry))),
        url=entry.url or None,
        headers=entry.headers,
        matcher=entry.matcher or None,
        text=entry.text[:SHOWN_TEXT] or None,
        warnings=tuple(warnings_about(entry, directory)),
    )


def warnings_about(entry: ExtensionEntry, directory: Path) -> list[str]:
    """What is not plain to see from the entry itself."""
    words = (entry.command, *entry.args)
    warnings = []
    if fetcher := next((word for word in words if _FETCHERS.match(Path(word).name)), None):
        packages = [word for word in entry.args if not word.startswith("-") and not _FETCHERS.match(word)]
        if packages and not any(map(_HAS_VERSION.search, words)):
            warnings.append(
                f"{Path(fetcher).name} fetches the newest version of {packages[0]} each time: what runs tomorrow is "
                "not what you approve today. Name a version."
            )
    if scripts := _scripts(entry, directory):
        warnings.append(f"It runs files of this directory ({', '.join(scripts)}): if one changes, you are asked again.")
    if entry.url.startswith("http://") and not re.match(r"http://(?:127\.|localhost\b|\[::1\])", entry.url):
        warnings.append("It is reached without encryption: whoever is in between can read and change everything.")
    return warnings


def approve(environ: Mapping[str, str], directory: Path, digests: Iterable[str]) -> None:
    """Remember that these are approved in this directory. Raises ConfigError. Blocks."""
    from covey.config.edit import change_approved  # it uses what is here

    change_approved(environ, directory, add=tuple(digests))


def disapprove(environ: Mapping[str, str], directory: Path, digests: Iterable[str] | None = None) -> None:
    """Forget that these, or all, are approved in this directory. Raises ConfigError. Blocks."""
    from covey.config.edit import change_approved

    known = read_trusted(environ).digests(directory)
    change_approved(environ, directory, remove=known if digests is None else tuple(digests))


def project_entries(named: ExtensionSections, source: Path) -> list[ExtensionEntry]:
    """What the file of a project names, as entries. Each section has its line here."""
    from covey.config.hooks import hooks_of  # it uses what is here

    servers = [mcp_entry(name, settings, source, is_users_own=False) for name, settings in named.mcp.items()]
    enabled = {name: settings for name, settings in named.lsp.items() if settings.enabled}
    languages = [lsp_entry(name, settings, source, is_users_own=False) for name, settings in enabled.items()]
    hooks = [hook.entry for hook in hooks_of(named.hooks, source, is_users_own=False).hooks]
    return [*servers, *languages, *hooks]


def entries_of(directory: Path, environ: Mapping[str, str]) -> list[ExtensionEntry]:
    """What the files of a trusted directory name. Raises ConfigError."""
    from covey.config.hooks import hooks_in_project

    named = project_entries(load(directory, None, environ).config.of_project, directory / PROJECT_FILE)
    return named + [hook.entry for hook in hooks_in_project(directory).hooks]


def checked(entry: ExtensionEntry) -> str:
    """What is wrong with an entry, for people; empty if nothing is."""
    if entry.kind == "mcp" and bool(entry.command) == bool(entry.url):
        return "name either a command or a url"
    if wrong := next((name for name in entry.variables if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)), None):
        return f"{wrong!r} is no name of a variable"
    if entry.url and not re.match(r"https?://[^\s/]", entry.url) and not references(entry.url):
        return "its url is none: it begins with https:// or http://"
    return ""
