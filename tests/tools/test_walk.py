"""The walk: what ignore files leave out, compared with git itself, and trees that mean harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covey.tools import ignores
from covey.tools.walk import Walk

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")


def files(base: Path, top: Path | None = None) -> list[str]:
    return sorted("/".join(found.parts) for found in Walk(str(base), str(top or base)) if not found.is_directory)


def plant(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_hidden_files_are_found_and_histories_are_not(root: Path) -> None:
    plant(root, ".env", ".github/ci.yml", ".git/config", "a/.git/config", ".hg/x", "node_modules/m/i.js", "b/c.py")
    plant(root, "src/__pycache__/x.pyc")
    assert files(root) == [".env", ".github/ci.yml", "b/c.py"]
    assert files(root / "node_modules") == ["m/i.js"]


def test_nested_rules_overrule_and_the_nearest_counts(root: Path) -> None:
    plant(
        root, "a.log", "keep.log", "sub/a.log", "sub/b.tmp", "sub/deep/c.log", "build/x", "src/build/y", "other/build"
    )
    (root / ".gitignore").write_text("*.log\n!keep.log\n/build/\n# comment\n\nbuild/\n")
    (root / "sub/.gitignore").write_text("!a.log\n*.tmp\n")
    assert files(root) == [".gitignore", "keep.log", "other/build", "sub/.gitignore", "sub/a.log"]


def test_rules_of_ripgrep_overrule_those_of_git(root: Path) -> None:
    plant(root, "a.log", "b.txt", "sub/c.log")
    (root / "sub/.gitignore").write_text("*.log\n")
    (root / ".ignore").write_text("b.txt\n!*.log\n")
    assert files(root) == [".ignore", "a.log", "sub/.gitignore", "sub/c.log"]


def test_rules_above_the_start_count(root: Path) -> None:
    plant(root, "src/a.py", "src/a.log", "src/gen/b.py", "src/deep/gen/c.py")
    (root / ".gitignore").write_text("*.log\n/src/gen\n")
    assert files(root / "src", root) == ["a.py", "deep/gen/c.py"]
    assert files(root / "src", root / "src") == ["a.log", "a.py", "deep/gen/c.py", "gen/b.py"]  # another workspace
    (root / ".git").mkdir()
    assert files(root / "src", root / "src") == ["a.py", "deep/gen/c.py"]  # in the same repository


def test_an_ignored_directory_that_is_named_is_walked(root: Path) -> None:
    plant(root, ".git/config", "build/a.o", "build/sub/b.log", ".venv/lib/c.py", ".venv/lib/deep/d.py", "src/e.py")
    (root / ".gitignore").write_text("build/**\n*.log\n")
    (root / ".venv/.gitignore").write_text("*\n")
    assert files(root) == [".gitignore", "src/e.py"]
    assert files(root / "build", root) == ["a.o", "sub/b.log"]
    assert files(root / ".venv", root) == [".gitignore", "lib/c.py", "lib/deep/d.py"]
    assert files(root / ".venv/lib", root) == ["c.py", "deep/d.py"]


def test_exceptions_of_a_repository_that_ignores_everything_count(root: Path) -> None:
    plant(root, ".git/config", "src/a.py", "src/a.txt", "project/b.py", "project/b.txt", "project/sub/c.py")
    (root / ".gitignore").write_text("*\n!*.py\n!src/\n")
    assert files(root) == ["src/a.py"]
    assert files(root / "src", root) == ["a.py"]
    assert files(root / "project", root / "project") == ["b.py", "b.txt", "sub/c.py"]  # a workspace in it, ignored


def test_a_repository_in_another_has_rules_of_its_own(root: Path) -> None:
    plant(root, "a.log", "inner/.git/info/exclude", "inner/a.log", "inner/b.txt")
    (root / ".gitignore").write_text("*.log\n")
    (root / "inner/.git/info/exclude").write_text("b.txt\n")
    assert files(root) == [".gitignore", "inner/a.log"]


NAMES = st.sampled_from(["a", "b", "c.x", ".d", "e f"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", "*.x", "*", "**", "/", "!", "?", ".d", "[ab]", "[!a]", "e f", " ", "\\a", "#", "e\\ f", "."]
)
RULES = st.lists(st.lists(PIECES, min_size=1, max_size=5).map("".join), max_size=4).map("\n".join)


@needs_git
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sets(PATHS, min_size=1, max_size=8), RULES, RULES)
def test_git_leaves_out_the_same_files(paths: set[str], outer: str, inner: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        for path in sorted(paths):
            if not any(parent.is_file() for parent in (root / path).parents) and not (root / path).exists():
                plant(root, path)
        (root / ".gitignore").write_text(outer)
        if (root / "a").is_dir():
            (root / "a/.gitignore").write_text(inner)
        env = {"PATH": os.environ["PATH"], "HOME": directory, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "-q"], cwd=root, env=env, check=True)
        command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, env=env, check=True, capture_output=True).stdout.decode()
        assert files(root) == sorted(filter(None, listed.split("\0")))


# ── trees that mean harm ──


def test_links_are_told_of_and_never_followed(root: Path) -> None:
    plant(root, "sub/a")
    (root / "sub/loop").symlink_to("..")
    (root / "out").symlink_to("/etc")
    (root / "self").symlink_to("self")
    assert files(root) == ["out", "self", "sub/a", "sub/loop"]


@pytest.mark.parametrize("kind", ["fifo", "endless", "loop", "directory", "unreadable"])
def test_an_ignore_file_that_is_none_is_not_read(root: Path, kind: str) -> None:
    plant(root, "a")
    path = root / ".gitignore"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(".gitignore")
        case "directory":
            path.mkdir()
        case "unreadable":
            path.write_text("\n")
            path.chmod(0)
    assert "a" in files(root)


def test_a_huge_ignore_file_costs_a_bounded_time(root: Path) -> None:
    plant(root, *(f"d/{number}" for number in range(200)))
    (root / ".gitignore").write_text("*a*a*a*a*b\n" * 100_000 + "**/a/**/b/**/c\n" * 1000 + "x" * 2000 + "\n")
    began = time.monotonic()
    assert len(files(root)) == 201
    assert time.monotonic() - began < 60
    (root / ".gitignore").write_bytes(b"\xef\xbb\xbfd\n\xff\xfe\0\n[\n\\\n")
    assert files(root) == [".gitignore"]
    assert ignores.parse("x" * 10) is not None


def test_only_so_many_rules_are_kept_and_the_last_ones_count() -> None:
    lines = ["first", *(f"rule{number}" for number in range(ignores.RULES_LIMIT - 1)), "last"]
    file = ignores.IgnoreFile("\n".join(lines), 0)
    assert [file.ignores((name,), is_directory=False) for name in ("first", "rule0", "last")] == [None, True, True]


def test_names_that_are_no_text_are_found(root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9")).mkdir()
    (root / os.fsdecode(b"caf\xe9/\xff\n")).touch()
    assert [os.fsencode(name) for name in files(root)] == [b"caf\xe9/\xff\n"]


def test_a_directory_that_cannot_be_read_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, "open/a", "closed/b")
    real = os.open

    def guarded(path: str, *arguments: int) -> int:
        if str(path).endswith("closed"):  # a mode would not keep root out
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", guarded)
    walk = Walk(str(root), str(root))
    assert ["/".join(found.parts) for found in walk] == ["closed", "open", "open/a"]
    assert walk.unreadable == 1


def test_a_tree_that_changes_meanwhile(root: Path) -> None:
    plant(root, "a/x", "b/y", "c/z", "d")
    walk = Walk(str(root), str(root))
    seen = []
    for found in walk:
        seen.append("/".join(found.parts))
        if seen == ["a"]:
            shutil.rmtree(root / "a")
            shutil.rmtree(root / "b")
            (root / "b").symlink_to("/etc")
            shutil.rmtree(root / "c")
            os.mkfifo(root / "c")
    assert seen == ["a", "b", "c", "d"]


def test_a_large_tree_is_walked_in_time_and_ends_when_told(root: Path) -> None:
    for outer in range(50):
        (root / f"d{outer}").mkdir()
        for inner in range(100):
            (root / f"d{outer}/f{inner}.py").touch()
    (root / ".gitignore").write_text("\n".join(f"*.{suffix}" for suffix in ("log", "tmp", "o", "class", "so", "bak")))
    began = time.monotonic()
    assert len(files(root)) == 5001
    assert time.monotonic() - began < 30
    walk = Walk(str(root), str(root), until=0)
    assert list(walk) == [] and walk.out_of_time


def test_pseudo_files_are_no_place_to_walk() -> None:
    assert list(Walk("/proc", "/")) == []
    assert list(Walk("/", "/", depth=1)) != []


def test_what_is_near_comes_first_and_depth_has_an_end(root: Path) -> None:
    plant(root, "a/b/c/d", "z")
    walk = Walk(str(root), str(root), depth=2)
    assert ["/".join(found.parts) for found in walk] == ["a", "z", "a/b"]
    assert walk.opened == {(), ("a",)}
