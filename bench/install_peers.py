"""`python -m bench.install_peers`: install what can be had of the peers into a directory of its own, measure, clean up.

Nothing of it comes near the environment of this project: each Python program gets an environment of its own, and what
npm brings a prefix of its own. What cannot be installed is said, and the others are measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = {"llm": "llm", "aider": "aider-chat"}
NPM = {"opencode": "opencode-ai"}
INSTALL_S = 900.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.install_peers", description=__doc__)
    parser.add_argument("--directory", type=Path, metavar="DIR", help="install there, use what is there, and keep it")
    parser.add_argument("--quick", action="store_true", help="fewer samples: for a look, not for a claim")
    args = parser.parse_args()
    directory: Path = args.directory or Path(tempfile.mkdtemp(prefix="covey-peers-"))
    try:
        places = _install(directory.resolve())
        env = os.environ | {"PATH": os.pathsep.join([*map(str, places), os.environ["PATH"]])}
        return subprocess.run([sys.executable, "-m", "bench", "peers", *["--quick"] * args.quick], env=env).returncode
    finally:
        if not args.directory:
            shutil.rmtree(directory, ignore_errors=True)


def _install(directory: Path) -> list[Path]:
    """Where the programs are."""
    places = []
    for name, package in PYTHON.items():
        place = directory / name
        made = (place / "bin" / name).exists() or (
            _ran(name, [sys.executable, "-m", "venv", str(place)])
            and _ran(name, [str(place / "bin" / "pip"), "install", "--quiet", package])
        )
        # Only the program itself: a Python of its environment must not be found before others.
        places += [_linked(place / "bin" / name, directory / "programs")] if made else []
    for name, package in NPM.items():
        program = directory / "npm" / "node_modules" / ".bin" / name
        command = ["npm", "install", "--silent", "--prefix", str(directory / "npm"), package]
        places += [program.parent] if program.exists() or _ran(name, command) else []
    return list(dict.fromkeys(places))


def _linked(program: Path, place: Path) -> Path:
    place.mkdir(exist_ok=True)
    link = place / program.name
    if not link.is_symlink():
        link.symlink_to(program)
    return place


def _ran(name: str, command: list[str]) -> bool:
    print(f"installing {name}: {' '.join(command)}", flush=True)
    try:
        done = subprocess.run(command, timeout=INSTALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  it cannot be installed here: {error}")
        return False
    if done.returncode:
        print(f"  it cannot be installed here (exit {done.returncode})")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
