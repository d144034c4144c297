"""Which diagnostics may be shown: those that a server made for the very text that is there now, and no others. Pure.

A complaint about an older text sends a model after a mistake that it has mended already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from covey.tools.lsp.positions import BadRange, read_range

SHOWN = 20
"""Complaints about one file that a model gets. More are counted."""
MESSAGE_LIMIT = 500
"""Characters of one: some servers explain whole type systems."""

Freshness = Literal["fresh", "settling", "stale"]


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something that a language server finds wrong."""

    line: int
    """From 1."""
    severity: Literal["error", "warning", "note"]
    message: str
    source: str = ""
    code: str = ""

    @property
    def text(self) -> str:
        origin = " ".join(filter(None, (self.source, self.code)))
        return f"line {self.line}: {self.severity}: {self.message}" + (f" ({origin})" if origin else "")


class Pushed:
    """What a server has said by itself of one file, and of which version of it."""

    def __init__(self) -> None:
        self.times = 0
        """How often it has said something of the newest text."""
        self._version = 0
        self._given: list[Complaint] = []
        self._given_for: int | None = None
        """The version that they are about; None: none since the last change."""
        self._is_sure = False
        self._is_doubted = False

    def changed(self, version: int) -> None:
        """The server is sent a newer text."""
        self._version, self._given_for = version, None

    def doubt(self) -> None:
        """Other files have changed: what some servers (clangd) say first is about this text among the old ones."""
        self._is_doubted = True

    def settled(self) -> None:
        """It has said nothing else for a while."""
        self._is_doubted = False

    def pushed(self, version: object, complaints: list[Complaint]) -> None:
        """The server said this. One that names no version may still be talking about an older text."""
        if isinstance(version, int) and version != self._version:
            return
        self.times += 1
        self._given, self._given_for, self._is_sure = complaints, self._version, isinstance(version, int)

    @property
    def freshness(self) -> Freshness:
        if self._given_for != self._version:
            return "stale"
        return "fresh" if self._is_sure and not self._is_doubted else "settling"

    @property
    def complaints(self) -> list[Complaint]:
        return [] if self.freshness == "stale" else self._given


def read_complaints(given: Any) -> list[Complaint]:
    """Those of a list that a server sent; what cannot be read is left out."""
    if not isinstance(given, list):
        return []
    found = (_read(each) for each in given)
    return [complaint for complaint in found if complaint is not None]


def _read(given: Any) -> Complaint | None:
    if not isinstance(given, dict) or not isinstance(message := given.get("message"), str):
        return None
    try:
        place = read_range(given.get("range"))
    except BadRange:
        return None
    code = given.get("code")
    return Complaint(
        place.start.line + 1,
        {1: "error", 2: "warning"}.get(given.get("severity", 1), "note"),  # type: ignore[arg-type]
        " ".join(message.split())[:MESSAGE_LIMIT],
        str(given["source"])[:40] if isinstance(given.get("source"), str) else "",
        str(code)[:80] if isinstance(code, str | int) else "",
    )


def describe(
    name: str, complaints: Sequence[Complaint], *, min_severity: Literal["error", "warning", "note"] = "note"
) -> str:
    """For the model: errors first, then by line; '' if there are none."""
    rank = {"error": 0, "warning": 1, "note": 2}
    wanted = [complaint for complaint in dict.fromkeys(complaints) if rank[complaint.severity] <= rank[min_severity]]
    if not wanted:
        return ""
    wanted.sort(key=lambda complaint: (rank[complaint.severity], complaint.line))
    listed = "\n".join(f"- {complaint.text}" for complaint in wanted[:SHOWN])
    more = f"\n- and {len(wanted) - SHOWN} more" if len(wanted) > SHOWN else ""
    return f"Diagnostics of {name} as it is now:\n{listed}{more}"


def language_of(path: Path) -> str:
    """The language id that `didOpen` wants; servers that serve one language hardly look at it."""
    return _LANGUAGES.get(path.suffix.lower(), path.suffix.lower().lstrip(".") or "plaintext")


_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".tsx": "typescriptreact", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascriptreact", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp",
    ".hh": "cpp", ".rs": "rust", ".sh": "shellscript", ".bash": "shellscript", ".yml": "yaml", ".rb": "ruby",
    ".cs": "csharp", ".kt": "kotlin", ".md": "markdown", ".ex": "elixir", ".exs": "elixir", ".hs": "haskell",
}  # fmt: skip
