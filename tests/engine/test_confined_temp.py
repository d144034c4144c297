"""Temporary files of commands in the sandbox: kept for the workspace, and not where the user would look for them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engine.test_confining import own, pytestmark, ran, results, with_permissions
from tests.support.engine import running

__all__ = ["pytestmark"]


def directory(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


async def test_temporary_files_are_kept_for_the_workspace_and_go_with_it(tmp_path: Path) -> None:
    project = directory(tmp_path)
    async with running(tmp_path, project=project, settings=with_permissions(allow=("bash",))) as engine:
        await ran(engine, "a", "echo kept > $TMPDIR/note")
        assert "kept" in await ran(engine, "b", "touch x; cat $TMPDIR/note")
        assert (tmp_path / "tmp/w/note").exists()
    assert not (tmp_path / "tmp/w").exists()


async def test_what_a_command_writes_to_a_tmp_of_its_own_is_said_not_to_be_the_users(tmp_path: Path) -> None:
    path = f"/tmp/{own('report')}.txt"
    project = directory(tmp_path)
    async with running(tmp_path, project=project, settings=with_permissions(allow=("bash",))) as engine:
        content = await ran(engine, "a", f"echo result > {path} && cat {path}")
        assert "result\n\nexit code 0" in content and not Path(path).exists()
        assert f"the user does not see what is written there: {path}. Files for the user belong" in content
        (result,) = await results(engine, "a")
        assert json.loads(result.metadata)["sandbox"]["unseen"] == [path]
        assert "does not see" not in await ran(engine, "b", f"echo x > {project}/x"), "the workspace is everybody's"
        assert "does not see" not in await ran(engine, "c", f"echo x > {path}", "off"), "and so is /tmp without"
        Path(path).unlink()
