"""Routes for v1 clients and for people's own commands: who may use them, and what becomes of a client that leaves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from unittest import mock

import pytest

from covey.engine.preferences import FILE, Preferences, load_preferences
from covey.engine.recorder import Batch
from covey.protocol.errors import BadRequest, Forbidden, Unavailable
from covey.protocol.messages import ShellCommandPart
from covey.protocol.requests import Options
from covey.protocol.v1 import with_preferences
from tests.server.site import Site, serving
from tests.support.engine import within

pytestmark = pytest.mark.anyio


async def session(site: Site) -> tuple[str, str]:
    workspace = await site.workspace()
    made = await workspace.sessions.create("")
    return f"/v1/workspaces/{workspace.id}", made.id


async def test_a_process_of_our_tools_may_run_no_command_of_a_person(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        with mock.patch("covey.server.access.is_from_our_tools", return_value=True):
            answer = await site.request("POST", f"{path}/agent/sessions/{sid}/shell", {"command": "true"})
        assert (answer.status, answer.code) == (403, "may_not_approve")
        answer = await site.request("POST", f"{path}/agent/sessions/{sid}/shell", {"command": "echo hi"})
        assert (answer.status, answer.value) == (200, {"output": "hi\n", "exit_code": 0})
        unknown = await site.request("POST", f"{path}/agent/sessions/none/shell", {"command": "true"})
        assert (unknown.status, unknown.code) == (404, "session_not_found")


async def test_a_client_that_leaves_takes_its_command_along(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, sid = await session(site)
        started = tmp_path / "started"
        body = json.dumps({"command": f"touch {started}; sleep 60"}).encode()
        leaving = asyncio.Event()
        parts: list[dict[str, object]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, object]:
            if parts:
                return parts.pop()
            await leaving.wait()
            return {"type": "http.disconnect"}

        async def send(message: object) -> None:
            raise AssertionError("nobody is there to be answered")

        scope = {
            "type": "http", "method": "POST", "path": f"{path}/agent/sessions/{sid}/shell", "query_string": b"",
            "headers": [(b"content-type", b"application/json")], "root_path": "",
        }  # fmt: skip
        request = asyncio.create_task(site.app(scope, receive, send))
        while not started.exists():
            await asyncio.sleep(0)
        leaving.set()
        await within(request)
        workspace = await site.workspace()
        await within(workspace._parts.recorder.write(Batch()))  # whatever was said before is written then
        (message,) = await workspace.sessions.messages(sid, "", 0)
        (part,) = message.parts
        assert isinstance(part, ShellCommandPart)
        assert part.data.exit_code == 130


async def test_null_counts_as_not_given_however_deep_it_stands(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        path, _ = await session(site)
        answer = {"request_id": "1", "selected_ids": None, "notes": None}
        taken = await site.request(
            "POST", f"{path}/questions/answer", {"batch_request_id": None, "responses": [answer]}
        )
        assert (taken.status, taken.value) == (200, {"resolved": False})
        wrong = await site.request("POST", f"{path}/questions/answer", {"responses": [{**answer, "yes": 3}]})
        assert wrong.status == 400


# ── preferences ──


async def test_preferences_are_kept_and_shown_again(tmp_path: Path) -> None:
    kept = load_preferences(tmp_path)
    await kept.set("options.tui.diff_mode", "split")
    await kept.set("options.disable_notifications", True)
    await kept.remove("options.tui.theme")
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    again = load_preferences(tmp_path)
    options = with_preferences(Options(data_directory="/d"), again.values)
    assert options == Options(data_directory="/d", tui={"diff_mode": "split"}, disable_notifications=True)


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        ("options.tui.diff_mode", "sideways", BadRequest),
        ("options.tui.compact_mode", "yes", BadRequest),
        ("options.tui.theme", "x" * 101, BadRequest),
        ("recent_models.large", [{"model": 3}], BadRequest),
        ("options.tui", {}, Forbidden),
        ("permissions.allowed_tools", ["bash"], Forbidden),
        ("providers.openai.api_key", "k", Forbidden),
    ],
)
async def test_what_makes_no_sense_or_is_not_harmless_is_refused(
    tmp_path: Path, key: str, value: object, refusal: type[Exception]
) -> None:
    kept = load_preferences(tmp_path)
    with pytest.raises(refusal):
        await kept.set(key, value)
    assert kept.values == {}
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("content", [b"nonsense", b"[]", b'{"permissions.allow": ["bash"]}', b"\xff"])
def test_a_file_that_cannot_be_understood_keeps_nobody_from_starting(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert load_preferences(tmp_path).values == {}


async def test_a_preference_that_cannot_be_written_is_reported_and_holds_until_the_end(tmp_path: Path) -> None:
    kept = Preferences(tmp_path / "gone" / FILE)
    with pytest.raises(Unavailable, match="could not be written"):
        await kept.set("options.tui.transparent", True)
    assert kept.values == {"options.tui.transparent": True}
