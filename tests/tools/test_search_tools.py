"""glob, grep and ls: what they find, what they say, and that nothing a model or a tree holds can keep them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.tools import search
from covey.tools.base import Tool, ToolContext, ToolFailed
from covey.tools.glob import GlobParams, glob_tool
from covey.tools.grep import grep_tool, ripgrep
from covey.tools.ls import LsParams, ls_tool
from covey.tools.processes import LocalProcesses
from tests.support.machine import carriers, until

pytestmark = pytest.mark.anyio

CATASTROPHIC = r"(?=(a+)+$)(a+)+$b"
"""Takes forever on a line of a's. The look-ahead keeps ripgrep from understanding it."""


class Desk:
    """The tools that look, in one workspace."""

    def __init__(self, context: ToolContext) -> None:
        processes = LocalProcesses()
        self.context = context
        tools: list[Tool[Any]] = [glob_tool(processes), grep_tool(processes), ls_tool(processes)]
        self.tools = {tool.name: tool for tool in tools}

    async def call(self, tool: str, **params: Any) -> str:
        used = self.tools[tool]
        output = await used.run(used.decode(json.dumps(params)), self.context)
        output.content.encode("utf-8")
        return output.content

    async def glob(self, pattern: str, path: str = "") -> list[str]:
        return (await self.call("glob", pattern=pattern, path=path)).split("\n")


@pytest.fixture
def desk(context: ToolContext) -> Desk:
    return Desk(context)


def plant(root: Path, files: dict[str, str]) -> None:
    """Files with these contents, each of them older than the one before."""
    for age, (name, content) in enumerate(files.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        os.utime(root / name, (1_700_000_000 - age, 1_700_000_000 - age))


# ── glob ──


async def test_the_newest_files_come_first(desk: Desk, root: Path) -> None:
    plant(root, {"b.py": "", "src/c.py": "", "a.py": "", "x.txt": "", ".hidden.py": ""})
    assert await desk.glob("*.py") == ["b.py", "src/c.py", "a.py", ".hidden.py"]
    assert await desk.glob("./*.py") == ["b.py", "a.py", ".hidden.py"]
    assert await desk.glob("src/*.py") == ["src/c.py"]
    assert await desk.glob("*.py", "src") == ["src/c.py"]
    assert await desk.glob(f"{root}/**/c.*") == ["src/c.py"]
    assert await desk.glob("src/../*.{txt,md}") == ["x.txt"]
    assert await desk.glob("src/c.py") == ["src/c.py"]


async def test_too_many_files_are_counted(desk: Desk, root: Path) -> None:
    for number in range(150):
        (root / f"{number}.py").touch()
    lines = await desk.glob("*.py")
    assert len(lines) == 102
    assert lines[-1] == "These are the newest 100 of 150: give a narrower pattern or path."


async def test_nothing_found_is_said(desk: Desk, root: Path) -> None:
    (root / "src").mkdir()
    assert await desk.glob("*.rs", "src") == ["No file matches *.rs in src."]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "pattern is empty"),
        ("./", "pattern is empty"),
        ("*/../x", r"cannot go up \(\.\.\)"),
        ("src/..", "cannot go up"),
        ("a\0b", "NUL"),
        ("[a", r"has a \[ without its \]"),
        ("{a,b}" * 20, "more than 100 patterns"),
        ("x" * 1001, "length <= 1000"),
        ("missing/*.py", "missing is not a directory"),
        ("/proc/*", "no files on a disk"),
    ],
)
async def test_patterns_that_cannot_be_used(desk: Desk, root: Path, pattern: str, message: str) -> None:
    with pytest.raises(ToolFailed, match=message):
        await desk.glob(pattern)


async def test_a_pattern_with_braces_that_go_up_finds_nothing_outside(desk: Desk, root: Path) -> None:
    (root.parent / "secret.txt").touch()
    (root / "in").mkdir()
    assert await desk.glob("in/{..,.}/{..,.}/*.txt") == ["No file matches in/{..,.}/{..,.}/*.txt in in."]


