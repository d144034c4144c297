"""Hooks that a project names: none runs before its very content was approved, and none after it has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from covey.cli import trust as cli_trust
from covey.config.approvals import approve, digest_of, entries_of
from covey.config.edit import trust
from covey.config.hooks import MAX_HOOKS, hooks_in_project
from covey.config.load import load
from covey.config.origins import origins
from tests.hooks.hooking import RUN, Scripts, play
from tests.support.engine import Engine, call, within

pytestmark = pytest.mark.anyio


class Project(Scripts):
    """A project with a hook for Claude Code, which touches a file."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.environ = {"HOME": str(directory)}
        self.script = self.project / ".claude" / "hooks" / "check.sh"
        self.script.parent.mkdir(parents=True)
        self.script.write_text("touch ran\n")
        self.settings(command='sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh')
        self.runs = 0

    def settings(self, matcher: str = "LS", **hook: Any) -> None:
        hooks = {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", **hook}]}]}
        (self.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks, "permissions": {}}))

    def approve(self) -> None:
        digests = [digest_of(entry, self.project) for entry in entries_of(self.project, self.environ)]
        approve(self.environ, self.project, digests)

    async def runs_hook(self, engine: Engine) -> bool:
        """Whether a call runs the hook."""
        self.runs += 1
        engine.model.answer(*call("ls"))
        await play(engine, f"{RUN}-{self.runs}")
        ran = self.project / "ran"
        was = ran.exists()
        ran.unlink(missing_ok=True)
        return was


async def states(engine: Engine) -> list[str]:
    return [view.state for view in await engine.workspace.extensions.all() if view.kind == "hook"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_x1_nothing_runs_before_the_directory_is_trusted_and_nobody_is_asked_on_the_wire(
    project: Project,
) -> None:
    async with project.working({}) as engine:
        assert not await project.runs_hook(engine)
        assert engine.workspace.extensions.approvals() == []
        assert await states(engine) == []


async def test_x1_in_a_trusted_directory_a_hook_waits_for_its_approval_and_runs_after_it(project: Project) -> None:
    trust(project.environ, project.project)
    async with project.working({}) as engine:
        assert not await project.runs_hook(engine)
        (asked,) = engine.workspace.extensions.approvals()
        assert asked.kind == "hook" and asked.matcher == "LS" and "check.sh" in (asked.command or "")
        assert any("check.sh" in warning for warning in asked.warnings)
        assert await states(engine) == ["needs_approval"]
        assert await within(engine.workspace.extensions.answer(asked.id, approve=True))
        assert await project.runs_hook(engine)
        assert await states(engine) == ["ready"]


async def test_x1_what_was_refused_does_not_run(project: Project) -> None:
    trust(project.environ, project.project)
    async with project.working({}) as engine:
        await project.runs_hook(engine)
        (asked,) = engine.workspace.extensions.approvals()
        await within(engine.workspace.extensions.answer(asked.id, approve=False))
        assert not await project.runs_hook(engine)


@pytest.mark.parametrize("change", ["command", "matcher", "script", "script in the run"])
async def test_h9_and_x2_one_changed_byte_needs_another_approval(project: Project, change: str) -> None:
    trust(project.environ, project.project)
    project.approve()
    async with project.working({}) as engine:
        assert await project.runs_hook(engine)
        match change:
            case "command":
                project.settings(command='sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh ')
            case "matcher":
                project.settings("LS|Bash", command='sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh')
            case "script":
                project.script.write_text("touch ran \n")
            case _:
                script = ".claude/hooks/check.sh"
                engine.model.answer(*call("view", "c1", file_path=script))
                engine.model.answer(*call("write", "c2", file_path=script, content="touch ran; touch x\n"))
                engine.model.answer(*call("ls", "c3"))
                await play(engine, f"{RUN}-writes", yolo=True)
                assert not (project.project / "x").exists(), "a model rewrote what is run without the sandbox"
        assert not await project.runs_hook(engine)
        assert len(engine.workspace.extensions.approvals()) == 1


async def test_x2_what_is_not_executed_may_change_freely(project: Project) -> None:
    trust(project.environ, project.project)
    project.approve()
    project.settings(command='sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh', timeout=7, on_failure="ignore")
    async with project.working({}) as engine:
        assert await project.runs_hook(engine)


async def test_covey_trust_asks_about_hooks_also_where_there_is_no_covey_toml(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**project.environ, "XDG_CONFIG_HOME": ""}.items():
        monkeypatch.setenv(name, value)
    assert cli_trust._add(project.project, yes=False) == 0
    said = capsys.readouterr()
    assert "not approved, and not used: hook PreToolUse: sh" in said.err
    assert "settings.json: permissions: of this file only hooks are read" in said.err
    assert cli_trust._add(project.project, yes=True) == 0
    assert "Approved: hook PreToolUse: sh" in capsys.readouterr().out
    async with project.working({}) as engine:
        assert await project.runs_hook(engine)


def test_of_another_programs_settings_what_is_understood_is_taken_and_the_rest_is_named(project: Project) -> None:
    hooks = {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "one", "unknown": 1}]},
            {"matcher": "[", "hooks": [{"type": "command", "command": "two"}]},
            {"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "x"}]},
            {"hooks": [{"type": "command", "command": "three", "if": "Bash(rm *)"}]},
            {"hooks": [{"type": "command", "command": 3}]},
            "no group",
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "one"}, {"type": "command", "command": "one"}]}],
        "WorktreeCreate": [],
    }
    (project.project / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": hooks, "permissions": {"allow": ["Bash"]}, "env": {"A": "b"}})
    )
    (project.project / ".claude" / "settings.local.json").write_text("{no json")
    found = hooks_in_project(project.project)
    assert [hook.name for hook in found.hooks] == ["PreToolUse: one", "Stop: one", "Stop: one (2)"]
    assert len(found.left_out) == 7
    named = ("WorktreeCreate", "'['", "type command", "`if`")
    assert all(any(word in left for left in found.left_out) for word in named)
    assert [line.rpartition(": ")[2] for line in found.ignored] == ["env", "permissions"]


def test_a_file_with_very_many_hooks_has_a_bound(project: Project) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": f"c{n}"} for n in range(MAX_HOOKS + 5)]}]}
    (project.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    found = hooks_in_project(project.project)
    assert len(found.hooks) == MAX_HOOKS and len(found.left_out) == 5


def test_a_command_of_a_hook_keeps_its_variables_for_the_shell(project: Project) -> None:
    directory = project.directory.parent / ".config" / "covey"
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text(
        '[[hooks.Stop]]\nhooks = [{ command = "$CLAUDE_PROJECT_DIR/x ${HOME}", env = { A = "$HOME" } }]\n'
    )
    (group,) = load(None, None, project.environ).config.hooks["Stop"]
    assert group.hooks[0].command == "$CLAUDE_PROJECT_DIR/x ${HOME}"
    assert group.hooks[0].env == {"A": project.environ["HOME"]}


def test_what_is_configured_is_shown_without_the_variables_of_hooks(project: Project) -> None:
    directory = project.directory.parent / ".config" / "covey"
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text(
        '[[hooks.Stop]]\nhooks = [{ command = "true", env = { A = "a secret", B = "$HOME" } }]\n'
    )
    (shown,) = origins(None, None, project.environ)
    assert shown.value == [{"hooks": [{"command": "true", "env": {"A": "(not shown)", "B": "$HOME"}}]}]
