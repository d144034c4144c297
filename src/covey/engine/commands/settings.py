"""The configuration of a workspace: what clients may see of it, and reading it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from covey.config.defaults import find, resolve
from covey.config.schema import AllowRule, Config, ConfigError, NotifySettings
from covey.config.stamp import Stamp
from covey.config.view import view
from covey.engine.agent import Agent
from covey.engine.asks.permissions import PermissionDesk
from covey.engine.extensions.extensions import Extensions
from covey.engine.keeping import Keeping
from covey.engine.lanes.lanes import Lanes
from covey.engine.model_cards import model_info
from covey.engine.recorder import Batch, Recorder, confirmed
from covey.engine.shared import Shared, config_stamp, load_config, own_directories
from covey.permissions.judge import Intent, Rules, session_rule
from covey.permissions.prefixes import prefix_rules
from covey.permissions.reach import Reach
from covey.protocol.errors import BadRequest, NotFound
from covey.protocol.events import ConfigChanged, updated
from covey.protocol.requests import AgentInfo, ConfigView, SelectedModel
from covey.protocol.v1 import ModelRole, recent_models, with_preferences

log = logging.getLogger(__name__)


class WorkspaceSettings:
    """Holds no configuration itself: the agent has it, and the permission desk has the rules made from it."""

    def __init__(
        self,
        workspace_id: str,
        path: str,
        shared: Shared,
        agent: Agent,
        permissions: PermissionDesk,
        lanes: Lanes,
        recorder: Recorder,
        extensions: Extensions,
        keeping: Keeping,
        stamp: Stamp | None,
    ) -> None:
        self._workspace_id = workspace_id
        self._recorder = recorder
        self._path = path
        self._shared = shared
        self._agent = agent
        self._permissions = permissions
        self._lanes = lanes
        self._extensions = extensions
        self._keeping = keeping
        self._stamp = stamp
        """The files as they were before they were read; None: the configuration came from no files."""
        self._refreshing = asyncio.Lock()

    def config(self) -> ConfigView:
        """The configuration, without secrets, and how the user likes clients to look."""
        shown = view(self._agent.config, self._shared.data_dir, model_info)
        values = self._shared.preferences.values
        return msgspec.structs.replace(
            shown, options=with_preferences(shown.options, values), recent_models=recent_models(values)
        )

    def notify(self) -> NotifySettings:
        """Of what, and where, somebody who is not watching is notified."""
        return self._agent.config.notify

    def warnings(self) -> tuple[str, ...]:
        """What in the files was not taken, and why."""
        return tuple(self._agent.warnings)

    def agent_info(self) -> AgentInfo:
        """The model, and whether anything runs."""
        return self._agent.info(is_busy=self._lanes.is_busy)

    async def refresh(self, beginning: int = 0) -> Sequence[str]:
        """Read the configuration again if one of its files has changed. Gives what people should know about that.

        What cannot be read leaves the settings as they are, and is tried again by the next turn. Where there are none
        from before, nothing may begin: raises ConfigError. `beginning`: turns that wait for this and use nothing yet,
        0 or 1.
        """
        if self._stamp is None:
            return ()
        async with self._refreshing:  # turns that begin together read once
            if await config_stamp(self._shared, self._path, self._agent.client_env) == self._stamp:
                return ()
            config, known = self._agent.config, self.warnings()
            try:
                await self.reload(beginning)
            except ConfigError as error:
                if config.mistake:
                    raise
                log.warning("%s: the settings from before stay in force: %s", self._path, error)
                return (f"your settings cannot be read, and those from before the change stay in force: {error}",)
            if self._agent.config is not config:
                self._recorder.write(Batch(events=[updated(ConfigChanged(workspace_id=self._workspace_id))]))
            return [warning for warning in self.warnings() if warning not in known]

    async def ensure_read(self) -> None:
        """Raise ConfigError while nothing is known of what the files say: they are tried again first."""
        if self._agent.config.mistake:
            await self.refresh()

    async def reload(self, beginning: int = 0) -> None:
        """Read the configuration again. Turns under way keep what they have; `beginning`: as above."""
        stamp = await config_stamp(self._shared, self._path, self._agent.client_env)
        if self._agent.key_refused:
            self._shared.keys.forget()
        self._agent.reload(*await load_config(self._shared, self._path, self._agent.client_env))
        self._permissions.rules = rules_of(self._agent.config, self._path, self._shared, self._keeping.allow)
        await self._extensions.reload()
        self._stamp = stamp
        if self._lanes.turns_under_way <= beginning:
            await self._agent.close_retired()

    async def prefer_model(self, role: ModelRole, choice: SelectedModel) -> None:
        """Use this model in the workspace instead of the configured one, until it is released: see V1_CLIENTS.md."""
        self._agent.prefer(role, f"{choice.provider}/{choice.model}" if choice.provider else choice.model)
        await self._changed()

    def default_small_model(self, provider_id: str) -> SelectedModel:
        """The model for small things, of one provider: the small one if it is of that, else the large or any."""
        provider = self._agent.config.providers.get(provider_id)
        if provider is None:
            raise NotFound(f"there is no provider {provider_id!r}")
        for role in ("small", "large"):
            reference = getattr(self._agent.config.models, role)
            chosen = find(self._agent.config, reference) if reference else None
            if chosen and chosen.provider_id == provider_id:
                return SelectedModel(model=chosen.model.id, provider=provider_id)
        alone = Config(providers={provider_id: provider})
        found = resolve(alone, "small")
        return SelectedModel(model=found.model.id if found else "", provider=provider_id)

    async def set_preference(self, key: str, value: Any) -> None:
        """How the user likes clients to look. Raises as `Preferences.set` does."""
        await self._shared.preferences.set(key, value)
        await self._changed()

    async def remove_preference(self, key: str) -> None:
        await self._shared.preferences.remove(key)
        await self._changed()

    def init_prompt(self) -> str:
        """What an agent is asked that writes down what there is to know about a project: `covey init`."""
        return resources.files("covey.context").joinpath("init.md").read_text("utf-8").strip()

    async def _changed(self) -> None:
        change = ConfigChanged(workspace_id=self._workspace_id)
        await confirmed(self._recorder.write(Batch(events=[updated(change)])))

    async def allow_always(self, intent: Intent, reach: Reach, by_prefix: bool = False) -> None:
        """Write down rules that grant this intent from now on in this directory, and read them."""
        from covey.config.edit import add_permission_rule  # late: seldom needed

        rules = (prefix_rules if by_prefix else session_rule)(intent, self._permissions.rules)
        if not rules:
            raise BadRequest("no rule can say exactly this; it is allowed for this session", "no_rule")
        if self._keeping.is_used:
            await self._keeping.add(rules, reach)
        else:
            await asyncio.to_thread(
                add_permission_rule, self._shared.environ, Path(self._path), "allow", rules, reach=reach
            )
        await self.reload()


def rules_of(config: Config, path: str, shared: Shared, kept: tuple[str | AllowRule, ...] = ()) -> Rules:
    """The rules by which tool calls are judged in a directory. `kept`: what is allowed beside what files say."""
    permissions = msgspec.structs.replace(config.permissions, allow=config.permissions.allow + kept)
    return Rules(
        permissions.allowed,
        permissions.deny,
        permissions.ask,
        path,
        own_directories(shared),
        networked=permissions.allowed_with(network=True),
        unsandboxed=permissions.allowed_with(sandbox="off"),
        required=permissions.allowed_with(sandbox="required"),
    )
