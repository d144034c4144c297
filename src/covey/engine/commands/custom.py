"""The custom commands of a workspace, as faces list them, and what each of them says."""

from __future__ import annotations

from covey.config.load import is_trusted
from covey.config.schema import ConfigError
from covey.context.texts import TextFile, Texts, read_texts
from covey.engine.agent import Agent
from covey.engine.expansion import NotTrusted, expanded, listed
from covey.engine.shared import Shared
from covey.protocol.custom import CustomCommand, ExpandCommand, ExpandedCommand
from covey.protocol.errors import Conflict, Forbidden, NotFound
from covey.protocol.v1 import SkillAbout, SkillContent, SkillInfo
from covey.tools.base import ToolFailed
from covey.tools.threads import in_thread


def _source(file: TextFile) -> str:
    return "user" if file.is_own else "project"


class CustomCommands:
    """Reads the files at each question: they are few, and people edit them meanwhile."""

    def __init__(self, agent: Agent, shared: Shared) -> None:
        self._agent = agent
        self._environ = shared.environ
        self._newest: Texts | None = None

    async def all(self) -> list[CustomCommand]:
        """What can be asked for by name, in the order of names."""
        files = listed(await self._now())
        named = {command.name for command in files}
        return [*files, *(each for each in self._agent.prompts.commands() if each.name not in named)]

    async def expand(self, request: ExpandCommand) -> ExpandedCommand:
        """What a command says. Raises NotFound, or Forbidden for one of a project that is not trusted."""
        try:
            found = expanded(await self._now(), request.name.removeprefix("/"), request.arguments)
        except NotTrusted as refused:
            raise Forbidden(str(refused), "not_trusted") from None
        if found is None:
            found = await self._prompt(request)
        if found is None:
            raise NotFound(f"there is no command /{request.name.removeprefix('/')[:100]} here", "command_not_found")
        return found

    async def _prompt(self, request: ExpandCommand) -> ExpandedCommand | None:
        try:
            return await self._agent.prompts.expand(request.name.removeprefix("/"), request.arguments)
        except ToolFailed as error:
            raise Conflict(str(error), "extension_failed") from None

    async def v1_skills(self) -> list[SkillInfo]:
        """The skills that there are, for v1 clients."""
        return [
            SkillInfo(
                id=skill.name,
                name=skill.name,
                description=skill.description,
                label=skill.name,
                source=_source(skill),
                user_invocable=skill.is_for_people,
            )
            for skill in (await self._now()).all("skill")
        ]

    async def v1_skill(self, name: str) -> SkillContent:
        """What a skill says, for v1 clients. Raises NotFound."""
        skill = (await self._now()).find("skill", name)
        if skill is None:
            raise NotFound(f"there is no skill {name[:100]!r} here")
        about = SkillAbout(name=skill.name, description=skill.description, source=_source(skill))
        return SkillContent(content=skill.body.encode(), result=about)

    async def _now(self) -> Texts:
        self._newest = await in_thread(self._read)
        return self._newest

    def _read(self) -> Texts:
        root = self._agent.root
        try:
            trusted = is_trusted(root, self._environ)
        except ConfigError:  # reported where the configuration is read
            trusted = False
        return read_texts(root, self._environ, trusted=trusted, previous=self._newest)
