"""Programs that keep secrets in a file, in the place of `secret-tool` and `security`: they take what those take."""

from __future__ import annotations

import json
import sys
from pathlib import Path

_KEPT = """
import json, os, shlex, sys
from pathlib import Path

store = Path({store!r})
kept = json.loads(store.read_text()) if store.exists() else {{}}

def save():
    store.write_text(json.dumps(kept))

with open({log!r}, "a") as log:
    log.write(json.dumps({{"args": sys.argv[1:], "environ": sorted(os.environ)}}) + "\\n")
"""

_SECRET_TOOL = """
action, words = sys.argv[1], [word for word in sys.argv[2:] if not word.startswith("--")]
name = json.dumps(dict(zip(words[::2], words[1::2])), sort_keys=True)
if action == "store":
    kept[name] = sys.stdin.read()
    save()
elif action == "lookup":
    if name not in kept:
        sys.exit(1)
    sys.stdout.write(kept[name])
elif action == "clear":
    del kept[name]
    save()
"""

_SECURITY = """
words = sys.argv[1:]
if words == ["-i"]:
    words = shlex.split(sys.stdin.readline())
options = dict(zip(words[1:], words[2:]))
name = options["-s"] + " " + options["-a"]
if words[0] == "add-generic-password":
    kept[name] = bytes.fromhex(options["-X"]).decode()
    save()
elif name not in kept:
    print("The specified item could not be found in the keychain.", file=sys.stderr)
    sys.exit(44)
elif words[0] == "find-generic-password":
    print(kept[name])
elif words[0] == "delete-generic-password":
    del kept[name]
    save()
"""

PROGRAMS = {"secret-tool": _SECRET_TOOL, "security": _SECURITY}


class FakeKeyring:
    """A directory with the program, and what it was asked for and keeps."""

    def __init__(self, directory: Path, name: str = "secret-tool") -> None:
        self.bin = directory / "keyring-bin"
        self.bin.mkdir(parents=True)
        self._store, self._log = directory / "kept.json", directory / "asked.log"
        make_program(self.bin / name, _KEPT.format(store=str(self._store), log=str(self._log)) + PROGRAMS[name])

    @property
    def keys(self) -> list[str]:
        return sorted(json.loads(self._store.read_text()).values()) if self._store.exists() else []

    @property
    def calls(self) -> list[dict[str, list[str]]]:
        """Each with its arguments and the names in its environment."""
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []


def make_program(path: Path, source: str) -> None:
    """An executable Python program, which imports nothing of the directory that it is started in."""
    path.write_text(f"#!{sys.executable} -IS\n{source}")
    path.chmod(0o755)
