"""The files that a language server has been sent, each as it was sent last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covey.tools.lsp.complaints import Complaint, Pushed, language_of

OPEN_LIMIT = 50
"""Files open at once: each costs the server memory. The one that was used longest ago is closed."""

Notify = Callable[[str, dict[str, Any]], None]


@dataclass(slots=True)
class Document:
    uri: str
    version: int
    text: str
    pushed: Pushed = field(default_factory=Pushed)
    pulled: list[Complaint] | None = None
    """What the server answered when it was asked about this version; None: it has not."""

    @property
    def complaints(self) -> list[Complaint]:
        """What is known to be wrong with this very text."""
        return self.pushed.complaints if self.pulled is None else self.pulled


class Documents:
    """By path, the one that was used last at the end."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._open: dict[Path, Document] = {}
        self._by_uri: dict[str, Document] = {}
        self._versions: dict[str, int] = {}
        """They go on rising after a file was closed, so that a late answer about an older one is known as such."""

    @property
    def paths(self) -> list[Path]:
        return list(self._open)

    @property
    def complaints(self) -> dict[str, list[Complaint]]:
        """By URI: what is known to be wrong with the files as they are."""
        return {uri: found for uri, document in self._by_uri.items() if (found := document.complaints)}

    def at(self, uri: str) -> Document | None:
        return self._by_uri.get(uri)

    def sync(self, path: Path, text: str) -> Document:
        """Have the server know this text of the file."""
        document = self._open.pop(path, None)
        if document is None:
            document = self._opened(path, text)
        elif document.text != text:
            self._change(document, text)
        self._open[path] = document
        while len(self._open) > OPEN_LIMIT:
            self.close(next(iter(self._open)))
        return document

    def doubt(self) -> None:
        """Files have changed beside those that it was sent."""
        for document in self._open.values():
            document.pushed.doubt()

    def close(self, path: Path) -> None:
        if document := self._open.pop(path, None):
            del self._by_uri[document.uri]
            self._notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})

    def _opened(self, path: Path, text: str) -> Document:
        uri = path.as_uri()
        document = Document(uri, self._next_version(uri), text)
        document.pushed.changed(document.version)
        self._by_uri[uri] = document
        item = {"uri": uri, "languageId": language_of(path), "version": document.version, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": item})
        return document

    def _change(self, document: Document, text: str) -> None:
        document.version, document.text, document.pulled = self._next_version(document.uri), text, None
        document.pushed.changed(document.version)
        identifier = {"uri": document.uri, "version": document.version}
        # The whole text works with every server, also with those that announce more.
        self._notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})

    def _next_version(self, uri: str) -> int:
        self._versions[uri] = self._versions.get(uri, 0) + 1
        return self._versions[uri]
