"""Git under an approved command: all of its work is done, and what would make it run programs stays as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from covey.sandbox.policy import approved
from tests.sandbox.conftest import ABLE, WAYS, Place, needs_landlock, use

pytestmark = [pytest.mark.anyio, needs_landlock]

WORK = """set -e
git checkout -q -b topic
echo one > one.txt
git add one.txt
git commit -q -m one
git commit -q --amend -m 'one, again'
git checkout -q main
echo two > two.txt && git add two.txt && git commit -q -m two
git merge -q -m merged topic
git checkout -q topic && echo three > three.txt && git add . && git commit -q -m three
git rebase -q main
echo stashed >> a.txt && git stash -q && git stash pop -q && git checkout -q -- a.txt
git tag v1
git fetch -q file://{remote} main:refs/remotes/origin/main
git push -q file://{remote} topic v1
git worktree add -q ../project/linked main~1 2>&1
git -C linked log --oneline -1
git worktree remove linked
git gc -q
git cherry-pick main~1 > /dev/null 2>&1 || git cherry-pick --abort
git reset -q --hard HEAD~1
git clean -fdq
git log --oneline | wc -l
"""


async def test_all_of_git_s_work_is_done(place: Place, way: str) -> None:
    remote = place.outside / "remote.git"
    place.git("init", "-q", "--bare", "-b", "main", str(remote))
    place.git("push", "-q", f"file://{remote}", "main")
    policy = approved(place.facts(), also_writable=[str(remote)])
    completed = await place.run(WORK.format(remote=remote), policy)
    assert completed.exit_code == 0, completed.output
    assert completed.put_back == ()
    assert "topic" in place.git("ls-remote", str(remote))


CHANGES = {
    "configuration": "printf '[core]\\nfsmonitor = touch pwned\\n' >> .git/config",
    "configuration by git": "git config core.fsmonitor 'touch pwned'",
    "configuration by renaming": "cp .git/config c && echo '[a]' >> c && mv c .git/config",
    "hook": "printf '#!/bin/sh\\ntouch pwned\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "hooks replaced": "mv .git/hooks .git/h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
    "hooks deleted": "rm -rf .git/hooks",
    "another common directory": "cp -r .git ../evil 2> /dev/null || cp -r .git evil; echo ../evil > .git/commondir",
    "our configuration": "echo '[permissions]' > covey.toml",
    "our directory": "mkdir .covey; echo x > .covey/x",
}


def state(place: Place) -> dict[str, object]:
    """Everything by which git or Covey could be made to run something."""
    watched = [place.root / ".git" / "config", place.root / ".git" / "commondir", place.root / "covey.toml"]
    hooks = sorted((place.root / ".git" / "hooks").glob("*"))
    active = [path for path in (*watched, *hooks) if path.exists() and path.suffix != ".set-aside"]
    return {str(path): (path.read_bytes(), path.stat().st_mode) for path in active} | {
        "covey": (place.root / ".covey").exists()
    }


@pytest.mark.parametrize("name", [*CHANGES])
async def test_what_makes_git_or_covey_run_programs_stays(place: Place, way: str, name: str) -> None:
    before = state(place)
    await place.run(CHANGES[name], approved(place.facts()))
    assert state(place) == before
    await place.run(CHANGES[name], None)
    assert state(place) != before, "it is not changed without the sandbox either"


async def test_the_directory_of_git_is_not_replaced(place: Place, way: str) -> None:
    await place.run(
        "mv .git old; mkdir .git; cp -r old/* .git; echo x > .git/hooks/pre-commit", approved(place.facts())
    )
    assert not (place.root / ".git" / "hooks" / "pre-commit").exists()


async def test_what_was_put_back_is_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, WAYS["landlock"])
    completed = await place.run("echo '[a]' >> .git/config; echo x > covey.toml", approved(place.facts()))
    assert set(completed.put_back) == {str(place.root / ".git" / "config"), str(place.root / "covey.toml")}
    assert (place.root / "covey.toml.set-aside").read_text() == "x\n"


async def test_the_configuration_is_changed_if_that_was_allowed(place: Place, way: str) -> None:
    policy = approved(place.facts(), unprotected=[str(place.root / ".git" / "config")])
    completed = await place.run("git config user.name Somebody", policy)
    assert completed.exit_code == 0, completed.output
    assert "Somebody" in (place.root / ".git" / "config").read_text()


async def test_a_work_tree_that_points_to_its_repository_elsewhere(place: Place, way: str) -> None:
    main, linked = place.root, place.home / "linked"
    place.git("worktree", "add", "-q", str(linked))
    place.root = linked
    completed = await place.run(
        "echo x > x && git add x && git commit -q -m x && echo 'gitdir: /e' > .git", approved(place.facts())
    )
    assert "x" in place.git("log", "--oneline", "-1")
    assert (linked / ".git").read_text() == f"gitdir: {main}/.git/worktrees/linked\n", completed.output


async def test_a_clone_cannot_name_somebody_else_s_repository(place: Place) -> None:
    other = place.outside / "other"
    place.git("init", "-q", str(other))
    clone = place.home / "clone"
    clone.mkdir()
    (clone / ".git").write_text(f"gitdir: {other}/.git\n")
    place.root = clone
    assert place.facts().repository.git_dirs == ()


async def test_an_old_kernel_still_keeps_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in range(1, min(ABLE.landlock, 6)):
        use(monkeypatch, replace(ABLE, landlock=version))
        policy = approved(place.facts())
        done = await place.run(f"echo {version} > made; cat made; cat {place.outside}/secret.txt", policy)
        assert done.output.startswith(f"{version}\n") and "CANARY" not in done.output
        assert not Path(place.outside, "made").exists()
