"""The configuration of a workspace: what clients may see of it, and reading it again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from covey.config.schema import Config
from covey.config.view import view
from covey.engine.agent import Agent
from covey.engine.asks.permissions import PermissionDesk
from covey.engine.lanes.lanes import Lanes
from covey.engine.shared import Shared, load_config, own_directories
from covey.permissions.judge import Intent, Rules, session_rule
from covey.permissions.reach import Reach
from covey.protocol.errors import BadRequest
from covey.protocol.requests import AgentInfo, ConfigView


class WorkspaceSettings:
    """Holds no configuration itself: the agent has it, and the permission desk has the rules made from it."""

    def __init__(self, path: str, shared: Shared, agent: Agent, permissions: PermissionDesk, lanes: Lanes) -> None:
        self._path = path
        self._shared = shared
        self._agent = agent
        self._permissions = permissions
        self._lanes = lanes

    def config(self) -> ConfigView:
        """The configuration, without secrets."""
        return view(self._agent.config, self._shared.data_dir)

    def warnings(self) -> tuple[str, ...]:
        """What in the files was not taken, and why."""
        return tuple(self._agent.warnings)

    def agent_info(self) -> AgentInfo:
        """The model, and whether anything runs."""
        return self._agent.info(is_busy=self._lanes.is_busy)

    async def reload(self) -> None:
        """Read the configuration again. Turns under way keep what they have."""
        if self._agent.key_refused:
            self._shared.keys.forget()
        self._agent.reload(*await load_config(self._shared, self._path, self._agent.client_env))
        self._permissions.rules = rules_of(self._agent.config, self._path, self._shared)
        if not self._lanes.is_busy:
            await self._agent.close_retired()

    async def allow_always(self, intent: Intent, reach: Reach) -> None:
        """Write down a rule that grants this intent from now on in this directory, and read it."""
        from covey.config.edit import add_permission_rule  # late: seldom needed

        rules = session_rule(intent, self._permissions.rules)
        if not rules:
            raise BadRequest("no rule can say exactly this; it is allowed for this session", "no_rule")
        await asyncio.to_thread(
            add_permission_rule, self._shared.environ, Path(self._path), "allow", rules, reach=reach
        )
        await self.reload()


def rules_of(config: Config, path: str, shared: Shared) -> Rules:
    """The rules by which tool calls are judged in a directory."""
    permissions = config.permissions
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
