"""A file of the configuration that was changed by hand counts from the next turn on, whoever keeps it open."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from covey.engine.shared import Shared, load_config
from covey.engine.workspace import Workspace
from covey.engine.workspaces import Workspaces
from covey.engine.world import World
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Run
from covey.protocol.who import Who
from covey.store.journal import Journal
from tests.support.disk import BOUND_S, Disk
from tests.support.engine import Gate, Model, Work, call, look_around, within

pytestmark = pytest.mark.anyio

PROVIDER = """
[models]
large = "one/m"
[providers.one]
type = "scripted"
models = [{ id = "m" }]
"""
DENY = '[permissions]\ndeny = ["work"]\n'


@dataclass
class Opened:
    """A directory that somebody keeps open, with real files."""

    workspace: Workspace
    file: Path
    """The user's own."""
    project: Path
    model: Model
    tool: Work
    session_id: str
    loads: int = 0

    async def run(self, run_id: str, **options: object) -> Run:
        request = PostPrompt(session_id=self.session_id, prompt="go", run_id=run_id, **options)  # type: ignore[arg-type]
        await within(self.workspace.runs.post(request))
        return await within(self.workspace.runs.get(run_id, BOUND_S))

    async def told(self, run_id: str) -> list[str]:
        """The warnings of a run, as they were published."""
        entries = await self.workspace._parts.read(self.workspace._parts.store.events, 0, 10_000, "", 10_000)
        texts = [entry.encoded.decode() for entry in entries]
        return [text for text in texts if '"type":"warning"' in text and f'"run_id":"{run_id}"' in text]


@contextlib.asynccontextmanager
async def opened(directory: Path, written: str = PROVIDER) -> AsyncIterator[Opened]:
    home, project, data = directory / "home", directory / "project", directory / "data"
    for each in (home / ".config/covey", project, data):
        each.mkdir(parents=True)
    file = home / ".config/covey/config.toml"
    file.write_text(written)
    store, model, tool = Disk(), Model(), Work()
    environ = {"HOME": str(home)}
    journal = Journal(store)
    nothing = {"end_processes": lambda tag: 0, "end_jobs": lambda ids: 0}
    shared = Shared(store, journal, World(), data, None, environ, **nothing)  # type: ignore[arg-type]
    all_of_them = Workspaces(shared, lambda: None, 0.0)
    with (
        mock.patch("covey.engine.agent.open_client", return_value=model),
        mock.patch("covey.engine.agent.make_tools", return_value={"work": tool.value}),
        mock.patch("covey.engine.agent.look_around", look_around),
        mock.patch("covey.engine.commands.settings.load_config", side_effect=load_config) as loading,
    ):
        await all_of_them.start()
        workspace = await all_of_them.create(str(project), Who(client_id="a"), yolo=False, env={})
        session = await workspace.sessions.create("")
        found = Opened(workspace, file, project, model, tool, session.id)
        try:
            yield found
            found.loads = loading.call_count
        finally:
            await within(all_of_them.close())
            await within(journal.aclose(BOUND_S))


async def test_a_deny_rule_written_by_hand_counts_for_the_next_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.model.answer(*call())
        assert (await here.run("a")).state == "completed"
        assert len(here.tool.calls) == 1
        here.file.write_text(PROVIDER + DENY)
        here.model.answer(*call())
        assert (await here.run("b")).state == "completed"
        assert len(here.tool.calls) == 1, "what is forbidden was run"


async def test_a_run_that_waited_while_a_file_was_changed_begins_with_what_it_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        gate = Gate()
        here.model.answer(gate, "first")
        here.model.answer(*call())
        for run_id in ("a", "b"):
            request = PostPrompt(session_id=here.session_id, prompt="go", run_id=run_id)
            await within(here.workspace.runs.post(request))
        await gate.reached()
        here.file.write_text(PROVIDER + DENY)
        gate.open()
        assert (await within(here.workspace.runs.get("b", BOUND_S))).state == "completed"
        assert here.tool.calls == []


async def test_nothing_is_read_again_while_no_file_has_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        for run_id in ("a", "b", "c"):
            await here.run(run_id)
    assert here.loads == 0


async def test_a_broken_file_leaves_the_settings_and_is_told_with_each_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.file.write_text(PROVIDER + DENY)
        here.model.answer(*call())
        await here.run("a")
        here.file.write_text("[permissions\n")
        for run_id in ("b", "c"):
            here.model.answer(*call())
            assert (await here.run(run_id)).state == "completed"
            (warning,) = await here.told(run_id)
            assert "stay in force" in warning
            assert "is not valid TOML" in warning
        assert here.tool.calls == [], "what was forbidden before is forbidden still"
        here.file.write_text(PROVIDER)
        here.model.answer(*call())
        await here.run("d")
        assert await here.told("d") == []
        assert len(here.tool.calls) == 1


async def test_what_an_untrusted_project_says_by_now_counts_as_little_as_ever(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.tool.harmless = False
        (here.project / "covey.toml").write_text('[permissions]\nallow = ["work"]\n')
        await here.run("a")
        (warning,) = await here.told("a")
        assert "not trusted" in warning
        assert here.workspace._parts.agent.config.permissions.allow == ()
        (here.project / "covey.toml").write_text(DENY)
        here.model.answer(*call())
        await here.run("b")
        assert here.tool.calls == []


async def test_a_model_that_a_file_names_by_now_can_be_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.file.write_text(PROVIDER + '[providers.two]\ntype = "scripted"\nmodels = [{ id = "n" }]\n')
        assert (await here.run("a", model="two/n")).state == "completed"
