"""What is found on a machine: programs, caches and repositories, and never the home as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.sandbox.facts import gather
from covey.sandbox.policy import Facts, is_within
from tests.sandbox.conftest import Place


def found(place: Place, **env: str) -> Facts:
    return gather(place.root, place.temp, {**place.env, **env}, [place.own])


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.mark.anyio
async def test_neither_the_home_nor_what_is_above_it_becomes_readable(place: Place) -> None:
    program(place.home / "bin" / "tool")
    (place.home / "lib").mkdir()
    program(place.home / ".local" / "bin" / "tool")
    (place.home / ".local" / "lib").mkdir()
    facts = found(place, PATH=f"{place.home}/bin:{place.home}/.local/bin:{place.home}:/:/usr/bin")
    assert f"{place.home}/bin" in facts.system and f"{place.home}/.local/bin" in facts.system
    trees = (*facts.system, *facts.settings, *facts.git_settings, *facts.tool_settings, *facts.caches)
    assert not [tree for tree in trees if is_within(str(place.home), tree) or is_within(str(place.own), tree)]


@pytest.mark.anyio
async def test_an_installation_elsewhere_is_found_by_path(place: Place) -> None:
    program(place.outside / "tools" / "bin" / "tool")
    (place.outside / "tools" / "lib").mkdir()
    assert f"{place.outside}/tools" in found(place, PATH=f"{place.outside}/tools/bin").system


@pytest.mark.anyio
async def test_programs_of_the_workspace_are_not_taken_for_the_system_s(place: Place) -> None:
    program(place.root / "bin" / "ls")
    facts = found(place, PATH=f"{place.root}/bin:/usr/bin")
    assert not [tree for tree in facts.system if is_within(tree, str(place.root))]


@pytest.mark.anyio
async def test_caches_are_those_of_programs_that_are_installed(place: Place) -> None:
    program(place.outside / "bin" / "cargo")
    program(place.outside / "bin" / "npm")
    (place.home / ".cache" / "black").mkdir(parents=True)
    caches = found(place, PATH=f"{place.outside}/bin").caches
    assert {f"{place.home}/{name}" for name in (".npm", ".cargo/registry", ".cargo/git", ".cache/black")} <= set(caches)
    assert f"{place.home}/.cargo" not in caches and f"{place.home}/go/pkg" not in caches


@pytest.mark.anyio
async def test_a_variable_moves_a_cache(place: Place) -> None:
    program(place.outside / "bin" / "go")
    caches = found(place, PATH=f"{place.outside}/bin", GOCACHE=f"{place.outside}/gc", XDG_CACHE_HOME="/nowhere").caches
    assert f"{place.outside}/gc" in caches
    assert str(place.home) not in found(place, GOCACHE=str(place.home)).caches


@pytest.mark.anyio
async def test_passwords_of_git_are_not_part_of_its_settings(place: Place) -> None:
    (place.home / ".gitconfig").write_text("[include]\npath = ~/.git-credentials\n[include]\npath = ~/more\n")
    (place.home / ".git-credentials").write_text("https://ann:secret@example.org\n")
    (place.home / "more").write_text("")
    assert found(place).git_settings == (f"{place.home}/.gitconfig", f"{place.home}/more")


@pytest.mark.anyio
async def test_a_repository_has_its_parts(place: Place) -> None:
    git = f"{place.root}/.git"
    repository = found(place).repository
    assert repository.git_dirs == (git,)
    assert {f"{git}/config", f"{git}/hooks", f"{git}/commondir"} <= set(repository.protected)


@pytest.mark.anyio
async def test_submodules_are_protected_too(place: Place) -> None:
    module = place.root / ".git" / "modules" / "deep" / "one"
    place.git("init", "-q", "--bare", str(module))
    assert f"{module}/config" in found(place).repository.protected


@pytest.mark.anyio
async def test_a_directory_below_a_repository_has_that_one(place: Place) -> None:
    place.root = place.root / "src"
    assert found(place).repository.git_dirs == (f"{place.root.parent}/.git",)
