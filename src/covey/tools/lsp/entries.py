"""Which language servers there can be: those that are configured, and well-known ones that are on the PATH. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINTERS = frozenset({"ruff", "vscode-eslint-language-server", "golangci-lint-langserver", "typos-lsp"})
"""Programs that only find what is wrong with a text: they know no definitions, references, symbols or renames."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """How a language server is started, and for which files."""

    name: str
    command: tuple[str, ...]
    suffixes: frozenset[str]
    """Of the files that it is for, with their dots, in lower case."""
    role: str = ""
    """Of several well-known servers with one role, the first that is there is used; '': it stands for itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `initialize` hands over."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the server may ask for, by section."""

    def is_for(self, path: Path) -> bool:
        return path.suffix.lower() in self.suffixes

    @property
    def only_complains(self) -> bool:
        """As far as is known without starting it."""
        return Path(self.command[0]).name in LINTERS


_WHOLE_RENAMES = {"preferences": {"providePrefixAndSuffixTextForRename": False}}
"""Else tsserver leaves the old name where a module exports it: `import { old as new }`."""


def _known(
    name: str, command: str, suffixes: str, role: str = "", options: Mapping[str, Any] | None = None
) -> ServerEntry:
    endings = frozenset(f".{suffix}" for suffix in suffixes.split())
    return ServerEntry(name, tuple(command.split()), endings, role, options=options or {})


KNOWN = (
    _known("ruff", "ruff server", "py pyi"),
    _known("ty", "ty server", "py pyi", "python"),
    _known("basedpyright", "basedpyright-langserver --stdio", "py pyi", "python"),
    _known("pyright", "pyright-langserver --stdio", "py pyi", "python"),
    _known("pyrefly", "pyrefly lsp", "py pyi", "python"),
    _known("pylsp", "pylsp", "py pyi", "python"),
    _known("jedi", "jedi-language-server", "py pyi", "python"),
    _known("clangd", "clangd", "c h cc hh cpp hpp cxx hxx m mm"),
    _known("gopls", "gopls", "go"),
    _known("rust-analyzer", "rust-analyzer", "rs"),
    _known("typescript", "typescript-language-server --stdio", "ts tsx mts cts js jsx mjs cjs", options=_WHOLE_RENAMES),
    _known("bash", "bash-language-server start", "sh bash"),
    _known("json", "vscode-json-language-server --stdio", "json jsonc"),
    _known("yaml", "yaml-language-server --stdio", "yaml yml"),
    _known("lua", "lua-language-server", "lua"),
    _known("zls", "zls", "zig"),
    _known("ruby", "ruby-lsp", "rb"),
    _known("elixir", "elixir-ls", "ex exs"),
    _known("haskell", "haskell-language-server-wrapper --lsp", "hs"),
    _known("dart", "dart language-server", "dart"),
)
"""In the order of preference within a role. None is ever downloaded."""


def entries_of(
    configured: Sequence[ServerEntry], disabled: frozenset[str], find: Callable[[str], str | None], *, known: bool
) -> list[ServerEntry]:
    """Those that can be started: configured ones, then well-known ones, unless one of the same name or role is there.

    `find` gives the full path of a program of this machine. A configured server whose program is not found is kept:
    starting it says so.
    """
    entries = [entry for entry in configured if entry.name not in disabled]
    taken = {entry.name for entry in configured} | {entry.role for entry in entries if entry.role} | disabled
    for entry in KNOWN if known else ():
        if entry.name in taken or (entry.role and entry.role in taken) or find(entry.command[0]) is None:
            continue
        entries.append(entry)
        taken |= {entry.role} - {""}
    return entries
