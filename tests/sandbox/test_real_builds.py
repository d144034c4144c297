"""Compilers, package managers and test runners work when they were approved, unchanged. Nothing is fetched."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.sandbox.conftest import Place, needs_landlock
from tests.sandbox.work import PYTHON, Work, check

pytestmark = [pytest.mark.anyio, needs_landlock, pytest.mark.timeout(300)]

TEST = "def test_it(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    assert (tmp_path / 'x').read_text() == 'x'\n"
WHEEL = "tiny-1.0-py3-none-any.whl"
USE_WHEEL = "env/bin/python -c 'import tiny; print(tiny.NAME)'"
NPM = {
    "dep/package.json": '{"name": "dep", "version": "1.0.0"}',
    "dep/index.js": "module.exports = 7\n",
    "t.js": "console.log(require('dep'))\n",
    "package.json": json.dumps(
        {"name": "app", "version": "1.0.0", "dependencies": {"dep": "file:dep"}, "scripts": {"test": "node t.js"}}
    ),
}
CARGO = {
    "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": 'fn main() { println!("hello"); }\n#[test]\nfn t() {}\n',
}
GO = {
    "go.mod": "module app\n\ngo 1.19\n",
    "main.go": 'package main\n\nfunc main() { println("hello") }\n',
    "main_test.go": 'package main\n\nimport "testing"\n\nfunc TestIt(t *testing.T) { t.TempDir() }\n',
}
JAVA = {"A.java": 'class A { public static void main(String[] a) { System.out.println("hello"); } }\n'}
CMAKE = "cmake_minimum_required(VERSION 3.10)\nproject(m C)\nadd_executable(m m.c)\n"
C = '#include <stdio.h>\nint main() { printf("42\\n"); return 0; }\n'
FORK = 'node -e \'require("child_process").fork("c.js").on("message", m => console.log(m))\''
PAGE = "--headless --no-sandbox --disable-gpu --dump-dom 'data:text/html,<p>hello</p>' 2> /dev/null"

SHOT = "--headless --no-sandbox --disable-gpu --screenshot=$PWD/shot.png file://$PWD/page.html 2> /dev/null"

WORK = {
    "gcc": Work("gcc -O1 -o m m.c && ./m", "42", "gcc", {"m.c": C}),
    "sanitizer": Work("gcc -fsanitize=address -o m m.c && ./m", "42", "gcc", {"m.c": C}),
    "cmake": Work("cmake -S . -B b && cmake --build b && b/m", "42", "cmake", {"CMakeLists.txt": CMAKE, "m.c": C}),
    "pytest": Work(f"{PYTHON} -m pytest -q test_t.py", "1 passed", files={"test_t.py": TEST}),
    "pytest in parallel": Work(f"{PYTHON} -m pytest -q -n 2 test_t.py", "1 passed", files={"test_t.py": TEST}),
    "pip": Work(f"python3 -m venv env && env/bin/pip install -q --no-index {WHEEL} && {USE_WHEEL}", "tiny", "pip3"),
    "uv": Work(
        f"uv venv -q env && uv pip install -q --python env/bin/python --no-index {WHEEL} && {USE_WHEEL}", "tiny", "uv"
    ),
    "npm": Work("npm install --silent && npm ci --silent && npm test --silent", "7", "npm", NPM),
    "node's processes": Work(FORK, "hi", "node", {"c.js": 'process.send("hi")\n'}),
    "cargo": Work("cargo build -q && cargo test -q && target/debug/app", "hello", "cargo", CARGO),
    "go": Work("go test -vet=off ./... && go build -o app . && ./app", "hello", "go", GO),
    "java": Work("javac A.java && java A", "hello", "javac", JAVA),
    "mypy": Work(f"{PYTHON} -m mypy src/main.py", "Success"),
    "chromium": Work(f"chromium {PAGE}", "hello", "chromium"),
    "chromium's pictures": Work(f"chromium {SHOT} && head -c 4 shot.png", "PNG", "chromium", {"page.html": "hello"}),
    "chrome": Work(f"google-chrome {PAGE}", "hello", "google-chrome"),
}
ALSO_WITHOUT_A_VIEW = ("gcc", "npm", "cargo")
CASES = [("view", name) for name in WORK] + [("landlock", name) for name in ALSO_WITHOUT_A_VIEW]
QUICK = [("view", "gcc"), ("view", "pytest"), ("view", "node's processes"), ("landlock", "gcc")]
"""One compiler, one test runner, one that talks to its processes. The others are for `make heavy`."""


def write_wheel(path: Path) -> None:
    """A package that can be installed without a network."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "NAME = 'tiny'\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")


@pytest.mark.parametrize(
    ("how", "name"), [case if case in QUICK else pytest.param(*case, marks=pytest.mark.heavy) for case in CASES]
)
async def test_it_builds_approved(place: Place, monkeypatch: pytest.MonkeyPatch, how: str, name: str) -> None:
    write_wheel(place.root / WHEEL)
    await check(WORK[name], place, monkeypatch, how)