@pytest.mark.parametrize(
    ("pattern", "path", "subject", "inside"),
    [
        ("**/*.py", "", "", True),
        ("src/**", "", "src", True),
        ("../**/*.py", "", "..", False),
        ("src/../../**", "", "..", False),
        ("/etc/*.conf", "", "/etc", False),
        ("*.conf", "/etc", "/etc", False),
        ("out/*", "", "/etc", False),
        ("~/*", "", "~", False),
    ],
)
def test_the_intent_is_about_where_a_pattern_begins(
    desk: Desk, root: Path, pattern: str, path: str, subject: str, inside: bool
) -> None:
    (root / "out").symlink_to("/etc")
    params = GlobParams(pattern=pattern, path=path)
    intent = desk.tools["glob"].intent(params, desk.context)
    assert (intent.tool, intent.action, intent.harmless) == ("glob", "list", inside)
    assert intent.subject == str((root / Path(subject).expanduser()).resolve())
    assert desk.tools["glob"].preview(params, desk.context)["path"] == intent.subject


# ── grep ──


@pytest.fixture(params=["python", "ripgrep"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "ripgrep" and shutil.which("rg") is None:
        pytest.skip("there is no ripgrep here")
    if request.param == "python":
        monkeypatch.setattr("covey.tools.grep.ripgrep", lambda context: None)
    name: str = request.param
    return name


async def test_lines_come_with_numbers_by_file(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {"b.py": "x = 1\r\ndef f():\r\n    x\r\n", "a/c.py": "no\nx\n", "d.txt": "x", "-": "x"})
    text = await desk.call("grep", pattern=r"^\s*x\b.*$")
    assert (
        text == "5 matches in 4 files:\n\nb.py\n  1: x = 1\n  3:     x\n\na/c.py\n  2: x\n\nd.txt\n  1: x\n\n-\n  1: x"
    )
    assert await desk.call("grep", pattern="x", include="*.{py,md}", path="a") == "1 match in 1 file:\n\na/c.py\n  2: x"
    assert await desk.call("grep", pattern="x", include="a/**/*.py") == "1 match in 1 file:\n\na/c.py\n  2: x"
    assert await desk.call("grep", pattern="zzz") == "No matches in 4 files."
    assert await desk.call("grep", pattern="no", path="a/c.py") == "1 match in 1 file:\n\na/c.py\n  1: no"


async def test_context_shows_the_lines_around(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {"a": "".join(f"{number}\n" for number in range(1, 21))})
    assert await desk.call("grep", pattern="^(4|5|12)$", context=2) == (
        "3 matches in 1 file:\n\na\n  2- 2\n  3- 3\n  4: 4\n  5: 5\n  6- 6\n  7- 7\n"
        "  --\n  10- 10\n  11- 11\n  12: 12\n  13- 13\n  14- 14"
    )


async def test_text_is_taken_as_it_is_if_asked(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {"a": "f(x)[0]\nfx0\n"})
    assert await desk.call("grep", pattern="f(x)[", literal=True) == "1 match in 1 file:\n\na\n  1: f(x)[0]"
    assert await desk.call("grep", pattern="--f", literal=True) == "No matches in 1 file."


async def test_matches_are_bounded_and_the_newest_count(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {f"{number}.txt": "hit\n" * 60 for number in range(5)})
    text = await desk.call("grep", pattern="hit", context=1)
    assert text.startswith("100 matches in 2 files:\n\n0.txt\n  1: hit\n")
    assert "  40: hit\n\nThese are the first 100 matches, there are more: " in text
    assert text.count("  41") == 1  # in the first file only
    plant(root, {"exactly": "only\n" * 100})
    assert "more" not in await desk.call("grep", pattern="only")


async def test_many_files_are_searched_in_batches(desk: Desk, root: Path, engine: str) -> None:
    (root / "sub").mkdir()
    for number in range(3000):
        (root / f"sub/{'n' * 40}{number}.txt").write_text("needle" if number % 1000 == 7 else "hay")
    text = await desk.call("grep", pattern="needle")
    assert text.startswith("3 matches in 3 files:")
    assert await desk.call("grep", pattern="nothing") == "No matches in 3000 files."


async def test_long_lines_are_cut(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {"a": "é" * 500 + "\n" + "é" * 501 + "\n" + "é" * 1_000_000})
    lines = (await desk.call("grep", pattern="é")).split("\n")[3:]
    assert lines == [
        f"  1: {'é' * 500}",
        f"  2: {'é' * 500} [... the line goes on]",
        f"  3: {'é' * 500} [... the line goes on]",
    ]


async def test_what_is_no_text_is_left_out(desk: Desk, root: Path, engine: str) -> None:
    (root / "binary").write_bytes(b"word\n\0\nword\n")
    (root / "latin").write_bytes(b"caf\xe9 word\n")
    (root / os.fsdecode(b"n\xe9me")).write_text("word")
    (root / "two\nlines").write_text("word")
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("/etc/passwd")
    (root / "secret").symlink_to(root / "latin")
    with (root / "huge").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    text = await desk.call("grep", pattern="word|root:")
    assert sorted(text.split("\n\n")) == sorted(
        [
            "2 matches in 2 files:",
            "latin\n  1: caf� word",
            "n?me\n  1: word",
            "1 files of more than 16 MB were left out; use bash for them.",
        ]
    )


async def test_ignored_files_are_left_out_unless_named(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {".gitignore": "*.log\nout/\n", "a.log": "word", "out/b": "word", "c": "word", ".env": "word"})
    assert await desk.call("grep", pattern="word") == "2 matches in 2 files:\n\nc\n  1: word\n\n.env\n  1: word"
    assert await desk.call("grep", pattern="word", path="a.log") == "1 match in 1 file:\n\na.log\n  1: word"
    assert await desk.call("grep", pattern="word", path="out") == "1 match in 1 file:\n\nout/b\n  1: word"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pattern": "f("}, "not a valid regular expression: missing ), unterminated subpattern at position 1"),
        ({"pattern": "["}, "not a valid regular expression: unterminated character set"),
        ({"pattern": "(" * 900}, "For plain text, set `literal`."),
        ({"pattern": ""}, "pattern is empty"),
        ({"pattern": "a\nb"}, "cannot have a line break"),
        ({"pattern": r"a\nb"}, "cannot have a line break"),
        ({"pattern": "a\0b"}, "NUL"),
        ({"pattern": "x" * 1001}, "length <= 1000"),
        ({"pattern": "x", "context": 11}, "<= 10"),
        ({"pattern": "x", "include": "[a"}, "cannot be used"),
        ({"pattern": "x", "path": "missing"}, "missing does not exist"),
        ({"pattern": "x", "path": "fifo"}, "not a regular file"),
        ({"pattern": "x", "path": "/dev/zero"}, "no files on a disk"),
        ({"pattern": "x", "path": "a\0b"}, "leads nowhere"),
    ],
)
async def test_searches_that_cannot_be_made(
    desk: Desk, root: Path, engine: str, params: dict[str, Any], message: str
) -> None:
    os.mkfifo(root / "fifo")
    with pytest.raises(ToolFailed) as caught:
        await desk.call("grep", **params)
    assert message in str(caught.value)


