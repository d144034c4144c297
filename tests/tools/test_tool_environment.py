"""What commands find in their environment: everything of the user's but the keys of model providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.config.key_variables import PROVIDERS_KEYS, key_variables
from covey.config.schema import Config, ToolSettings
from covey.engine.agent import Agent
from covey.tools.environment import tool_environment

USERS = {"PATH": "/bin", "GITHUB_TOKEN": "g", "AWS_SECRET_ACCESS_KEY": "a", "HF_TOKEN": "h", "OPENAI_BASE_URL": "u"}
KEYS = {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "n", "GEMINI_API_KEY": "g", "GOOGLE_API_KEY": "g"}


def without_guard(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith("GIT_CONFIG_")}


def test_keys_stay_and_the_rest_goes_along() -> None:
    inherited = {**USERS, **KEYS, "COVEY_TOKEN": "t", "CDPATH": "/x"}
    assert without_guard(tool_environment(inherited, PROVIDERS_KEYS)) == USERS


def test_a_key_that_is_named_goes_along_and_the_token_never_does() -> None:
    inherited = {**USERS, **KEYS, "COVEY_TOKEN": "t"}
    env = tool_environment(inherited, PROVIDERS_KEYS, ["OPENAI_API_KEY", "COVEY_TOKEN", "NOT_SET"])
    assert without_guard(env) == {**USERS, "OPENAI_API_KEY": "o"}


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ({"api_key": "$MINE"}, {"MINE"}),
        ({"api_key": "${MINE:-none}", "headers": {"a": "Bearer $B", "c": "$$D ${E}"}}, {"MINE", "B", "E"}),
        ({"base_url": "https://$HOST/v1?key=$SECRET"}, {"SECRET"}),
        ({"name": "$NAME", "script": "$HOME/x", "api_key_command": ["pass", "$USER"]}, set()),
    ],
)
def test_what_the_configuration_makes_a_key_of_is_one(provider: dict[str, object], names: set[str]) -> None:
    assert key_variables({"providers": {"a": provider, "b": {}}}) == names


def test_what_tools_get_follows_the_configuration(tmp_path: Path) -> None:
    server = {**USERS, **KEYS, "MINE": "of-server", "COVEY_TOKEN": "t"}
    config = Config(key_variables=("MINE", "THEIRS"))
    agent = Agent("w", tmp_path, config, {"THEIRS": "of-client", "EXTRA": "e"}, environ=server)
    assert without_guard(agent.env) == {**USERS, "EXTRA": "e"}
    agent.reload(Config(tools=ToolSettings(pass_env=("GEMINI_API_KEY",))))
    assert without_guard(agent.env) == {
        **USERS, "EXTRA": "e", "MINE": "of-server", "THEIRS": "of-client", "GEMINI_API_KEY": "g",
    }  # fmt: skip
