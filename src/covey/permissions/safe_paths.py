"""Whether a path as it is written leads out of the workspace, or to a secret. Links cannot be known here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

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

    def problem(self, word: Word) -> str:
        """Why this path should not be used without asking; empty if nothing speaks against it."""
        if word.kind not in (WordKind.LITERAL, WordKind.NUMBER, WordKind.GLOB):
            return UNKNOWN_PATH
        if word.text in _DEVICES:
            return ""
        found = [self._from(directory, word.text) for directory in self.directories]
        if any(parts is None for parts in found):
            return OUTSIDE
        globs = word.kind is WordKind.GLOB
        return SECRET if any(is_secret(part, globs=globs) for parts in found for part in parts or ()) else ""

    def moved(self, word: Word) -> Place | None:
        """After `cd`, if that stays inside."""
        if not word.known or self.problem(word) or word.text in ("", "-"):
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
    plain = len(re.sub(r"\[[^\]]*\]|[*?]", "", part))
    # A pattern that says nothing about the name (`*`, `*.*`) also means them, but not in particular.
    return any(
        _may_be(name, part) and (part[0] == "." if name[0] == "." else plain > 1) for name in _EXAMPLES_OF_SECRETS
    )


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
