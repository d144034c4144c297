"""What one MCP server may offer: the tools of its pins that it still has unchanged. Others wait for an approval."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from covey.config.approvals import JudgedEntry, approval_of
from covey.config.schema import McpSettings
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.mcp_definitions import TEXT_LIMIT, cleaned, digest_of_tool, usable_tools
from covey.engine.extensions.mcp_pins import PinFile, PinnedPrompt, Pins
from covey.engine.extensions.mcp_skills import PinnedSkill, usable_skills
from covey.lifecycle.pins import compare_pins
from covey.protocol.extensions import ApprovalRequest, OfferedTool
from covey.tools.mcp.client import Listed, ListResult, McpClient
from covey.tools.mcp.words import McpError
from covey.tools.threads import in_thread

LIST_S = 30.0
"""How long a server may take for one page of a list."""


class Catalogue:
    """Pins, what the server said last, and what is asked about the difference."""

    def __init__(
        self, parts: ExtensionParts, judged: JudgedEntry, settings: McpSettings, on_change: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._judged = judged
        self._settings = settings
        self._on_change = on_change
        self._file = PinFile(parts.shared.data_dir, judged.digest)
        self._asked = ""
        self.pins = Pins()
        self.offered: dict[str, OfferedTool] = {}
        """By the server's name: what the model may call."""
        self.skills: tuple[PinnedSkill, ...] = ()
        """What the model may be given."""
        self.withheld: tuple[str, ...] = ()
        self.left_out: list[str] = []

    @property
    def is_known(self) -> bool:
        """Its pins say what it offers: it need not be started for that."""
        return self.pins.era is not None

    async def load(self) -> None:
        self.pins = await in_thread(self._file.read)
        self._offer_all()

    def _offer_all(self) -> None:
        """All that is pinned, as long as nothing else is known."""
        self.offered = self._enabled({tool.name: tool for tool in self.pins.tools})
        self.skills = self.pins.skills

    def close(self) -> None:
        self._parts.desk.withdraw(self._asked)

    async def learn(self, client: McpClient) -> None:
        """Ask a running server for its lists. If that fails, all stays as it was. Raises McpError."""
        listed = await self._list(client, "tools")
        tools, left_out = usable_tools(listed.items)
        skills, wrong_skills = usable_skills((await self._list(client, "skills")).items)
        prompts = await self._list(client, "prompts")
        resources = await self._list(client, "resources")
        seen = Pins(
            era=client.facts.era,
            instructions=cleaned(client.facts.instructions)[:TEXT_LIMIT],
            tools=tuple(tools[name] for name in sorted(tools)),
            skills=tuple(skills[uri] for uri in sorted(skills)),
            prompts=tuple(found for item in prompts.items if (found := _prompt(item))),
            resources=len(resources.items),
        )
        self.left_out = [*left_out, *wrong_skills, *listed.warnings, *prompts.warnings]
        await self._compare(seen)

    async def _list(self, client: McpClient, what: Listed) -> ListResult:
        if not client.facts.has(what):
            return ListResult()
        try:
            return await client.list(what, LIST_S)
        except McpError:
            if what in ("tools", "skills"):  # these are pinned
                raise
            return ListResult()

    async def _compare(self, seen: Pins) -> None:
        found = compare_pins(self.pins.digests, seen.digests)
        tools = {tool.name: tool for tool in seen.tools}
        before = self.offered, self.skills, self.withheld
        self.offered = self._enabled({name: tools[name] for name in found.same if name in tools})
        self.skills = tuple(skill for skill in seen.skills if skill.uri in found.same)
        self.withheld = tuple(name for name in found.withheld if name not in self._settings.disabled_tools)
        same_words = seen.instructions == self.pins.instructions
        if not found.withheld and (same_words or not self.is_known):
            await self._remember(seen)  # nothing in it is new to whoever approved it
        else:
            # What is not approved is not kept; that the era and the prompts are known costs nothing.
            self.pins = msgspec.structs.replace(self.pins, era=seen.era, prompts=seen.prompts, resources=seen.resources)
            self._ask(seen, found.new, found.changed)
        if before != (self.offered, self.skills, self.withheld):
            self._on_change()

    async def _remember(self, seen: Pins) -> None:
        if seen != self.pins:
            await in_thread(lambda: self._file.write(seen))
        self.pins = seen

    def _enabled(self, tools: dict[str, OfferedTool]) -> dict[str, OfferedTool]:
        return {name: tools[name] for name in sorted(tools) if name not in self._settings.disabled_tools}

    def _ask(self, seen: Pins, new: tuple[str, ...], changed: tuple[str, ...]) -> None:
        """Show all that it offers, and what is different from before."""
        pinned = {each.name: each for each in self.pins.shown}
        tools = tuple(
            msgspec.structs.replace(
                tool,
                change="new" if tool.name in new else "changed" if tool.name in changed else "same",
                diff=_diff(pinned[tool.name], tool) if tool.name in changed else None,
            )
            for tool in seen.shown
        )
        digest = hashlib.sha256(
            "\n".join((self._judged.digest, seen.instructions, *map(digest_of_tool, seen.shown))).encode()
        )
        request = msgspec.structs.replace(
            approval_of(self._judged, Path(self._parts.root)),
            id=digest.hexdigest(),
            what="tools",
            tools=tools,
            instructions=seen.instructions or None,
        )
        if self._asked != request.id:
            self._parts.desk.withdraw(self._asked)
        self._asked = request.id

        async def approved(request: ApprovalRequest) -> None:
            await in_thread(lambda: self._file.write(seen))
            self.pins = seen
            self._offer_all()
            self.withheld = ()
            self._on_change()

        self._parts.desk.ask(request, approved)


def _prompt(item: dict[str, Any]) -> PinnedPrompt | None:
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str) or not name or len(name) > 128:
        return None
    wanted = [each for each in (arguments if isinstance(arguments, list) else ()) if isinstance(each, dict)]
    return PinnedPrompt(
        name=cleaned(name),
        description=cleaned(str(item.get("description") or item.get("title") or ""))[:TEXT_LIMIT],
        arguments=tuple((cleaned(str(each.get("name"))), each.get("required") is True) for each in wanted),
    )


def _diff(before: OfferedTool, after: OfferedTool) -> str:
    def lines(tool: OfferedTool) -> list[str]:
        content = {"description": tool.description, "schema": tool.schema, "annotations": tool.annotations}
        return msgspec.json.format(msgspec.json.encode(content), indent=1).decode().split("\n")

    changed = difflib.unified_diff(lines(before), lines(after), "approved", "now", lineterm="", n=1)
    return "\n".join(changed)
