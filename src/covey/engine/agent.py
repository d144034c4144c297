"""What answers in a workspace: the configured model, the tools, and what the model is told about where it is."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from covey.config.defaults import Resolved, resolve
from covey.config.schema import Config
from covey.lifecycle.budget import Price
from covey.models.base import ModelClient, ModelFailed, ToolSpec
from covey.models.connect import open_client
from covey.protocol.requests import AgentInfo, ModelInfo, SelectedModel
from covey.tools.base import Tool
from covey.tools.registry import make_tools

NO_MODEL = (
    "no usable model is configured. Set OPENAI_API_KEY, start a local server (Ollama, llama.cpp, LM Studio), "
    "or name a provider in ~/.config/covey/config.toml; see docs/CONFIGURATION.md"
)

NOT_FOR_TOOLS = frozenset({"COVEY_TOKEN"})
"""Variables of the server that its tools do not get: what a model can print, everybody who watches can read."""

SYSTEM_PROMPT = """\
You are Covey, a coding agent. You work in the directory {root} on {platform}. Today is {today}.
Use the tools to look before you answer and to make the changes that are asked for; paths are relative to that \
directory. View a file before you edit it. Several people may watch and steer this conversation: later user messages \
refine earlier ones. Be brief. When you are done, say what you did and what you could not do.
"""


@dataclass(frozen=True, slots=True)
class ReadyModel:
    """A model that can be called."""

    client: ModelClient
    provider_id: str
    model_id: str
    max_tokens: int | None
    price: Price


class Agent:
    """The model and the tools of one workspace. Reloading never disturbs a turn that has them already."""

    def __init__(self, root: Path, config: Config, env: Mapping[str, str], warnings: Sequence[str] = ()) -> None:
        self.root = root
        self.config = config
        self._warnings = warnings
        self.env = {name: value for name, value in {**os.environ, **env}.items() if name not in NOT_FOR_TOOLS}
        self.tools: dict[str, Tool[Any]] = make_tools()
        self._clients: dict[str, ModelClient] = {}
        self._retired: list[ModelClient] = []

    def reload(self, config: Config, warnings: Sequence[str] = ()) -> None:
        self._warnings = warnings
        if config == self.config:
            return  # connections that are open stay so
        self.config = config
        self._retired.extend(self._clients.values())
        self._clients = {}

    @property
    def no_model(self) -> str:
        """What to tell somebody who has no model: also what in their files was not taken, and why."""
        return "\n".join((NO_MODEL, *self._warnings))

    def choice(self) -> Resolved | None:
        """The model that a prompt would go to now; None: nothing usable is configured."""
        return resolve(self.config, "large")

    def model(self) -> ReadyModel:
        """Raises ModelFailed or ConfigError if it cannot be built: the run fails with that."""
        choice = self.choice()
        if choice is None:
            raise ModelFailed(self.no_model)
        client = self._clients.get(choice.provider_id)
        if client is None:
            client = self._clients[choice.provider_id] = open_client(choice.provider_id, choice.provider)
        settings = choice.model
        price = Price(
            settings.price_prompt or 0.0,
            settings.price_completion or 0.0,
            settings.price_cached,
            settings.price_cache_write,
        )
        return ReadyModel(client, choice.provider_id, settings.id, settings.max_tokens or None, price)

    @cached_property
    def tool_specs(self) -> list[ToolSpec]:
        """What the model is told about the tools: made once, since schemas take longer than a step may wait."""
        return [ToolSpec(name, tool.description(), tool.schema()) for name, tool in self.tools.items()]

    def system_prompt(self) -> str:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return SYSTEM_PROMPT.format(root=self.root, platform=platform.system(), today=today)

    def info(self, *, is_busy: bool) -> AgentInfo:
        choice = self.choice()
        if choice is None:
            return AgentInfo(is_busy=is_busy, is_ready=False, model=None, model_cfg=None)
        settings = choice.model
        model = ModelInfo(
            id=settings.id,
            name=settings.name or settings.id,
            context_window=settings.context_window,
            default_max_tokens=settings.max_tokens,
        )
        selected = SelectedModel(model=settings.id, provider=choice.provider_id)
        return AgentInfo(is_busy=is_busy, is_ready=True, model=model, model_cfg=selected)

    async def aclose(self) -> None:
        for client in (*self._clients.values(), *self._retired):
            await client.aclose()
