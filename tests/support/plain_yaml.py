"""As much of YAML as our manifests use, and nothing else: what is not plain fails. Scalars stay texts.

Maps and lists by indentation, `{…}` and `[…]` on one line, quotes, literal texts (`|`), anchors of maps and `<<`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

KEY = re.compile(r'("[^"]*"|[^\s:{}\[\],"&*#][^:{}\[\],"#]*?):(?:\s+(.*))?$')


def load_all(text: str) -> list[Any]:
    return [_Document(part.splitlines()).read() for part in re.split(r"(?m)^---\s*$", text) if part.strip()]


@dataclass
class _Document:
    lines: list[str]
    at: int = 0
    anchors: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Any:
        value = self._block(self._indent())
        assert self._indent() < 0, f"more than one value: {self.lines[self.at]!r}"
        return value

    def _indent(self) -> int:
        """Of the next line that says something; -1 at the end."""
        while self.at < len(self.lines) and not self.lines[self.at].partition("#")[0].strip():
            self.at += 1
        if self.at == len(self.lines):
            return -1
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def _content(self) -> str:
        line = self.lines[self.at].strip()
        return re.sub(r"\s+#.*$", "", line) if '"' not in line else line

    def _block(self, indent: int) -> Any:
        return self._list(indent) if self._content().startswith("- ") else self._map(indent)

    def _list(self, indent: int) -> list[Any]:
        found = []
        while self._indent() == indent and self._content().startswith("- "):
            rest = self._content()[2:]
            if KEY.match(rest) and not rest.startswith(("{", "[")):
                self.lines[self.at] = " " * (indent + 2) + rest  # a map that begins in the line of its dash
                found.append(self._map(indent + 2))
            else:
                self.at += 1
                found.append(_flow(rest))
        return found

    def _map(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._indent() == indent:
            matched = KEY.match(self._content())
            assert matched, f"neither a key nor a list: {self.lines[self.at]!r}"
            key, rest = matched[1].strip('"'), (matched[2] or "").strip()
            assert key not in found, f"{key} is there twice"
            self.at += 1
            if key == "<<":
                found = {**self.anchors[rest.removeprefix("*")], **found}
            elif rest == "|":
                found[key] = self._literal(indent)
            elif not rest or rest.startswith("&"):
                found[key] = self._block(self._indent()) if self._indent() > indent else None
                self.anchors |= {rest[1:]: found[key]} if rest else {}
            else:
                found[key] = _flow(rest)
        return found

    def _literal(self, indent: int) -> str:
        taken = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self._indent() > indent):
            taken.append(self.lines[self.at])
            self.at += 1
        margin = min(len(line) - len(line.lstrip()) for line in taken if line.strip())
        return "\n".join(line[margin:] for line in taken) + "\n"


def _flow(text: str) -> Any:
    value, rest = _value(text.strip())
    assert not rest.strip(), f"not understood: {rest!r}"
    return value


def _value(text: str) -> tuple[Any, str]:
    if text.startswith('"'):
        end = text.index('"', 1)
        return text[1:end], text[end + 1 :]
    if text.startswith("["):
        return _items(text[1:], "]")
    if text.startswith("{"):
        pairs, rest = _items(text[1:], "}")
        return dict(pairs), rest
    found = re.match(r"[^,\]}]*", text)
    assert found and not text.startswith(("&", "*", "'", ">", "!")), f"not plain: {text!r}"
    return found[0].strip(), text[found.end() :]


def _items(text: str, closing: str) -> tuple[list[Any], str]:
    found: list[Any] = []
    while not (text := text.lstrip(" ,")).startswith(closing):
        if closing == "}":
            key, _, text = text.partition(":")
            value, text = _value(text.lstrip())
            found.append((key.strip(), value))
        else:
            value, text = _value(text)
            found.append(value)
    return found, text[1:]
