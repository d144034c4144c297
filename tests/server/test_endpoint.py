"""What comes in is checked before anything happens, and every answer, also a refusal, has its shape."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest
from msgspec import structs

from covey.engine import recorder as recorder_module
from covey.server import endpoint as endpoint_module
from covey.server.app import ENDPOINTS
from covey.server.routes import runs
from tests.server.site import CLIENT, Site, serving
from tests.support.engine import Gate, config

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


async def session(site: Site) -> tuple[str, str]:
    """The paths of a workspace and of a session in it."""
    workspace = await site.workspace()
    made = await workspace.sessions.create("")
    return f"/v1/workspaces/{workspace.id}", made.id


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "a JSON body is required"),
        (b"{", "truncated"),
        (b"nonsense", "malformed"),
        (b"[]", "Expected `object`"),
        (b'{"prompt": 3}', "$.prompt"),
        (b'{"mode": "both"}', "$.mode"),
        (b'{"attachments": [{"content": "%%%"}]}', "$.attachments"),
        (b'{"prompt": "\xff"}', "utf-8"),
        (b'{"prompt": "\\ud800"}', "not valid"),
        (b'{"x": ' + b"[" * 100_000, "recursion"),
    ],
    ids=range(10),
)
async def test_a_body_that_makes_no_sense_is_refused_and_says_where(tmp_path: Path, body: bytes, says: str) -> None:
    async with serving(tmp_path) as site:
        path, _ = await session(site)
        answer = await site.request("POST", f"{path}/agent", chunks=[body], headers=JSON)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert says.lower() in answer.value["message"].lower()
        assert site.store.runs("w", "", "", 10) == []


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_a_body_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        body = json.dumps({"session_id": sid, "prompt": "hi"}).encode()
        answer = await site.request("POST", f"{path}/agent", chunks=[body], headers={"content-type": kind})
        assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_a_body_of_another_kind_or_that_is_broken_is_refused_also_where_none_is_needed(tmp_path: Path) -> None:
    without_body = [e for e in ENDPOINTS if e.body is None and e.method != "GET"]
    assert len(without_body) >= 4
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        known = {"id": path.rpartition("/")[2], "session_id": sid, "run_id": "r", "client_id": CLIENT}
        for endpoint in without_body:
            where = re.sub(r"\{(\w+)\}", lambda match: known.get(match[1], "x"), endpoint.path)
            for announced in ({"content-length": "2"}, {"transfer-encoding": "chunked"}):
                headers = {"content-type": "text/plain", **announced}
                answer = await site.request(endpoint.method, where, chunks=[b"hi"], headers=headers)
                assert (answer.status, answer.code) == (415, "unsupported_media_type"), where
                answer = await site.request(endpoint.method, where, chunks=[b"{]"], headers={**JSON, **announced})
                assert (answer.status, answer.code) == (400, "invalid_request"), where
        taken = await site.request("POST", f"{path}/agent/sessions/{sid}/cancel", {"anything": 1})
        assert taken.status == 200, "JSON that nobody needs is read and left alone"


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
async def test_json_by_any_of_its_names_is_taken(tmp_path: Path, kind: str) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        body = json.dumps({"session_id": sid, "prompt": "hi"}).encode()
        answer = await site.request(
            "POST", f"{path}/agent", chunks=[body[:9], body[9:]], headers={"content-type": kind}
        )
        assert answer.status == 202


async def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "MAX_BODY_BYTES", 100)
    async with serving(tmp_path) as site:
        path, _ = await session(site)
        announced = await site.request(
            "POST", f"{path}/agent", chunks=[None], headers={**JSON, "content-length": "101"}
        )
        assert (announced.status, announced.code) == (413, "body_too_large")
        streamed = await site.request("POST", f"{path}/agent", chunks=[b"x" * 60, b"x" * 60, None], headers=JSON)
        assert (streamed.status, streamed.code) == (413, "body_too_large")


async def test_a_client_that_leaves_in_the_middle_of_its_request_starts_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        body = json.dumps({"session_id": sid, "prompt": "hi"}).encode()
        answer = await site.request("POST", f"{path}/agent", chunks=[body[:10], None], headers=JSON)
        assert answer.status == 0
        assert not site.workspaces.all()[0].is_busy


async def test_a_post_without_a_body_needs_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        for route in (f"{path}/agent/sessions/{sid}/cancel", f"{path}/agent/init", f"{path}/sessions"):
            assert (await site.request("POST", route, chunks=[b""])).status == 200


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "1e999", "x", "0x10"])
async def test_a_number_that_is_none_or_out_of_bounds_is_refused(tmp_path: Path, value: str) -> None:
    async with serving(tmp_path) as site:
        path, _ = await session(site)
        answer = await site.request("GET", f"{path}/runs/r?wait={value}")
        assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/web/other/js/main.js", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/workspaces/", 404, "not_found"),
        ("GET", "/v1/workspaces/nobody", 404, "workspace_not_found"),
        ("GET", "{W}/sessions/nobody", 404, "session_not_found"),
        ("GET", "{W}/sessions/nobody/messages", 404, "session_not_found"),
        ("POST", "{W}/agent/sessions/nobody/cancel", 404, "session_not_found"),
        ("GET", "{W}/runs/nobody", 404, "run_not_found"),
        ("GET", "{W}/runs?session_id=nobody", 404, "session_not_found"),
        ("DELETE", "{W}/agent/sessions/{S}/prompts/nobody", 404, "run_not_found"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
        ("DELETE", "/v1/workspaces", 405, "method_not_allowed"),
        ("PUT", "{W}/agent", 405, "method_not_allowed"),
        ("HEAD", "{W}/events?client_id={C}", 405, "method_not_allowed"),
        ("DELETE", "/v1/clients/me", 400, "invalid_client_id"),
        ("DELETE", "{W}", 400, "invalid_client_id"),
        ("GET", "{W}/events", 400, "invalid_client_id"),
        ("GET", "{W}/events?client_id={C}&session_id=nobody", 404, "session_not_found"),
        ("POST", "{W}/runs/a%20b/cancel", 400, "invalid_request"),
    ],
)
async def test_what_is_not_there(tmp_path: Path, method: str, path: str, status: int, code: str) -> None:
    async with serving(tmp_path) as site:
        workspace, sid = await session(site)
        path = path.replace("{W}", workspace).replace("{S}", sid).replace("{C}", CLIENT).replace("%20", " ")
        answer = await site.request(method, path)
        assert (answer.status, answer.code) == (status, code)
        assert answer.headers["content-type"] == "application/json"
        assert int(answer.headers["content-length"]) == len(answer.body)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("/v1/control", {"command": "dance"}, "unknown_command"),
        ("/v1/workspaces", {"path": "relative", "client_id": CLIENT}, "invalid_request"),
        ("/v1/workspaces", {"path": "/", "client_id": "me"}, "invalid_client_id"),
        ("/v1/workspaces", {"path": "/", "client_id": CLIENT, "env": {"A=B": "x"}}, "invalid_request"),
        ("/v1/workspaces", {"path": "/", "client_id": CLIENT, "env": ["A=\0"]}, "invalid_request"),
        ("{W}/agent", {"session_id": "{S}", "prompt": ""}, "empty_prompt"),
        ("{W}/agent", {"prompt": "x"}, "invalid_request"),
        ("{W}/agent", {"session_id": "{S}", "prompt": "x", "run_id": "a b"}, "invalid_request"),
        ("{W}/agent", {"session_id": "{S}", "prompt": "x", "run_id": "x" * 129}, "invalid_request"),
        ("{W}/permissions/grant", {"permission": {"id": "x"}, "action": "maybe"}, "invalid_request"),
    ],
)
async def test_what_cannot_be_done(tmp_path: Path, path: str, value: dict[str, str], code: str) -> None:
    async with serving(tmp_path) as site:
        workspace, sid = await session(site)
        value = json.loads(json.dumps(value).replace("{S}", sid))
        answer = await site.request("POST", path.replace("{W}", workspace), value)
        assert (answer.status, answer.code) == (400, code)
        assert not site.stopped


async def test_a_prompt_and_its_receipt(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        answer = await site.request("POST", f"{path}/agent", {"session_id": sid, "prompt": "hi", "run_id": "r"})
        assert answer.status == 202
        assert set(answer.value) == {"run_id", "session_id", "seq", "state"}
        run = await site.request("GET", f"{path}/runs/r?wait=10")
        assert (run.value["state"], run.value["text"]) == ("completed", "done")
        messages = (await site.request("GET", f"{path}/sessions/{sid}/messages")).value
        assert [message["role"] for message in messages] == ["user", "assistant"]
        listed = (await site.request("GET", f"{path}/runs?session_id={sid}&state=completed&limit=1")).value
        assert [run["run_id"] for run in listed] == ["r"]
        assert site.counts["prompts_accepted"] == 1


async def test_the_queue_can_be_seen_and_changed(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        gate = Gate()
        site.model.answer(gate)
        for run_id in "abcd":
            await site.request("POST", f"{path}/agent", {"session_id": sid, "prompt": run_id, "run_id": run_id})
        await gate.reached()
        lane = f"{path}/agent/sessions/{sid}"
        assert (await site.request("GET", f"{lane}/prompts/queued")).value == 3
        assert (await site.request("PATCH", f"{lane}/prompts/b", {"prompt": "B"})).value["prompt"] == "B"
        assert (await site.request("DELETE", f"{lane}/prompts/c")).value["covered"][0]["run_id"] == "c"
        assert (await site.request("GET", f"{lane}/prompts/list")).value == ["B", "d"]
        late = await site.request("PATCH", f"{lane}/prompts/a", {"prompt": "A"})
        assert (late.status, late.code) == (409, "too_late")
        empty = await site.request("PATCH", f"{lane}/prompts/b", {"prompt": " "})
        assert (empty.status, empty.code) == (400, "empty_prompt")
        assert len((await site.request("POST", f"{lane}/prompts/clear")).value["covered"]) == 2
        assert (await site.request("GET", lane)).value["is_busy"] is True
        covered = (await site.request("POST", f"{lane}/cancel")).value["covered"]
        assert covered == [{"run_id": "a", "state_found": "active"}]
        await site.request("GET", f"{path}/runs/a?wait=10")
        assert (await site.request("GET", lane)).value["is_busy"] is False


async def test_a_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        site.settings = config(queue=1)
        path, sid = await session(site)
        gate = Gate()
        site.model.answer(gate)
        answers = []
        for run_id in "abc":
            prompt = {"session_id": sid, "prompt": "x", "run_id": run_id}
            answers.append(await site.request("POST", f"{path}/agent", prompt))
            await gate.reached()
        assert [answer.status for answer in answers] == [202, 202, 429]
        assert answers[-1].code == "queue_full"
        assert answers[-1].value["retry_after"] > 0
        assert int(answers[-1].headers["retry-after"]) > 0


async def test_a_store_that_cannot_write_is_reported_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        site.store.full = True
        answer = await site.request("POST", f"{path}/agent", {"session_id": sid, "prompt": "x"})
        assert (answer.status, answer.code) == (503, "store_unavailable")


@pytest.mark.parametrize("what", ["PUT session", "DELETE session", "POST skip"])
async def test_a_full_disk_leaves_nobody_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(recorder_module, "STORE_WAIT_S", 0.01)
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        site.store.full = True
        requests = {
            "PUT session": ("PUT", f"{path}/sessions/{sid}", {"title": "new"}),
            "DELETE session": ("DELETE", f"{path}/sessions/{sid}", None),
            "POST skip": ("POST", f"{path}/permissions/skip", {"skip": True}),
        }
        async with asyncio.timeout(10):
            answer = await site.request(*requests[what])
        assert (answer.status, answer.code) == (503, "store_unavailable")


async def test_a_bug_of_ours_is_a_500_that_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as site:
        path, _ = await session(site)

        def broken(*args: object) -> None:
            raise RuntimeError("the key is sk-1234")

        monkeypatch.setattr(site.workspaces.all()[0], "runs", broken)
        with caplog.at_level(logging.ERROR):
            answer = await site.request("GET", f"{path}/runs")
        assert (answer.status, answer.code) == (500, "internal")
        assert "sk-1234" not in answer.body.decode()
        assert [record.message for record in caplog.records] == [f"GET {path}/runs failed"]


async def test_closing_refuses_prompts_and_says_why(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        assert (await site.request("POST", "/v1/control", {"command": "shutdown_if_idle"})).code == "busy"
        assert not site.stopped
        assert (await site.request("POST", "/v1/control", {"command": "shutdown"})).status == 200
        assert site.stopped
        await site.workspaces.close()
        answer = await site.request("POST", f"{path}/agent", {"session_id": sid, "prompt": "x"})
        assert (answer.status, answer.code) == (409, "workspace_closing")
        answer = await site.request("POST", "/v1/workspaces", {"path": str(tmp_path), "client_id": CLIENT})
        assert (answer.status, answer.code) == (503, "shutting_down")


async def test_neither_keys_nor_headers_nor_tokens_are_in_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVEY_TOKEN", "tok-5678")
    async with serving(tmp_path) as site:
        provider = site.settings.providers["test"]
        secret = structs.replace(provider, api_key="sk-1234", headers={"x": "h-1234"}, base_url="http://u:pw-1234@h/v1")
        site.settings = structs.replace(site.settings, providers={"test": secret})
        path, sid = await session(site)
        assert "tok-5678" not in str(site.workspaces.all()[0]._parts.agent.env)
        for route in ("", "/config", "/providers", "/agent", "/sessions", f"/sessions/{sid}", "/runs", "/permissions"):
            answer = await site.request("GET", path + route)
            assert answer.status == 200
            for word in ("sk-1234", "h-1234", "pw-1234", "tok-5678"):
                assert word not in answer.body.decode(), f"{route} shows {word}"


@pytest.mark.parametrize("run_id", ["a", "A-b_c.d:1", "0" * 128])
def test_run_ids_that_clients_may_choose(run_id: str) -> None:
    assert runs.RUN_ID.fullmatch(run_id)
