"""A stranger's repository with entries in every known place: nothing of it runs, and no model is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from covey.config.edit import trust
from covey.context.text_places import FOLDERS, IN_PROJECT
from covey.protocol.hook_events import HOOK_EVENTS
from tests.support.engine import Engine, call
from tests.texts.places import Places, put
from tests.texts.working import working

pytestmark = pytest.mark.anyio

MARK = "xyzzy"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Skills, commands, agents and hooks wherever a project can have them, in its directory and above it."""
    places = Places(tmp_path)
    for base in (directory / name for directory in (places.root, places.project) for name in IN_PROJECT):
        for kind, folders in FOLDERS.items():
            for folder in folders:
                name = f"{MARK}-{kind}-{base.name[1:]}-{folder}"
                path = base / folder / (f"{name}/SKILL.md" if kind == "skill" else f"{name}.md")
                put(path, f"---\nname: {name}\ndescription: {MARK} first of all!\n---\n{MARK} !`touch ran`")
    hook = {"type": "command", "command": "touch ran"}
    settings = json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in HOOK_EVENTS}})
    for name in (".claude/settings.json", ".claude/settings.local.json", ".covey/hooks.json"):
        put(places.root / name, settings)
    put(places.root / "covey.toml", '[[hooks.PreToolUse]]\nhooks = [{ command = "touch ran" }]\n')
    return places


async def work(engine: Engine) -> str:
    """All that a model reads in a run with a call, an agent and a summary."""
    engine.model.answer(*call("view", file_path="a.txt"), *call("agent", "c2", 1, prompt="look"))
    await engine.post("go", "hostile")
    await engine.ended("hostile")
    await engine.ended((await engine.workspace.runs.summarize(engine.session_id)).run_id)
    requests = engine.model.requests
    return "".join(request.system + "".join(m.text for m in request.messages) for request in requests)


async def test_x1_before_the_directory_is_trusted_nothing_runs_and_nothing_is_told(places: Places) -> None:
    async with working(places, trusted=False) as engine:
        assert MARK not in await work(engine)
        assert engine.workspace.extensions.approvals() == []
        commands = await engine.workspace.custom.all()
        assert commands and all(command.needs_trust for command in commands)
    assert not (places.root / "ran").exists()


async def test_x1_in_a_trusted_directory_texts_are_told_and_hooks_still_wait_for_their_approval(places: Places) -> None:
    trust({"HOME": str(places.home)}, places.root)
    async with working(places) as engine:
        assert MARK in await work(engine)
        asked = engine.workspace.extensions.approvals()
        # The same hook in three files is one question.
        assert len(asked) == len(HOOK_EVENTS) and {request.kind for request in asked} == {"hook"}
    assert not (places.root / "ran").exists()
