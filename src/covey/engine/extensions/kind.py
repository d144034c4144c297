"""What one kind of extensions is to its workspace, and what it gets from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from covey.config.approvals import ExtensionEntry, JudgedEntry, approval_of, approve, judge_entries
from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.schema import Config
from covey.engine.asks.approvals import ApprovalDesk
from covey.engine.shared import Shared
from covey.machine.names import tag_within, workspace_tag
from covey.protocol.events import Payload
from covey.protocol.extensions import ApprovalRequest, ExtensionView
from covey.sandbox.confinement import Confinement
from covey.tools.base import Tool
from covey.tools.environment import extension_environment
from covey.tools.locales import in_utf8
from covey.tools.processes import LiveProcesses
from covey.tools.threads import in_thread


async def _unconfined() -> Confinement:
    return Confinement()


@dataclass(frozen=True, slots=True)
class ExtensionParts:
    """What every kind needs of its workspace."""

    workspace_id: str
    root: Path
    shared: Shared
    processes: LiveProcesses
    desk: ApprovalDesk
    config: Callable[[], Config]
    """As it is now."""
    environ: Callable[[], Mapping[str, str]]
    """Of the server and of the client that opened the workspace: where variables of an entry are looked up."""
    announce: Callable[[Payload], None]
    """Tells every client, without keeping it."""
    confine: Callable[[], Awaitable[Confinement]] = _unconfined
    """What an approved command with the network is confined by, for those whose entry wants that."""

    def tag(self, kind: str, name: str) -> str:
        """What marks the processes of an extension: within the workspace's tag, so that the next start finds them."""
        return tag_within(workspace_tag(self.workspace_id, self.shared.ownership.node), f"{kind}-{name}")

    def environment(self, named: Mapping[str, str]) -> dict[str, str]:
        """Of a process: a short list of variables, and what its entry names, with variables looked up."""
        config = self.config()
        keys = PROVIDERS_KEYS.union(config.key_variables)
        return in_utf8(extension_environment(self.environ(), named, keys, config.tools.pass_env))

    async def judge(self, entries: Sequence[ExtensionEntry]) -> list[JudgedEntry]:
        """Which of them may be used here. Raises ConfigError."""
        if not entries:
            return []
        return await in_thread(lambda: judge_entries(entries, self.root, self.shared.environ))

    def ask_about(self, judged: JudgedEntry, then: Callable[[], Any]) -> str:
        """Ask whether an entry may be used, if that is to be asked. `then` is called once it is approved.

        Gives the id of the request.
        """
        if judged.may_be_asked_about:

            async def approved(request: ApprovalRequest) -> None:
                await in_thread(lambda: approve(self.shared.environ, self.root, (request.id,)))
                then()

            self.desk.ask(approval_of(judged, self.root), approved)
        return judged.digest


class ExtensionHost(Protocol):
    """All extensions of one kind in a workspace."""

    async def reload(self) -> None:
        """The configuration was read again. Starts nothing that somebody would have to wait for."""
        ...

    def views(self) -> list[ExtensionView]:
        """Each of them, as clients see it, without what costs a look at the machine."""
        ...

    def tools(self) -> Mapping[str, Tool[Any]]:
        """What they add to the tools of every run, in a steady order. Costs nothing while nothing changes."""
        ...

    def pids(self) -> Mapping[str, int]:
        """The first process of each that runs, by name."""
        ...

    async def close(self) -> None:
        """The workspace closes: end everything."""
        ...
