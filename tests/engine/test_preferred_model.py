"""A model that somebody chose for a workspace: it counts less than that of a run or a session, and is never written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.config.schema import Config, ConfigError, ModelChoice, ModelSettings, ProviderSettings
from covey.engine.agent import Agent
from covey.protocol.errors import NotFound
from covey.protocol.requests import SelectedModel
from tests.support.engine import running

pytestmark = pytest.mark.anyio

ONE = ProviderSettings(type="scripted", models=(ModelSettings(id="a"), ModelSettings(id="b")))
TWO = ProviderSettings(type="scripted", models=(ModelSettings(id="c"),))
BOTH = Config(providers={"one": ONE, "two": TWO}, models=ModelChoice(large="one/a"))


def chosen(agent: Agent, reference: str = "") -> str:
    choice = agent.choice(reference)
    assert choice
    return f"{choice.provider_id}/{choice.model.id}"


def test_it_stays_when_the_files_are_read_again_and_goes_with_its_provider(tmp_path: Path) -> None:
    agent = Agent("w", tmp_path, BOTH, {})
    agent.prefer("large", "two/c")
    assert (chosen(agent), chosen(agent, "one/b")) == ("two/c", "one/b")
    agent.reload(BOTH)
    assert chosen(agent) == "two/c"
    agent.reload(Config(providers={"one": ONE}, models=ModelChoice(large="one/a")))
    assert chosen(agent) == "one/a"
    with pytest.raises(ConfigError):
        agent.prefer("large", "three/x")
    assert chosen(agent) == "one/a"


async def test_the_small_model_of_a_provider_is_one_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, settings=BOTH) as engine:
        settings = engine.workspace.settings
        assert settings.default_small_model("one") == SelectedModel(model="a", provider="one")
        assert settings.default_small_model("two") == SelectedModel(model="c", provider="two")
        await settings.prefer_model("small", SelectedModel(model="b", provider="one"))
        assert settings.default_small_model("one") == SelectedModel(model="b", provider="one")
        with pytest.raises(NotFound):
            settings.default_small_model("three")
        assert settings.config().models["small"] == SelectedModel(model="b", provider="one")


async def test_the_small_model_of_a_provider_whose_key_is_at_hand_is_one_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, settings=msgspec.structs.replace(BOTH, at_hand=("two",))) as engine:
        found = engine.workspace.settings.default_small_model("two")
        assert found == SelectedModel(model="c", provider="two")
