"""What a session has seen of its files is known after a restart, and what came along with a prompt counts as seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.protocol.messages import Attachment
from covey.protocol.requests import PostPrompt
from tests.support.disk import Disk
from tests.support.engine import Engine, call, config, running, within

pytestmark = pytest.mark.anyio

SETTINGS = config()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.py").write_text("one\ntwo\n")
    return made.resolve()


async def turn(engine: Engine, run_id: str, *calls: tuple[object, ...], **fields: object) -> list[str]:
    """One turn with these calls, each in a step of its own; gives what they resulted in."""
    for words in calls:
        engine.model.answer(*words)  # type: ignore[arg-type]
    engine.model.answer("done")
    request = PostPrompt(session_id=engine.session_id, prompt="go", run_id=run_id, yolo=True, **fields)  # type: ignore[arg-type]
    await within(engine.workspace.runs.post(request))
    await engine.ended(run_id)
    results = [m.tool_results for m in engine.messages() if m.run_id == run_id and m.role == "tool"]
    return [result.content for group in results for result in group]


def view(number: str = "v") -> tuple[object, ...]:
    return call("view", number, file_path="a.py")


def edit(number: str, old: str, new: str) -> tuple[object, ...]:
    return call("edit", number, file_path="a.py", old_string=old, new_string=new)


@pytest.mark.parametrize("first", [view("c1"), edit("c1", "one", "1")], ids=["viewed", "edited"])
async def test_after_a_restart_a_session_may_edit_what_it_had_seen(
    tmp_path: Path, project: Path, first: tuple[object, ...]
) -> None:
    store = Disk()
    async with running(tmp_path, store=store, project=project, settings=SETTINGS) as engine:
        await turn(engine, "r1", view(), first)
        session_id = engine.session_id
    async with running(tmp_path, store=store, project=project, settings=SETTINGS) as engine:
        engine.session_id = session_id
        (result,) = await turn(engine, "r2", edit("c2", "two", "2"))
        assert result.startswith("Edited a.py"), result


async def test_after_a_restart_a_file_that_somebody_changed_has_to_be_viewed_again(
    tmp_path: Path, project: Path
) -> None:
    store = Disk()
    async with running(tmp_path, store=store, project=project, settings=SETTINGS) as engine:
        await turn(engine, "r1", view())
        session_id = engine.session_id
    (project / "a.py").write_text("one\ntwo\nthree\n")
    async with running(tmp_path, store=store, project=project, settings=SETTINGS) as engine:
        engine.session_id = session_id
        (result,) = await turn(engine, "r2", edit("c2", "two", "2"))
        assert "has changed since you last viewed it" in result


def attached(path: str, content: bytes) -> Attachment:
    return Attachment(file_path=path, file_name=os.path.basename(path), mime_type="text/plain", content=content)


async def test_a_file_that_came_along_whole_counts_as_seen(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project, settings=SETTINGS) as engine:
        whole = attached("a.py", (project / "a.py").read_bytes())
        (result,) = await turn(engine, "r1", edit("c1", "two", "2"), attachments=(whole,))
        assert result.startswith("Edited a.py"), result


@pytest.mark.parametrize("path", ["a.py", "../outside.py", "missing.py", "\0"])
async def test_a_part_of_a_file_or_one_elsewhere_does_not(tmp_path: Path, project: Path, path: str) -> None:
    (tmp_path / "outside.py").write_text("one")
    async with running(tmp_path, project=project, settings=SETTINGS) as engine:
        (result,) = await turn(engine, "r1", edit("c1", "two", "2"), attachments=(attached(path, b"one"),))
        assert "you have not viewed it in this session" in result
