"""`make test-package`: what users install works, in an empty environment. `python3 tests/try_package.py`

Builds sdist and wheel with the pinned backend, builds the wheel again from the sdist, and compares them. Then installs
the wheel with the pinned dependencies where nothing else is, and runs a prompt. Needs nothing but the package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP_S = 120
CONFIG = """\
models.large = "demo/script"
[providers.demo]
type = "scripted"
script = "{script}"
models = [{{ id = "script" }}]
"""
SCRIPT = {"replies": [{"steps": [[{"text": "You said: ${prompt}"}]]}]}
SHIPPED = (
    *("covey/cli/main.py", "covey/web/index.html", "covey/web/js/main.js", "covey/py.typed", "covey/context/init.md"),
    "man1/covey.1",
)
"""A module, that it is typed, a data file, and what is no part of the package itself."""


def call(*command: str | Path, **further: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=STEP_S, check=False, **further
    )  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def environment(place: Path, lock: str) -> Path:
    """The python of an environment with nothing but what the lock names."""
    call(sys.executable, "-m", "venv", place)
    pip = (place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check")
    call(*pip, "--require-hashes", "-r", ROOT / lock)
    return place / "bin" / "python"


def built(place: Path) -> Path:
    """The wheel, which is the same whether it comes from the sources or from the sdist."""
    python = environment(place / "build-env", "requirements-build.lock")
    call(python, "-m", "hatchling", "build", "-d", place / "dist", cwd=ROOT)
    (wheel,) = (place / "dist").glob("*.whl")
    (sdist,) = (place / "dist").glob("*.tar.gz")
    again = place / "again"
    call(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", again, sdist)
    (other,) = again.glob("*.whl")
    names, others = (sorted(zipfile.ZipFile(path).namelist()) for path in (wheel, other))
    if names != others:
        sys.exit(f"the sdist gives another wheel: {sorted(set(names) ^ set(others))}")
    if missing := [name for name in SHIPPED if not any(found.endswith(name) for found in names)]:
        sys.exit(f"the wheel lacks {missing}")
    return wheel


def tried(place: Path, wheel: Path) -> None:
    python = environment(place / "env", "requirements.lock")
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", wheel)
    covey = place / "env" / "bin" / "covey"
    home = place / "home"
    (home / ".config" / "covey").mkdir(parents=True)
    (home / "project").mkdir()
    (home / "script.json").write_text(json.dumps(SCRIPT))
    (home / ".config" / "covey" / "config.toml").write_text(CONFIG.format(script=home / "script.json"))
    with tempfile.TemporaryDirectory(prefix="cv-") as runtime:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": runtime}
        where = {"cwd": home / "project", "env": env, "stdin": subprocess.DEVNULL}
        print(call(covey, "--version", **where).strip())
        try:
            answer = call(covey, "run", "hello", **where)
            if answer != "You said: hello\n":
                sys.exit(f"the answer is {answer!r}")
        finally:
            call(covey, "stop", **where)
        example = call(python, ROOT / "examples" / "one_answer.py", "hello", **where)
        call(covey, "stop", **where)
        if example != answer:
            sys.exit(f"the example says {example!r}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="covey-package-") as name:
        place = Path(name)
        wheel = built(place)
        tried(place, wheel)
    print(f"{wheel.name} works in an empty environment.")


if __name__ == "__main__":
    main()
