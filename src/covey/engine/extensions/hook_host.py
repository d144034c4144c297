"""The hooks of a workspace: which there are, which may run, and what those say that are meant by an event.

A project's hook runs only while its very content is approved, scripts of the project that it names included. That is
looked at each time it is run: a model may have changed such a script a moment ago.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from covey.config.approvals import JudgedEntry
from covey.config.expand import expand
from covey.config.hooks import PROJECT_FILES, HookEntry, HookFile, hooks_in_project, hooks_of
from covey.config.load import PROJECT_FILE, config_dir, is_trusted
from covey.config.schema import ConfigError
from covey.engine.extensions.hook_process import run_hook
from covey.engine.extensions.kind import ExtensionParts
from covey.lifecycle.hook_matching import fits
from covey.lifecycle.hooks import HookAnswer, merged, read_answer
from covey.protocol.extensions import ExtensionState, ExtensionView
from covey.protocol.hook_events import HookEvent
from covey.tools.base import Tool
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Hooks that run at the same time in a workspace; further ones wait."""
CLOSING_S = 1.5
"""How long all SessionEnd hooks together may delay the closing of a workspace (H11)."""
PROJECT_DIR = ("CLAUDE_PROJECT_DIR", "COVEY_PROJECT_DIR")
"""The variables by which a hook finds the workspace's directory."""


class HookHost:
    """All hooks of a workspace."""

    def __init__(self, parts: ExtensionParts) -> None:
        self._parts = parts
        self._own: HookFile = HookFile()
        self._projects: HookFile = HookFile()
        self._judged: dict[str, JudgedEntry] = {}
        """What is known of the project's, by digest: for views alone."""
        self._places = asyncio.Semaphore(AT_ONCE)
        self._background: set[asyncio.Task[Any]] = set()
        self.last_words: Callable[[], list[Coroutine[Any, Any, Any]]] = list
        """What sessions still have to say when the workspace closes."""

    # ── which there are ──

    async def reload(self) -> None:
        """Read what the files name now, and ask about what nobody has approved. Raises ConfigError."""
        config, root = self._parts.config(), self._parts.root
        user_file = config_dir(self._parts.shared.environ) / "config.toml"
        self._own = hooks_of(config.hooks, user_file, is_users_own=True)
        named = hooks_of(config.of_project.hooks, root / PROJECT_FILE, is_users_own=False)
        found = HookFile()
        if self._may_have_hooks():
            found = await in_thread(self._in_project)
        self._projects = HookFile((*named.hooks, *found.hooks), (*named.left_out, *found.left_out))
        await self._approved(self._projects.hooks)

    def _may_have_hooks(self) -> bool:
        """Few projects do, and for the others no thread is worth it."""
        return any(os.path.lexists(self._parts.root / name) for name in PROJECT_FILES)

    def _in_project(self) -> HookFile:
        """Of a directory that nobody trusts nothing is even read: `covey trust` says what it has."""
        if not is_trusted(self._parts.root, self._parts.shared.environ):
            return HookFile()
        return hooks_in_project(self._parts.root)

    async def _approved(self, hooks: Sequence[HookEntry]) -> list[HookEntry]:
        """Those that may run as they are now; about the others somebody is asked."""
        judged = await self._parts.judge([hook.entry for hook in hooks])
        for each in judged:
            self._judged[each.entry.name] = each
            if not each.is_approved:
                self._parts.ask_about(each, lambda: None)
        return [hook for hook, each in zip(hooks, judged, strict=True) if each.is_approved]

    def views(self) -> list[ExtensionView]:
        own = [
            ExtensionView(kind="hook", name=hook.name, state="ready", source=_source(hook)) for hook in self._own.hooks
        ]
        theirs = [self._view(hook) for hook in self._projects.hooks]
        left_out = [*self._own.left_out, *self._projects.left_out]
        views = own + theirs
        if left_out:
            views.append(ExtensionView(kind="hook", name="hooks", state="off", left_out=tuple(left_out)))
        return views

    def _view(self, hook: HookEntry) -> ExtensionView:
        judged = self._judged.get(hook.name)
        state: ExtensionState = "ready" if judged and judged.is_approved else "needs_approval"
        return ExtensionView(kind="hook", name=hook.name, state=state, source=_source(hook))

    def tools(self) -> Mapping[str, Tool[Any]]:
        return {}

    def pids(self) -> Mapping[str, int]:
        return {}

    # ── running them ──

    def has(self, event: HookEvent) -> bool:
        """Whether anything could be said at an event: costs nothing where nobody has hooks."""
        return any(hook.event == event for hook in (*self._own.hooks, *self._projects.hooks))

    async def run(self, event: HookEvent, names: Sequence[str], told: Mapping[str, Any], tag: str) -> HookAnswer:
        """What the hooks say that are meant: side by side, merged in the order of their files.

        `names`: what their matchers are about. Cancelling this ends their processes, and returns when they are gone.
        """
        meant = [
            hook
            for hook in (*self._own.hooks, *self._projects.hooks)
            if hook.event == event and fits(hook.entry.matcher, names)
        ]
        theirs = [hook for hook in meant if not hook.entry.is_users_own]
        if theirs:
            try:
                may = await self._approved(theirs)
            except ConfigError as error:  # what is trusted cannot be read: then nothing is
                log.warning("hooks of the project are left out: %s", error)
                may = []
            meant = [hook for hook in meant if hook.entry.is_users_own or hook in may]
        if not meant:
            return HookAnswer()
        data = msgspec.json.encode(told)
        ends = await asyncio.gather(*(self._one(hook, data, tag) for hook in meant), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        given = told.get("tool_input")
        return merged([end for end in ends if isinstance(end, HookAnswer)], given if isinstance(given, dict) else None)

    async def _one(self, hook: HookEntry, told: bytes, tag: str) -> HookAnswer:
        parts = self._parts
        named = expand(dict(hook.entry.variables), parts.environ(), []) if not hook.entry.is_users_own else None
        env = parts.environment(named or hook.entry.variables) | dict.fromkeys(PROJECT_DIR, str(parts.root))
        async with self._places:
            end = await run_hook(parts.processes, hook, told, root=parts.root, env=env, tag=tag)
        return read_answer(hook.event, hook.name, end, hook.on_failure, _source(hook))

    def run_aside(self, said: Coroutine[Any, Any, Any]) -> None:
        """Run what nobody waits for: it ends with the workspace at the latest."""
        task = asyncio.ensure_future(said)
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("a hook that nobody waits for failed: %r", error)

    async def close(self) -> None:
        """Let sessions say their last words, within their bound, and end everything."""
        for said in self.last_words():
            self.run_aside(said)
        if self._background:
            await asyncio.wait(self._background, timeout=CLOSING_S)
        left = list(self._background)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


def _source(hook: HookEntry) -> str:
    return str(hook.entry.source)
