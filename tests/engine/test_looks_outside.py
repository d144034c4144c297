"""What a command sees outside of the workspace, once somebody has allowed it to look there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.engine.confining import Confining, Permit
from tests.engine.test_confining import allowed, project, pytestmark, ran
from tests.support.engine import running, within

__all__ = ["project", "pytestmark"]  # a fixture and the marks, which are the same here


async def test_who_allows_a_look_outside_lets_it_see_just_that_and_nothing_of_coveys(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, project: Path
) -> None:
    nest = tmp_path_factory.mktemp("nest")
    (nest / "egg").write_text("SPECKLED")
    (tmp_path / "token").write_text("TOKEN")
    async with running(tmp_path, project=project) as engine:
        _, result = await allowed(engine, "a", f"cat {nest}/egg", "allow_session")
        assert "SPECKLED" in result.content and '"policy":"unasked"' in result.metadata
        assert "SPECKLED" in await ran(engine, "b", f"cat {nest}/egg"), "it was allowed for the session"
        _, result = await allowed(engine, "c", f"cat {nest}/egg && touch {nest}/more")
        assert "SPECKLED" not in result.content and os.listdir(nest) == ["egg"], "that does more than look"
        _, result = await allowed(engine, "d", f"cat {tmp_path}/token")
        assert "TOKEN" not in result.content, "the directory of its data"
        await within(engine.workspace.asks.set_skip(True))
        assert "SPECKLED" not in await ran(engine, "e", f"cat {nest}/egg; true"), "yolo names no place"


@pytest.mark.parametrize(
    ("path", "is_shown"), [("~/notes", True), ("~/.ssh/id_rsa", True), ("link", False), ("~/notes/../../link", False)]
)
async def test_a_key_is_shown_only_where_the_line_that_was_allowed_names_it(
    tmp_path: Path, project: Path, path: str, is_shown: bool
) -> None:
    home = tmp_path / "home"
    for name in ("notes/a", ".ssh/id_rsa"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("words")
    for directory in (project, tmp_path):
        (directory / "link").symlink_to(home / ".ssh" / "id_rsa")
    confining = Confining(project, tmp_path / "temp", (), lambda: {"HOME": str(home)}, lambda: "auto")
    named = path if path.startswith("~") else f"{project}/{path}"
    allowed_line = Permit(approved=True, to_the_letter=True)
    confined = await confining.confinement(allowed_line, None, tmp_path / "results", (named,))
    assert bool(confined.also_readable) is is_shown
    await confining.close()
