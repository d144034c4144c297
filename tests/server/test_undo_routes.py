"""Undo and fork over HTTP: what they answer, and how they refuse."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from covey.protocol.requests import PostPrompt
from covey.tools.base import FileVersion, ToolOutput
from tests.server.site import Site, serving
from tests.support.disk import BOUND_S
from tests.support.engine import Gate, call, within

pytestmark = pytest.mark.anyio


async def talked(site: Site, *texts: str) -> tuple[str, str]:
    """The address of a session with a turn for each text, which gives it to a file; and the last run's id."""
    workspace = await site.workspace()
    session = await workspace.sessions.create("talk")
    path, run_id = Path(workspace.path) / "a.py", ""
    for text in texts:

        async def act(text: str = text) -> ToolOutput:
            before = path.read_bytes() if path.exists() else None
            path.write_text(text)
            return ToolOutput("written", files=(FileVersion(path, before, text.encode()),))

        site.tool.act = act
        site.model.answer(*call(subject=text))
        run_id = (await workspace.runs.post(PostPrompt(session_id=session.id, prompt=text))).run_id
        assert (await within(workspace.runs.get(run_id, BOUND_S))).ended
    return f"/v1/workspaces/{workspace.id}/sessions/{session.id}", run_id


async def messages(site: Site, session: str) -> list[Any]:
    found: list[Any] = (await site.request("GET", f"{session}/messages")).value
    return found


async def test_a_turn_is_undone(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, run_id = await talked(site, "one", "two")
        answer = await site.request("POST", f"{session}/undo")
        path = str(tmp_path.resolve() / "a.py")
        undone = [{"run_id": run_id, "prompt": "two"}]
        assert answer.value == {"undone": undone, "restored": [path], "removed_messages": 4}
        assert Path(path).read_text() == "one"
        assert len(await messages(site, session)) == 4
        again = await site.request("POST", f"{session}/undo", {"keep_files": True})
        assert (again.value["restored"], Path(path).read_text()) == ([], "one")


async def test_a_session_is_forked(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, _ = await talked(site, "one", "two")
        listed = await messages(site, session)
        answer = await site.request("POST", f"{session}/fork", {"message_id": listed[3]["id"], "title": "other"})
        assert (answer.status, answer.value["message_count"], answer.value["title"]) == (200, 4, "other")
        assert answer.value["forked_from"] == session.rpartition("/")[2]
        copies = await messages(site, f"{session.rpartition('/')[0]}/{answer.value['id']}")
        assert [m["parts"] for m in copies] == [m["parts"] for m in listed[:4]]
        assert (await site.request("POST", f"{session}/fork")).value["message_count"] == 8


async def test_refusals_have_a_code(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, run_id = await talked(site, "one")
        elsewhere = session.rpartition("/")[0]
        (tmp_path / "a.py").write_text("by hand")
        empty = f"{elsewhere}/{(await site.request('POST', elsewhere)).value['id']}"
        for path, body, status, code in [
            (f"{session}/undo", None, 409, "undo_conflict"),
            (f"{session}/undo", {"run_id": "nobody"}, 404, "run_not_found"),
            (f"{session}/undo", {"run_id": 7}, 400, "invalid_request"),
            (f"{session}/undo", {"force_files": "a.py"}, 400, "invalid_request"),
            (f"{empty}/undo", {"run_id": run_id}, 404, "run_not_found"),
            (f"{empty}/undo", {}, 409, "nothing_to_undo"),
            (f"{elsewhere}/nobody/undo", {}, 404, "session_not_found"),
            (f"{elsewhere}/nobody/fork", {}, 404, "session_not_found"),
            (f"{session}/fork", {"message_id": "nobody"}, 404, "message_not_found"),
        ]:
            answer = await site.request("POST", path, body)
            assert (answer.status, answer.code) == (status, code), path
        assert (tmp_path / "a.py").read_text() == "by hand"
        forced = await site.request("POST", f"{session}/undo", {"force_files": ["a.py"]})
        assert (forced.status, (tmp_path / "a.py").exists()) == (200, False)


async def test_a_busy_session_is_not_undone(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, _ = await talked(site, "one")
        gate = Gate()
        site.model.answer("busy", gate)
        workspace = await site.workspace()
        prompt = PostPrompt(session_id=session.rpartition("/")[2], prompt="more")
        run_id = (await workspace.runs.post(prompt)).run_id
        await gate.reached()
        answer = await site.request("POST", f"{session}/undo")
        assert (answer.status, answer.code) == (409, "session_busy")
        gate.open()
        assert (await within(workspace.runs.get(run_id, BOUND_S))).ended
        assert (await site.request("POST", f"{session}/undo")).value["undone"][0]["prompt"] == "more"


async def test_no_prompt_gets_in_while_a_turn_is_undone(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, _ = await talked(site, "one")
        site.store.hold()
        undo = asyncio.create_task(site.request("POST", f"{session}/undo"))
        await asyncio.sleep(0)
        body = {"session_id": session.rpartition("/")[2], "prompt": "more"}
        answer = await site.request("POST", f"{session.partition('/sessions')[0]}/agent", body)
        assert (answer.status, answer.code) == (409, "session_busy")
        site.store.release()
        assert (await within(undo)).status == 200


async def test_the_title_of_a_session_is_bounded(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, _ = await talked(site, "one")
        sessions = session.rpartition("/")[0]
        for method, path in (("POST", sessions), ("PUT", session), ("POST", f"{session}/fork")):
            refused = await site.request(method, path, {"title": "x" * 1_001})
            assert (refused.status, refused.code) == (400, "invalid_request"), (method, path)
            assert "1000" in refused.value["message"]
            assert "title" in refused.value["message"]
            assert (await site.request(method, path, {"title": "é" * 1_000})).status in (200, 201)


async def test_changes_are_listed_by_file_and_turn(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        session, run_id = await talked(site, "one", "two")
        (file,) = (await site.request("GET", f"{session}/changes")).value["files"]
        assert (file["change"]["status"], len(file["turns"])) == ("added", 2)
        (only,) = (await site.request("GET", f"{session}/changes?run_id={run_id}&diffs=0")).value["files"]
        assert (only["change"]["status"], only["change"]["additions"], "diff" in only["change"]) == (
            "modified",
            1,
            False,
        )
        assert (await site.request("GET", f"{session}/changes?limit=9999")).status == 400
