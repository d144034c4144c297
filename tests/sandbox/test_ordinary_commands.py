"""Commands that only look give the same inside and outside of the sandbox."""

from __future__ import annotations

import sys

import pytest

from covey.sandbox.policy import unasked
from tests.sandbox.conftest import Place, needs_landlock

pytestmark = [pytest.mark.anyio, needs_landlock]

COMMANDS = [
    "ls -la",
    "ls -R",
    "cat a.txt src/main.py",
    "head -1 a.txt; tail -1 a.txt",
    "wc -l a.txt",
    "stat -c %s a.txt",
    "file a.txt",
    "du -sb src",
    "grep -rn alpha .",
    "find . -name '*.py' -not -path './.git/*'",
    "find . -name '*.py' -exec wc -l {} +",
    "sed -n 1p a.txt",
    "awk '{print NR, $0}' a.txt",
    "sort -r a.txt | uniq -c | cut -c1-20",
    "diff <(sort a.txt) <(sort -r a.txt)",
    "sha256sum a.txt",
    "cat <<< hello",
    "cat << END\nhello\nEND",
    "echo one > /dev/null; echo two >&2; echo $((1 + 2))",
    "yes | head -1",
    "date -u -d @0",
    "git status",
    "git status --short",
    "git log --oneline --stat",
    "git diff; git diff HEAD",
    "git show --stat HEAD",
    "git blame a.txt",
    "git branch -a; git tag; git stash list",
    "git ls-files -s",
    "git grep alpha",
    "timeout 5 ls; nice ls; env | grep -c HOME",
    "id -un; whoami; uname -s; nproc",
    "python3 -c 'print(1 + 1)'",
    f"'{sys.executable}' -c 'import sys, json; print(sys.version)'",
    f"'{sys.executable}' -m pytest --version",
    "bash -c 'echo nested; exit 3'",
    "no-such-program",
    "exit 7",
    "kill -9 $$",
]


@pytest.mark.parametrize("command", COMMANDS)
async def test_it_gives_the_same(place: Place, command: str) -> None:
    (place.root / "a.txt").write_text("alpha\nbeta\nchanged\n")
    bare = await place.run(command, None)
    assert await place.run(command, unasked(place.facts())) == bare
    assert bare.exit_code is not None


async def test_in_a_linked_work_tree(place: Place) -> None:
    linked = place.home / "linked"
    place.git("worktree", "add", "-q", str(linked))
    place.root = linked
    bare = await place.run("git status; git log --oneline; git diff HEAD~0", None)
    assert "nothing to commit" in bare.output
    assert await place.run("git status; git log --oneline; git diff HEAD~0", unasked(place.facts())) == bare


async def test_with_the_user_s_own_configuration_of_git(place: Place) -> None:
    (place.home / ".gitconfig").write_text("[core]\nexcludesFile = ~/.ignore\n[include]\npath = ~/.more\n")
    (place.home / ".ignore").write_text("*.log\n")
    (place.home / ".more").write_text("[alias]\nst = status --short\n")
    (place.root / "x.log").touch()
    (place.root / "y.txt").touch()
    completed = await place.run("git st; git config user.nobody; cat ~/.git-credentials", unasked(place.facts()))
    assert completed.output.startswith("?? y.txt\n")


async def test_without_a_repository_or_a_home(place: Place) -> None:
    place.root = place.outside
    place.env = {"PATH": place.env["PATH"]}
    completed = await place.run("cat secret.txt", unasked(place.facts()))
    assert completed.output == "CANARY-OUTSIDE\n"
