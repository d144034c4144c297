"""The frozen lines of `dangerous_lines.jsonl.gz`, and the workspace that they are about.

They were written by somebody who had not read the judge, from what shells and programs can do. Each was run once,
among canaries: `works` says whether harm was seen then. They are never edited: what is learned from one of them goes
into the tables of the judge.
"""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from covey.tools.base import ToolContext

CORPUS = Path(__file__).with_name("dangerous_lines.jsonl.gz")
HARMS = ("write", "delete", "code", "read", "env", "tcp", "udp", "socket")
VARIABLE = "CANARY_KEY"
LONG_AGO = 1_700_000_000
SECRET_FILES = ("secret.txt", "dir/deep.txt")


class DangerousLine(msgspec.Struct, frozen=True):
    """A command line and the harm that it is meant to do. `@OUT@` and its like stand for places of the project."""

    line: str
    harm: str
    how: str
    """The mechanism, in words."""
    works: bool
    """Whether the harm was seen when it was run without any protection."""
    seen: str = ""
    """By what it was seen; `differs`: the output depends on a secret without holding it as it is."""
    why: str = ""
    """Why it does not work."""
    also: tuple[str, ...] = ()
    """What else it leaves."""
    odd_syntax: bool = False


def dangerous_lines() -> list[DangerousLine]:
    rows = gzip.decompress(CORPUS.read_bytes()).splitlines()
    return [msgspec.json.decode(row, type=DangerousLine) for row in rows]


@dataclass(frozen=True)
class DangerousProject:
    """A workspace with hostile names, scripts and links in it, beside a directory that is nobody's business."""

    base: Path
    port: int = 1
    udp_port: int = 2

    @property
    def root(self) -> Path:
        return self.base / "ws"

    @property
    def outside(self) -> Path:
        return self.base / "out"

    @property
    def marks(self) -> Path:
        """Where whatever comes into being was made by a line."""
        return self.base / "mark"

    @property
    def socket(self) -> Path:
        return self.base / "s.sock"

    @property
    def words(self) -> Mapping[str, str]:
        return {
            "@OUT@": str(self.outside),
            "@MARK@": str(self.marks / "m1"),
            "@WMARK@": str(self.root / "wmark_x"),
            "@UPORT@": str(self.udp_port),
            "@PORT@": str(self.port),
            "@SOCK@": str(self.socket),
            "@ABS@": "covey.corpus",
        }

    def filled(self, line: str) -> str:
        for word, value in self.words.items():
            line = line.replace(word, value)
        return line

    def make_workspace(self, env: Mapping[str, str]) -> None:
        """All of it, with a repository of two commits."""
        evil = f"#!/bin/sh\ntouch {self.root}/wmark_x\n"
        texts = {
            "README.md": "# Demo\n\nHello demo project.\n",
            "src/main.py": 'print("hello")\n',
            "data.csv": "id,name\n1,alice\n2,bob\n",
            "list.txt": "alice\nbob\ncarol\n",
            "Makefile": f".PHONY: evil\nall:\n\t@echo ok\nevil:\n\ttouch {self.root}/wmark_x\n",
            "package.json": msgspec.json.encode(
                {
                    "name": "demo",
                    "version": "1.0.0",
                    "scripts": dict.fromkeys(("evil", "test"), f"touch {self.root}/wmark_x"),
                }
            ).decode(),
            "script.sh": evil,
            **{f"evil/{name}": evil for name in ("ls", "cat", "git", "cd")},
            **dict.fromkeys(("-rf", "--help", "$(touch x)", "a b", ";id"), "x\n"),
        }
        for name, text in texts.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if text == evil else 0o644)
            os.utime(path, (LONG_AGO, LONG_AGO))
        (self.root / "link.txt").symlink_to(self.outside / "secret.txt")
        (self.root / "linkdir").symlink_to(self.outside)
        self._make_repository(env)

    def _make_repository(self, env: Mapping[str, str]) -> None:
        def git(*arguments: str) -> None:
            subprocess.run(["git", *arguments], cwd=self.root, env=env, check=True, stdout=subprocess.DEVNULL)

        git("init", "-q", "-b", "main", "--template=")
        settings = {"user.name": "a", "user.email": "a@b", "gc.auto": "0"}
        # Else a copy of the repository looks changed to git.
        for name, value in {**settings, "core.trustctime": "false", "core.checkStat": "minimal"}.items():
            git("config", name, value)
        git("add", "README.md")
        git("commit", "-qm", "one")
        git("add", "-A")
        git("commit", "-qm", "two")

    def make_outside(self, secrets: tuple[str, str]) -> None:
        """Also if it is there already, with other secrets."""
        (self.outside / "dir").mkdir(parents=True, exist_ok=True)
        self.marks.mkdir(exist_ok=True)
        for name, text in zip(SECRET_FILES, secrets, strict=True):
            (self.outside / name).write_text(f"{text}\n")
        for path in (*SECRET_FILES, "dir", ""):
            os.utime(self.outside / path, (LONG_AGO, LONG_AGO))

    def context(self, env: Mapping[str, str]) -> ToolContext:
        return ToolContext(self.root, "s1", "r1", "c1", env, "covey-corpus")
