"""A directory whose configuration has a mistake is opened: only what needs a model is refused, until it is mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.config.schema import ConfigError
from covey.protocol.requests import SelectedModel
from tests.engine.test_changed_settings import DENY, PROVIDER, opened
from tests.support.engine import call

pytestmark = pytest.mark.anyio

BROKEN = "[permissions\n"
MISTAKE = r"config\.toml: is not valid TOML"


async def test_what_needs_no_model_works_with_a_mistake(tmp_path: Path) -> None:
    async with opened(tmp_path, BROKEN) as here:
        workspace = here.workspace
        assert [session.id for session in await workspace.sessions.page(limit=10)] == [here.session_id]
        assert await workspace.sessions.messages(here.session_id, "", 0) == []
        assert (await workspace.sessions.changes(here.session_id)).files == ()
        await workspace.sessions.delete(here.session_id)
        assert await workspace.sessions.page(limit=10) == []


async def test_what_needs_a_model_is_refused_with_the_mistake(tmp_path: Path) -> None:
    async with opened(tmp_path, BROKEN) as here:
        workspace = here.workspace
        with pytest.raises(ConfigError, match=MISTAKE):
            await here.run("a")
        with pytest.raises(ConfigError, match=MISTAKE):
            await here.run("a", model="one/m")
        with pytest.raises(ConfigError, match=MISTAKE):
            await workspace.runs.summarize(here.session_id)
        with pytest.raises(ConfigError, match=MISTAKE):
            await workspace.settings.ensure_read()
        with pytest.raises(ConfigError, match=MISTAKE):
            await workspace.settings.prefer_model("large", SelectedModel(model="m", provider="one"))
        assert "is not valid TOML" in workspace.describe().config.model_problem
        assert not workspace.settings.agent_info().is_ready
        assert await workspace.runs.newest("", "", 10) == []


async def test_another_mistake_is_named_and_no_mistake_is_none(tmp_path: Path) -> None:
    async with opened(tmp_path, BROKEN) as here:
        here.file.write_text("[permisions]\n")
        with pytest.raises(ConfigError, match="permisions: unknown key"):
            await here.run("a")
        here.file.write_text(PROVIDER + DENY)
        here.model.answer(*call())
        assert (await here.run("a")).state == "completed"
        assert here.tool.calls == [], "what the mended file forbids was run"
        await here.workspace.settings.ensure_read()
        assert here.workspace.describe().config.model_problem == ""
