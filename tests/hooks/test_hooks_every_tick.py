"""A cancel at each single step of a turn with hooks, on the deterministic loop: one terminal event, no hook left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from covey.lifecycle.hooks import HookAnswer, HookDecision
from covey.protocol.hook_events import HookEvent
from tests.engine.test_every_tick import explore, steps
from tests.sim.shell import Shell


class SlowHooks:
    """Hooks for every event, each of which takes some steps; what they say is decided by the test."""

    def __init__(self, said: Mapping[HookEvent, HookAnswer] | None = None) -> None:
        self.running = 0
        self.heard: list[HookEvent] = []
        self._said = said or {}
        self._aside: set[asyncio.Task[Any]] = set()

    def has(self, event: HookEvent) -> bool:
        return True

    async def reload(self) -> None:
        await steps(1)

    async def run(self, event: HookEvent, names: Sequence[str], told: Mapping[str, Any], tag: str) -> HookAnswer:
        self.heard.append(event)
        self.running += 1
        try:
            await steps(3)
        finally:
            try:
                await steps(1)  # as a process takes its time to end
            finally:
                self.running -= 1
        answer = self._said.get(event, HookAnswer())
        return replace(answer, reason=f"{answer.reason} {len(self.heard)}")  # no model reads the same words twice

    def run_aside(self, said: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(said)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def settle(self) -> None:
        while self._aside:
            await asyncio.wait(self._aside)


async def opened(hooks: SlowHooks) -> tuple[Shell, str]:
    shell = Shell()
    await shell.open()
    shell.workspace._parts.turns.hooks._source = hooks
    return shell, await shell.session()


SAID: dict[str, dict[HookEvent, HookAnswer]] = {
    "words": {
        "SessionStart": HookAnswer(context="begin"),
        "UserPromptSubmit": HookAnswer(context="more"),
        "PreToolUse": HookAnswer(context="before"),
        "PostToolUse": HookAnswer(HookDecision.DENY, "after"),
    },
    "no call": {"PreToolUse": HookAnswer(HookDecision.DENY, "no")},
    "no prompt": {"UserPromptSubmit": HookAnswer(HookDecision.DENY, "no")},
    "no end": {"Stop": HookAnswer(HookDecision.DENY, "go on")},
    "end now": {"PostToolUse": HookAnswer(stops=True, stop_reason="enough")},
}


@pytest.mark.parametrize("said", SAID)
def test_a_cancel_at_each_step_of_a_turn_with_hooks(said: str) -> None:
    async def scenario(_: Shell, count: int) -> bool:
        hooks = SlowHooks(SAID[said])
        shell, session = await opened(hooks)
        await shell.post(session, "tool", run_id="a")
        await shell.post(session, "next", run_id="b", mode="own_turn")
        await steps(count)
        await shell.cancel_run("a")
        await shell.settle()
        await hooks.settle()
        assert hooks.running == 0, hooks.heard
        expected = "failed" if said == "no prompt" else "completed"
        assert (await shell.workspace.runs.get("b")).state == expected
        return "a" in shell.cancelled

    assert explore(scenario) > 10


def test_a_cancel_at_each_step_reaches_folded_prompts_and_their_hooks() -> None:
    async def scenario(_: Shell, count: int) -> bool:
        hooks = SlowHooks(SAID["words"])
        shell, session = await opened(hooks)
        await shell.post(session, "tool", run_id="a")
        await shell.post(session, "folds in")
        await steps(count)
        await shell.cancel(session)
        await shell.settle()
        await hooks.settle()
        assert hooks.running == 0
        return bool(shell.cancelled)

    assert explore(scenario) > 20
