"""A small project full of traps, in which a real bash runs a line, and what is seen to have happened.

Canaries tell when something of the project was run, a file was changed, a file outside was read, or a variable printed.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from covey.permissions.judge import Intent
from covey.tools.bash import NOT_INTERACTIVE
from covey.tools.git_guard import guarded
from covey.tools.links import WorkspaceLinks

LIMIT_S = 2.0
OUTPUT_LIMIT = 1 << 20
OUTSIDE_TEXT = "canary-of-a-file-outside"
OUTSIDE_NAME = "canary-of-a-name"
VARIABLE_TEXT = "canary-of-a-variable"
HOSTILE_NAMES = ("cd", "ls", "for", "[[", "test", "git", "cat")
"""Programs of the project that are named like builtins, keywords and commands that only look."""
TRAPS = (
    '{system("touch pwned")}',
    "X/e;#",
    "$(touch pwned)",
    "a[$(touch pwned)]",
    "`touch pwned`",
    ";touch pwned;",
    "-delete",
    "-fprint",
    "--output=pwned",
    "--pre=.cd",
    "env",
    "$ENV",
)
"""Names of files that become code, options or programs where they are not taken as a path."""


LINKS = {
    "link": "../outside/secret.txt",
    "linkdir": "../outside/dir",
    "src/sub/top": "../..",
    "src/inner": "sub",
    "notes": ".env",
}
"""Links of the project: out of it, to its top (where `..` leads out), and to other files in it."""


class Arena:
    """A project with traps in it, a directory beside it that nobody may look into, and what happened there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self._outside, self._ran, self._output = folder / "outside", folder / "ran", folder / "output"
        for directory in (self.root, self._outside / "dir", self._ran):
            directory.mkdir(parents=True)
        (self._outside / "secret.txt").write_text(f"{OUTSIDE_TEXT}\n")
        (self._outside / "dir" / "f").write_text(f"{OUTSIDE_TEXT}\n")
        (self._outside / "dir" / OUTSIDE_NAME).touch()
        self._fill()
        self._env = {
            **guarded({}),
            **NOT_INTERACTIVE,
            "PATH": os.defpath,
            "HOME": str(folder / "home"),
            "SECRET": VARIABLE_TEXT,
            "TOKEN": f"a[{VARIABLE_TEXT}",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",  # else `git status` refreshes its index, which is no change to anybody
        }
        self._git("init", "-q")
        self._git("add", "a.py", "src")
        self._git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        (self.root / "a.py").write_text("changed = 1\n")
        self._before = self._snapshot()

    def _fill(self) -> None:
        texts = {
            "a.py": "x = 1\n",
            "b.txt": "b a\nc\n",
            "one": "1\n",
            "in.txt": "a=1 touch pwned\n",
            "list": "../outside/secret.txt\n",
            "@list": "../outside/secret.txt\n",
            "data.json": '{"a": 1}\n',
            "src/c.py": "y = 2\n",
            "src/sub/d.py": "z = 3\n",
            "dir/f": "inside\n",
            "two/1": "1\n1\n",
            "two/2": "2\n",
            "{}/keep": "",
            "outside/secret.txt": "inside\n",
            ".env": "KEY=1\n",
            ";": "",
            "+": "",
            **dict.fromkeys(TRAPS, "trap\n"),
        }
        for name, text in texts.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target)
        for folder in ("", "evil", "0", "src"):
            for name in HOSTILE_NAMES:
                program = self.root / folder / name
                program.parent.mkdir(exist_ok=True)
                program.write_text(f"#!/bin/sh\n: > {self._ran}/{folder or 'project'}-{name.strip('[')}\n")
                program.chmod(0o755)
        fsmonitor = f'"touch {self._ran}/fsmonitor; true"'
        (self.root / "evil" / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {fsmonitor}\n")

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, env=self._env, check=True, capture_output=True)

    def intent(self, line: str) -> Intent:
        """As the bash tool makes it."""
        return Intent("bash", "execute", line, links=WorkspaceLinks(self.root))

    def harm(self, line: str) -> str:
        """What the line did that it must not; empty: nothing. The project is as it was afterwards."""
        output = self._run(line)
        harm = []
        if ran := sorted(path.name for path in self._ran.iterdir()):
            harm.append(f"ran {', '.join(ran)}")
            shutil.rmtree(self._ran)
            self._ran.mkdir()
        if self._changes():
            harm.append(f"changed {', '.join(self._changes())}")
            self._restore()
        if OUTSIDE_TEXT.encode() in output:
            harm.append("read a file outside")
        if OUTSIDE_NAME.encode() in output:
            harm.append("listed a directory outside")
        if VARIABLE_TEXT.encode() in output:
            harm.append("printed a variable")
        return "; ".join(harm)

    def _run(self, line: str) -> bytes:
        with self._output.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", line],
                cwd=self.root,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_LIMIT, OUTPUT_LIMIT)),
            )
            with suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return self._output.read_bytes()

    def _snapshot(self) -> dict[str, tuple[int, int]]:
        return dict(self._files(str(self.root)))

    def _files(self, folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files(entry.path)
                else:
                    yield entry.path, (status.st_size, status.st_mtime_ns)

    def _changes(self) -> list[str]:
        now = self._snapshot()
        return sorted(Path(path).name for path, state in now.items() ^ self._before.items())

    def _restore(self) -> None:
        """New files go, lost ones come back; what is in them matters to nobody."""
        now = self._snapshot()
        for path in now.keys() - self._before.keys():
            Path(path).unlink()
        for path in self._before.keys() - now.keys():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
        self._before = self._snapshot()