async def test_an_escaped_backslash_before_an_n_is_no_line_break(desk: Desk, root: Path, engine: str) -> None:
    plant(root, {"a": "x\\name\n"})
    assert "1 match" in await desk.call("grep", pattern=r"x\\name")


async def test_a_pattern_that_takes_forever_is_ended(
    desk: Desk, root: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {"new": "b\n", "old": "a" * 60 + "\n"})
    text = ""
    for bound in (1.0, 3.0, 9.0, 27.0):  # a machine may be so busy that the search has not begun after a second
        monkeypatch.setattr(search, "SEARCH_S", bound)
        with contextlib.suppress(ToolFailed):
            text = await desk.call("grep", pattern=f"{CATASTROPHIC}|^b")
            break
    assert text == (
        "1 match in 1 file:\n\nnew\n  1: b\n\n"
        "The search took too long and was ended early: give a narrower path, or a simpler pattern."
    )
    with pytest.raises(ToolFailed, match=r"Nothing was found in time\."):
        await desk.call("grep", pattern=CATASTROPHIC)


async def test_a_cancel_ends_the_search_before_it_goes_on(desk: Desk, root: Path, tag: str) -> None:
    plant(root, {"a": "a" * 60 + "\n"})
    task = asyncio.create_task(desk.call("grep", pattern=CATASTROPHIC))
    await until(lambda: carriers(tag) != [])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert carriers(tag) == []


