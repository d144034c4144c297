"""The two eras of MCP: which one a server speaks is found out once, and it is spoken to in no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.tools import owned_process
from covey.tools.mcp import client as mcp_client
from tests.support.mcp import McpEngine, mcp_running

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    monkeypatch.setattr(mcp_client, "SILENCE_S", 0.3)


def methods(found: McpEngine, name: str = "h") -> list[str]:
    return [message.get("method", "answer") for message in found.messages(name)]


async def test_m1_a_server_that_refuses_discover_is_initialized_on_the_same_process(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "legacy") as found:
        await found.approve()
        [result] = await found.run(("mcp__h__echo", {"text": "hi"}))
        assert "legacy: hi" in result.content and found.starts() == 1
        assert methods(found)[:3] == ["server/discover", "initialize", "notifications/initialized"]
        assert found.server().catalogue.pins.era == "legacy"


async def test_m1_one_that_is_silent_at_discover_is_initialized_too(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "legacy-mute") as found:
        await found.approve()
        assert found.server().catalogue.pins.era == "legacy" and found.tools == ["mcp__h__echo"]


async def test_m1_a_slow_modern_one_is_not_taken_for_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_client, "SILENCE_S", 0.0)
    async with mcp_running(tmp_path, "normal") as found:
        await found.approve()
        assert found.server().catalogue.pins.era == "modern"


async def test_m1_the_era_is_remembered_with_the_pins_and_one_that_was_updated_is_asked_again(tmp_path: Path) -> None:
    for asked, era in [("server/discover", "legacy"), ("initialize", "legacy"), ("initialize", "modern")]:
        async with mcp_running(tmp_path, "legacy-updated") as found:
            before = len(found.messages())
            await found.approve() if not before else await found.run(("mcp__h__echo", {}))
            assert methods(found)[before] == asked and found.server().catalogue.pins.era == era
        if asked == "initialize":
            (tmp_path / "logs" / "h.changed").touch()


async def test_m2_no_request_of_the_other_era_is_sent_once_it_is_known(tmp_path: Path) -> None:
    version = "io.modelcontextprotocol/protocolVersion"
    async with mcp_running(tmp_path, {"new": "normal", "old": "legacy"}) as found:
        await found.approve("new", "old")
        await found.run(("mcp__new__echo", {}), ("mcp__old__echo", {}), ("mcp__new__echo", {}))
        assert "initialize" not in methods(found, "new")
        metas = [message["params"]["_meta"] for message in found.messages("new") if "id" in message]
        assert all(meta[version] == "2026-07-28" for meta in metas)
        assert methods(found, "old").index("server/discover") == 0 and "tools/call" in methods(found, "old")
        assert all(version not in message.get("params", {}).get("_meta", {}) for message in found.messages("old")[1:])
        assert methods(found, "old").count("server/discover") == 1
