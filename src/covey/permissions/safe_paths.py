"""Whether a path leads out of the workspace, or to a secret: as it is written, and then as the disk has it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from covey.permissions.links import Links, Use, unseen
from covey.permissions.shell_words import Word, WordKind

OUTSIDE = "outside"
SECRET = "secret"  # noqa: S105 # the name of a reason
UNKNOWN_PATH = "unknown"

_DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".azure", ".gcloud"})
_SECRET_FILES = re.compile(
    r"\.env(?!\.(?:example|sample|template|dist)$)(?:\..*|rc)?|\.netrc|_netrc|\.npmrc|\.pypirc|\.git-credentials|"
    r"\.htpasswd|\.pgpass|\.my\.cnf|\.vault-token|credentials(?:\.\w+)?|secrets?\.(?:ya?ml|json|toml|ini)|"
    r"id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:pem|key|p12|pfx|keystore|jks)",
    re.IGNORECASE,
)
_EXAMPLES_OF_SECRETS = (
    *sorted(_SECRET_FOLDERS),
    *(".env", ".env.local", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd", ".vault-token"),
    *("credentials", "credentials.json", "secrets.yaml", "secrets.json", "id_rsa", "id_ed25519", "a.pem", "a.key"),
)
_GLOB = re.compile(r"[*?\[]")


class Repository(StrEnum):
    """Where the repository is that git would use in the workspace."""

    OWN = "own"
    """In the workspace itself; or there is none."""
    ABOVE = "above"
    """The workspace is a directory of it: paths may be seen from further up."""
    FOREIGN = "foreign"
    """Plain files that a clone may have brought along: its configuration is not the user's."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs. After a `cd` that may or may not have happened there is more than one possibility."""

    root: str = ""
    """The workspace's directory; empty: not known, so every absolute path is outside."""
    directories: frozenset[tuple[str, ...]] = frozenset({()})
    """Each as seen from the root."""
    repository: Repository = Repository.OWN
    links: Links = field(default=unseen, compare=False)

    def problem(self, word: Word, use: Use = Use.CONTENT) -> str:
        """Why this path should not be used without asking; empty if nothing speaks against it."""
        if word.kind not in (WordKind.LITERAL, WordKind.NUMBER, WordKind.GLOB):
            return UNKNOWN_PATH
        if word.text in _DEVICES:
            return ""
        found = [self._from(directory, word.text) for directory in self.directories]
        if any(parts is None for parts in found):
            return OUTSIDE
        globs = word.kind is WordKind.GLOB
        if any(is_secret(part, globs=globs) for parts in found for part in parts or ()):
            return SECRET
        return "" if word.is_one_path else self._on_disk(word, use)

    def _on_disk(self, word: Word, use: Use) -> str:
        """What is wrong with where it leads, now that nothing is wrong with how it is written."""
        text, starts = (
            word.text,
            [f"{self.root.rstrip('/')}/{'/'.join(parts)}".rstrip("/") for parts in self.directories],
        )
        if text.startswith("/"):
            text, starts = text[len(self.root.rstrip("/")) :], [self.root]
        found = (self.links(start, text, use, pattern=word.kind is WordKind.GLOB) for start in starts)
        return next(filter(None, found), "")

    def moved(self, word: Word) -> Place | None:
        """After `cd`, if that stays inside."""
        if not word.known or self.problem(word, Use.DIRECTORY) or word.text in ("", "-"):
            return None
        new = {parts for directory in self.directories if (parts := self._from(directory, word.text)) is not None}
        directories = self.directories | new
        return replace(self, directories=directories) if len(directories) <= 8 else None

    def absolute(self, text: str) -> list[str]:
        """Every path that this one may mean; empty if it leads outside."""
        found = [self._from(directory, text) for directory in self.directories]
        if any(parts is None for parts in found):
            return []
        return ["/".join((self.root.rstrip("/"), *parts)) for parts in found if parts is not None]

    def _from(self, directory: tuple[str, ...], text: str) -> tuple[str, ...] | None:
        """The path as seen from the root; None: outside."""
        if text.startswith("/"):
            root = self.root.rstrip("/")
            if not root or not f"{text}/".startswith(f"{root}/"):
                return None
            directory, text = (), text[len(root) :]
        parts = list(directory)
        for part in text.split("/"):
            if part == ".." or (part[:1] == "." and _GLOB.search(part) and _may_be("..", part)):
                if not parts:
                    return None
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return tuple(parts)


def is_secret(part: str, *, globs: bool = False) -> bool:
    """Whether a file or folder of this name usually holds what nobody should see."""
    if part.lower() in _SECRET_FOLDERS or _SECRET_FILES.fullmatch(part):
        return True
    if not globs or not _GLOB.search(part):
        return False
    # To a shell, a name that begins with a dot fits no pattern that does not.
    return may_pick_secret(part, tuple(name for name in _EXAMPLES_OF_SECRETS if name[0] != "." or part[0] == "."))


def may_pick_secret(pattern: str, names: tuple[str, ...] = _EXAMPLES_OF_SECRETS) -> bool:
    """Whether a pattern means one of these names. One that says nothing (`*`, `*.*`) means none in particular."""
    plain = len(re.sub(r"\[[^\]]*\]|[*?]", "", pattern))
    return any(_may_be(name, pattern) and (plain > 1 or pattern[0] == ".") for name in names)


_WITH_CLASS = re.compile(r"\[[^\]]*\[[:.=][^\]]*[:.=]\][^\]]*\]")


def _may_be(name: str, pattern: str) -> bool:
    """Whether a shell's pattern may fit a name. Python knows neither `[^…]` nor classes such as `[[:alpha:]]`."""
    return fnmatchcase(name, _WITH_CLASS.sub("?", pattern).replace("[^", "[!"))


def place(root: str, cwd: str) -> Place | None:
    """The workspace's root, or a directory in it; None: outside."""
    if not cwd:
        return Place(root)
    parts = Place(root)._from((), cwd)
    return None if parts is None else Place(root, frozenset({parts}))