def test_a_ripgrep_out_of_the_workspace_is_never_run(
    context: ToolContext, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "bin").mkdir()
    (root / "bin/rg").write_text("#!/bin/sh\n")
    (root / "bin/rg").chmod(0o755)
    monkeypatch.chdir(root / "bin")
    for path in (str(root / "bin"), ".", ""):
        monkeypatch.setenv("PATH", path)
        assert ripgrep(context) is None
    monkeypatch.setenv("PATH", ".")
    assert ripgrep(replace(context, root=root / "elsewhere")) is None  # it depends on where the server happens to be
    monkeypatch.setenv("PATH", str(root / "bin"))
    assert ripgrep(replace(context, root=root / "elsewhere")) == str(root / "bin/rg")


async def test_a_ripgrep_that_does_not_work_is_done_without(
    desk: Desk, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, {"a": "word"})
    (tmp_path / "rg").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert await desk.call("grep", pattern="word") == "1 match in 1 file:\n\na\n  1: word"


# ── ls ──


async def test_a_tree_shows_what_is_there(desk: Desk, root: Path) -> None:
    plant(root, {"b/c/d/e.txt": "", "b/a.txt": "", "z.txt": "", ".gitignore": "ignored\n", "ignored": ""})
    (root / "link").symlink_to("b")
    (root / os.fsdecode(b"n\xe9\n")).touch()
    os.mkfifo(root / "fifo")
    assert await desk.call("ls") == (
        "./\n  .gitignore\n  b/\n    a.txt\n    c/\n      d/ ...\n"
        "  fifo (not a regular file)\n  link -> b\n  n??\n  z.txt"
    )
    assert await desk.call("ls", path="b", depth=1) == "b/\n  a.txt\n  c/ ..."
    assert await desk.call("ls", path="b/c", depth=50) == "b/c/\n  d/\n    e.txt"


async def test_a_large_tree_is_cut_where_it_is_deep(desk: Desk, root: Path) -> None:
    (root / "a").mkdir()
    for number in range(1200):
        (root / f"a/{number:04}").touch()
    (root / "z").touch()
    lines = (await desk.call("ls")).split("\n")
    assert lines[:3] == ["./", "  a/", "    0000"]
    assert lines[-3:] == ["  z", "", "There is more: these are the 1000 nearest. List a directory of it."]
    assert len(lines) == 1003


async def test_directories_that_are_none(desk: Desk, root: Path) -> None:
    (root / "file").touch()
    (root / "empty").mkdir()
    assert await desk.call("ls", path="empty") == "empty is empty, or all in it is ignored."
    for path, message in {
        "file": "is not a directory",
        "missing": "is not a directory",
        "x" * 300: "is not a directory",
        "/sys": "no files",
    }.items():
        with pytest.raises(ToolFailed, match=message):
            await desk.call("ls", path=path)


def test_where_somebody_is_asked(desk: Desk, root: Path, tmp_path: Path) -> None:
    for path, inside in {"": True, "sub": True, "..": False, "/etc": False}.items():
        params = LsParams(path=path)
        assert desk.tools["ls"].intent(params, desk.context).harmless is inside
        described = desk.tools["ls"].describe(params, desk.context)
        assert ("(outside the workspace)" in described) is not inside
    spilled = replace(desk.context, spill_dir=tmp_path / "spilled")
    assert desk.tools["ls"].intent(LsParams(path=str(tmp_path / "spilled/x")), spilled).harmless


# ── the process ──


async def test_calls_run_side_by_side(desk: Desk, root: Path) -> None:
    plant(root, {"a.py": "word"})
    calls = [desk.call("grep", pattern="word"), desk.glob("*.py"), desk.call("ls")]
    found, names, tree = await asyncio.gather(*calls)
    assert (names, tree) == (["a.py"], "./\n  a.py") and "1: word" in found


async def test_a_process_that_fails_says_why(desk: Desk, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_START", "raise SystemExit('no luck')")
    with pytest.raises(ToolFailed, match="The search failed: no luck"):
        await desk.call("ls")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToolFailed, match="could not be started"):
        await desk.call("ls")


async def test_nothing_of_the_workspace_is_imported_or_run(desk: Desk, root: Path, tmp_path: Path) -> None:
    for name in ("json.py", "re.py", "sitecustomize.py", "covey.py", "os.py"):
        (root / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (root / ".rgrc").write_text("--pre=touch\n")
    env = {**desk.context.env, "PYTHONPATH": str(root), "PYTHONSTARTUP": str(root / "re.py")}
    desk.context = replace(desk.context, env=env)
    assert "json.py" in await desk.call("ls")
    assert not (tmp_path / "ran").exists()
