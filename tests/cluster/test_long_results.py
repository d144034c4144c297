"""Tools' results that are too long for the model: it reads of them later, at whichever node has the workspace then."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.engine.workspace import Workspace
from tests.cluster.nodes_in_process import TestNode, ended, node_in_process, post
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.postgres import postgres
from tests.support.server import provider_config

pytestmark = pytest.mark.anyio

LINES = "for i in $(seq 9000); do echo line $i; done"


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, model: FakeModel) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(provider_config(model.url, '[permissions]\nallow = ["bash"]'))
    return path


def answer(request: Recorded) -> Reply:
    """A prompt is the name of a tool and its input; the model then says what the tool gave."""
    if request.call_number:
        return Reply(text=request.turns[-1][1])
    name, _, given = request.prompt.partition(" ")
    return Reply(text="", tools=(Call(name=name, input=json.loads(given), id=f"call-{len(request.turns)}"),))


async def said(workspace: Workspace, session_id: str, run_id: str, tool: str, **given: object) -> str:
    """What a tool gave in a run of its own."""
    await post(workspace, session_id, f"{tool} {json.dumps(given)}", run_id)
    assert await ended(workspace, run_id) == "completed"
    messages = await workspace.sessions.messages(session_id, "", 0)
    return next(message.text for message in reversed(messages) if message.role == "assistant")


async def spilled_at(node: TestNode, project: Path, model: FakeModel) -> tuple[Workspace, str, str]:
    """A workspace of the node with a session that has a long result, and where that is."""
    model.on(answer)
    here = await node.open(project)
    session = await here.sessions.create("")
    shown = await said(here, session.id, "r1", "bash", command=LINES)
    (path,) = set(re.findall(r"/\S+/spill/\S+\.txt", shown))
    assert "line 4500\n" not in shown and "line 4500\n" in Path(path).read_text()
    return here, session.id, path


async def test_after_a_takeover_the_model_reads_on(tmp_path: Path, config: Path, model: FakeModel) -> None:
    (project := tmp_path / "project").mkdir()
    url = postgres().new_database()
    async with (
        node_in_process(url, "a", tmp_path / "a", config) as a,
        node_in_process(url, "b", tmp_path / "b", config) as b,
    ):
        here, session_id, path = await spilled_at(a, project, model)
        assert await a.workspaces.hand_over(here.id, 1.0)
        shutil.rmtree(tmp_path / "a" / "spill")  # as if it were another machine's disk
        there = await b.workspaces.get(here.id)
        viewed = await said(there, session_id, "r2", "view", file_path=path, offset=4500, limit=1)
        assert "line 4500" in viewed, viewed
        found = await said(there, session_id, "r3", "grep", pattern="^line 4321$", path=path)
        assert "line 4321" in found, found
        (brought,) = (tmp_path / "b" / "spill").rglob("*.txt")
        assert brought.stat().st_mode & 0o077 == 0, "it holds what the user's files hold"


async def test_it_goes_with_its_session(tmp_path: Path, config: Path, model: FakeModel) -> None:
    (project := tmp_path / "project").mkdir()
    url = postgres().new_database()
    async with node_in_process(url, "a", tmp_path / "a", config) as a:
        here, session_id, path = await spilled_at(a, project, model)
        name = Path(path).name
        assert await a.node.result(here.id, session_id, name) == Path(path).read_bytes()
        await here.sessions.delete(session_id)
        assert await a.node.result(here.id, session_id, name) is None


async def test_of_a_session_the_newest_are_kept(tmp_path: Path, config: Path) -> None:
    async with node_in_process(postgres().new_database(), "a", tmp_path / "a", config) as a:
        for number in range(53):
            await a.node.keep_result("w", "s", f"{number}.txt", b"x")
        kept = [number for number in range(53) if await a.node.result("w", "s", f"{number}.txt")]
        assert kept == list(range(3, 53))
