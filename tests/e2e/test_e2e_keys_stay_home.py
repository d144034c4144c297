"""A real server whose environment is full of keys: what the commands of a model find of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.test_e2e_unasked_commands import asks_for
from tests.support.fake_model import FakeModel
from tests.support.server import provider_config, running

ENV = {
    "ANTHROPIC_API_KEY": "canary-anthropic",
    "OPENROUTER_API_KEY": "canary-openrouter",
    "MY_KEY": "canary-mine",
    "MY_HEADER": "canary-header",
    "GITHUB_TOKEN": "stays-github",
}
LOOK = "env; tr '\\0' '\\n' < /proc/$PPID/environ"
PROVIDER = 'idle_timeout_s = 20\napi_key = "$MY_KEY"\nheaders = { "X-Team" = "$MY_HEADER" }'


@pytest.mark.parametrize("passed", [False, True])
def test_commands_get_the_users_keys_and_not_the_providers(tmp_path: Path, model: FakeModel, passed: bool) -> None:
    rules = '[permissions]\nallow = ["bash"]\n' + ('[tools]\npass_env = ["OPENROUTER_API_KEY"]\n' if passed else "")
    with running(tmp_path, provider_config(model.url, rules, PROVIDER), ENV) as server:
        workspace = server.workspace()
        # Root may read everything, so what the kernel shows of the server can only be tried as somebody else.
        asks_for(model, LOOK if os.geteuid() else "env")
        session = workspace.session()
        run = workspace.ended(workspace.prompt(session, "look")["run_id"])
        assert run["state"] == "completed", run
        seen = str(workspace.messages(session))
        assert "stays-github" in seen and "PATH=" in seen
        assert ("canary-openrouter" in seen) == passed
        for name in ("anthropic", "mine", "header"):
            assert f"canary-{name}" not in seen
        assert model.requests[-1].headers["authorization"] == "Bearer canary-mine", "the provider does get its key"
        workspace.close()
