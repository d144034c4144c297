"""The web_search tool: what each engine is asked, what becomes of its answer, and that its key stays with it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from covey.config.load import load
from covey.config.schema import Config, ConfigError, SearchSettings
from covey.engine.agent import Agent
from covey.protocol.effects import Effect
from covey.tools import web_search as web_search_module
from covey.tools.base import ToolContext, ToolFailed, ToolOutput
from covey.tools.web_search import SearchEngine, SearchType, WebSearchParams, web_search_tool
from tests.tools.web_server import WebServer, answer, redirect, serving, then_silent

pytestmark = pytest.mark.anyio

KEY = "key-that-nobody-may-see"
HITS = [
    {"title": "Birds\n &  nests", "url": "https://birds.example/", "content": "A covey of partridges."},
    {"title": "No address", "url": "javascript:alert(1)", "content": "x"},
    "no table",
    {"title": "", "url": "http://nests.example/a", "content": "y" * 2000, "description": "z"},
]


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with serving() as server:
        yield server


async def search(url: str, context: ToolContext, kind: SearchType = "searxng", **params: Any) -> ToolOutput:
    tool = web_search_tool(SearchEngine(kind, url, KEY))
    return await tool.run(WebSearchParams(query="covey of birds", **params), context)


async def test_an_engine_is_asked_and_its_results_are_told_as_others_words(
    server: WebServer, context: ToolContext
) -> None:
    server.pages["/search?q=covey+of+birds&format=json"] = answer(json.dumps({"results": HITS}))
    output = await search(server.url(""), context)
    assert output.content.startswith("Found for 'covey of birds' (written by others")
    assert "1. Birds & nests\n   https://birds.example/\n   A covey of partridges." in output.content
    assert "2. (no title)\n   http://nests.example/a\n" in output.content and "javascript" not in output.content
    assert len(output.content) < 1500 and output.metadata == {"results": 2}


async def test_brave_and_tavily_get_the_key_as_they_want_it(server: WebServer, context: ToolContext) -> None:
    server.pages["/b?q=covey+of+birds&count=3"] = answer(json.dumps({"web": {"results": HITS}}))
    server.pages["/t"] = answer(json.dumps({"results": HITS}))
    brave = await search(server.url("/b"), context, "brave", count=3)
    tavily = await search(server.url("/t"), context, "tavily")
    assert "A covey" not in brave.content and "A covey" in tavily.content
    sent = [headers for _, headers in server.requests]
    assert sent[0]["x-subscription-token"] == KEY and sent[1]["authorization"] == f"bearer {KEY}"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (answer("no", status="401 Unauthorized"), "status 401"),
        (answer("no", status="429 Too Many Requests"), "fewer requests"),
        (answer("no", status="500 Oh"), "status 500"),
        (answer("<html>"), "no JSON"),
        (answer("[" * 100_000), "no JSON"),
        (answer(b"x" * (3 * 1024 * 1024)), "too large"),
        (redirect("/elsewhere"), "status 302"),
    ],
)
async def test_what_goes_wrong_is_a_sentence_and_no_redirect_gets_the_key(
    server: WebServer, context: ToolContext, page: Any, words: str
) -> None:
    server.pages["/t"] = page
    with pytest.raises(ToolFailed, match=words) as failed:
        await search(server.url("/t"), context, "tavily")
    assert KEY not in str(failed.value) and len(server.requests) == 1


async def test_an_answer_without_results_says_so(server: WebServer, context: ToolContext) -> None:
    for body in ("{}", "[]", '{"results": null}', '{"results": [{}]}'):
        server.pages["/t"] = answer(body)
        assert (await search(server.url("/t"), context, "tavily")).content.startswith("Nothing was found")


async def test_a_cancel_and_a_silent_engine_leave_no_connection(
    server: WebServer, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pages["/t"] = then_silent(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
    call = asyncio.create_task(search(server.url("/t"), context, "tavily"))
    while not server.requests:
        await asyncio.sleep(0.005)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    monkeypatch.setattr(web_search_module, "TIMEOUT_S", 0.05)
    with pytest.raises(ToolFailed, match="did not answer within"):
        await search(server.url("/t"), context, "tavily")


async def test_nobody_sees_the_key(server: WebServer, context: ToolContext, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ToolFailed) as failed:
        await search("http://127.0.0.1:1/x", context, "brave")
    settings = SearchSettings(type="brave", api_key=KEY)
    shown = [str(failed.value), repr(SearchEngine("brave", key=KEY)), repr(settings), caplog.text]
    assert all(KEY not in text for text in shown)


def tools_of(directory: Path, **search: Any) -> Sequence[str]:
    agent = Agent("w", directory, Config(search=SearchSettings(**search)), {}, environ={})
    return list(agent.tools_for(plan=False, delegate=False))


def test_the_tool_is_there_where_it_is_configured_and_needs_permission_like_the_network(
    tmp_path: Path, context: ToolContext
) -> None:
    assert "web_search" not in tools_of(tmp_path)
    assert "web_search" in tools_of(tmp_path, type="searxng")
    tool = web_search_tool(SearchEngine("searxng"))
    intent = tool.intent(WebSearchParams(query="x"), context)
    assert (tool.effect, intent.harmless) == (Effect.REACHES_OUT, False)


def test_only_the_user_says_where_searches_go_and_the_key_reaches_no_command(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MY_KEY": KEY}
    own = tmp_path / ".config" / "covey" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[search]\ntype = "brave"\napi_key = "$MY_KEY"\n')
    config = load(tmp_path, None, environ).config
    assert config.search.api_key == KEY and "MY_KEY" in config.key_variables
    (tmp_path / "covey.toml").write_text('[search]\nurl = "http://evil.example"\n')
    with pytest.raises(ConfigError, match="only your own"):
        load(tmp_path, None, environ)
