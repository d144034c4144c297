"""Hooks around a call: what they forbid, allow and rewrite, with real processes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from covey.protocol.events import AgentEvent, PermissionRequest
from covey.protocol.requests import PostPrompt
from tests.hooks.hooking import RUN, Scripts, group, play, processes_of, results, specific
from tests.support.engine import Work, call, config, within

pytestmark = pytest.mark.anyio


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


WRITES = call("write", file_path="b.txt", content="made")
DENIES = 'print("not on Friday", file=sys.stderr); sys.exit(2)'


@pytest.mark.parametrize("options", [{}, {"yolo": True}, {"accept_edits": True}])
async def test_h1_what_a_hook_forbids_does_not_run_in_any_mode(scripts: Scripts, options: dict[str, Any]) -> None:
    async with scripts.working({"PreToolUse": [group(scripts.says(DENIES), matcher="Write")]}) as engine:
        engine.model.answer(*WRITES)
        (result,) = await play(engine, **options)
        assert result.is_error and "A hook forbids it: not on Friday." in result.content
        assert '"denied":"hook"' in result.metadata
        assert not (scripts.project / "b.txt").exists()
        (told,) = scripts.told()
        assert told["tool_name"] == "Write" and told["tool_input"]["file_path"] == str(scripts.project / "b.txt")
        assert told["cwd"] == str(scripts.project) and told["session_id"] == engine.session_id
        expected = {"yolo": "bypassPermissions", "accept_edits": "acceptEdits"}
        assert told["permission_mode"] == next((expected[name] for name in options), "default")


async def test_h1_it_reads_our_names_of_arguments_whatever_the_model_calls_them(scripts: Scripts) -> None:
    async with scripts.working({"PreToolUse": [group(scripts.says(DENIES), matcher="Write")]}) as engine:
        engine.model.answer(*call("write", path="b.txt", contents="made"))
        await play(engine, yolo=True)
        (told,) = scripts.told()
        assert told["tool_input"] == {"file_path": str(scripts.project / "b.txt"), "content": "made"}
        assert not (scripts.project / "b.txt").exists()


async def test_h1_it_holds_in_agents_too(scripts: Scripts) -> None:
    async with scripts.working({"PreToolUse": [group(scripts.says(DENIES), matcher="Write")]}) as engine:
        engine.model.answer(*call("agent", prompt="write it", writes=True))
        engine.model.answer(*WRITES)
        engine.model.answer("could not")
        await play(engine, yolo=True)
        assert not (scripts.project / "b.txt").exists() and len(scripts.told()) == 1


async def test_h1_and_h10_it_holds_for_tools_of_servers_by_a_pattern(scripts: Scripts) -> None:
    async with scripts.working({"PreToolUse": [group(scripts.says(DENIES), matcher="mcp__git__.*")]}) as engine:
        tool = Work()
        named = {name: replace(tool.value, name=name) for name in ("mcp__git__push", "mcp__github__push")}
        engine.workspace._parts.agent.more_tools = lambda: named
        engine.model.answer(*call("mcp__git__push", "c1", 0), *call("mcp__github__push", "c2", 1, subject="y"))
        denied, done = await play(engine, yolo=True)
        assert "not on Friday" in denied.content and done.content == "worked" and tool.calls == ["y"]
        assert [told["tool_name"] for told in scripts.told()] == ["mcp__git__push"]


async def test_h2_what_a_hook_allows_nobody_is_asked_about_but_rules_and_plans_hold(scripts: Scripts) -> None:
    allows = group(scripts.answers(specific(permissionDecision="allow")))
    async with scripts.working({"PreToolUse": [allows]}, config(deny=("write:*.secret",))) as engine:
        engine.model.answer(*WRITES, *call("write", "c2", 1, file_path="x.secret", content="no"))
        made, denied = await play(engine)
        assert not made.is_error and (scripts.project / "b.txt").read_text() == "made"
        assert denied.is_error and "write:*.secret" in denied.content
        engine.model.answer(*call("bash", command="touch c.txt"))
        (planned,) = await play(engine, "planned", plan=True)
        assert planned.is_error and not (scripts.project / "c.txt").exists()


async def test_h2_an_ask_rule_still_asks(scripts: Scripts) -> None:
    allows = group(scripts.answers(specific(permissionDecision="allow")))
    settings = config()
    settings = type(settings)(providers=settings.providers, permissions=type(settings.permissions)(ask=("write",)))
    async with scripts.working({"PreToolUse": [allows]}, settings) as engine:
        engine.model.answer(*WRITES)
        await within(engine.workspace.runs.post(PostPrompt(session_id=engine.session_id, prompt="go", run_id=RUN)))
        await engine.until(lambda: engine.of_type(PermissionRequest))
        await engine.grant(engine.of_type(PermissionRequest)[0].id, "deny")
        await engine.ended(RUN)
        assert not (scripts.project / "b.txt").exists()


@pytest.mark.parametrize("broken", ["sys.exit(7)", "os.kill(os.getpid(), 9)", "print('{no json')"])
async def test_h3_a_hook_that_fails_is_asked_about_and_told(scripts: Scripts, broken: str) -> None:
    async with scripts.working({"PreToolUse": [group(scripts.says(broken))]}) as engine:
        engine.model.answer(*call("view", file_path="a.txt"))
        await within(engine.workspace.runs.post(PostPrompt(session_id=engine.session_id, prompt="go", run_id=RUN)))
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.of_type(PermissionRequest)
        assert request.reason and "failed" in request.reason, "what would need no question is asked about"
        await engine.grant(request.id, "allow")
        await engine.ended(RUN)
        assert any("failed" in (event.reason or "") for event in engine.of_type(AgentEvent))


async def test_h3_its_entry_may_deny_or_ignore_and_one_that_cannot_start_or_hangs_is_a_failure(
    scripts: Scripts,
) -> None:
    hangs = scripts.says("import time; time.sleep(600)", timeout=0.2, on_failure="deny")
    missing = type(hangs)(command="/nonexistent/hook", args=("x",), on_failure="ignore")
    async with scripts.working({"PreToolUse": [group(missing), group(hangs, matcher="Write")]}) as engine:
        engine.model.answer(*call("view", file_path="a.txt"), *call("write", "c2", 1, file_path="b.txt", content="x"))
        viewed, written = await play(engine, yolo=True)
        assert not viewed.is_error and written.is_error and "did not end within 0.2 s" in written.content
        told = [event.reason or "" for event in engine.of_type(AgentEvent)]
        assert sum("cannot be started" in line for line in told) == 2
        assert not processes_of(RUN)


@pytest.mark.parametrize("on_failure", ["ask", "ignore"])
async def test_h3_exit_2_of_a_missing_script_forbids_and_says_that_it_is_broken_and_how_to_switch_it_off(
    scripts: Scripts, on_failure: Any
) -> None:
    """Were it a failure like others, whoever removes the script of a hook, a model too, would have lifted it."""
    hook = scripts.says("", on_failure=on_failure)
    script = Path(hook.command.split()[1])
    async with scripts.working({"PreToolUse": [group(hook, matcher="Write")]}) as engine:
        engine.model.answer(*WRITES, *call("write", "c2", 1, file_path="c.txt", content="x"))
        script.unlink()
        first, second = await play(engine, yolo=True)
        assert first.is_error and second.is_error and not (scripts.project / "b.txt").exists()
        assert "A hook forbids it" in first.content and f"its script {script} is not there" in first.content
        told = [event.reason or "" for event in engine.of_type(AgentEvent)]
        assert sum("`enabled = false` in " in line and "No such file" in line for line in told) == 2, "each time"


async def test_h4_what_hooks_rewrite_is_checked_judged_and_shown(scripts: Scripts) -> None:
    hooks = [
        group(scripts.answers(specific(updatedInput={"file_path": str(scripts.project / "c.txt"), "content": "made"}))),
        group(scripts.says('told = json.loads(told); told["tool_input"]["content"] = "rewritten"; '
                           'print(json.dumps({"hookSpecificOutput": {"updatedInput": told["tool_input"]}}))')),
    ]  # fmt: skip
    async with scripts.working({"PreToolUse": hooks}) as engine:
        engine.model.answer(*WRITES)
        await within(engine.workspace.runs.post(PostPrompt(session_id=engine.session_id, prompt="go", run_id=RUN)))
        await engine.until(lambda: engine.of_type(PermissionRequest))
        (request,) = engine.of_type(PermissionRequest)
        assert "c.txt" in request.description and "rewritten" in str(request.params)
        await engine.grant(request.id, "allow")
        await engine.ended(RUN)
        assert (scripts.project / "c.txt").read_text() == "rewritten" and not (scripts.project / "b.txt").exists()


async def test_h4_a_rewrite_that_is_no_input_fails_the_call_alone(scripts: Scripts) -> None:
    wrong = scripts.answers(specific(updatedInput={"path": 3}))
    async with scripts.working({"PreToolUse": [group(wrong)]}) as engine:
        engine.model.answer(*WRITES)
        (result,) = await play(engine, yolo=True)
        assert result.is_error and "not valid" in result.content and engine.terminals()[RUN].outcome == "completed"


async def test_h5_a_cancel_ends_hooks_with_all_their_processes_and_the_call_never_starts(scripts: Scripts) -> None:
    started = scripts.project / "started"
    code = (
        "import subprocess, time; subprocess.Popen(['sleep', '600'], start_new_session=True); "
        f"open({str(started)!r}, 'w').close(); time.sleep(600)"
    )
    async with scripts.working({"PreToolUse": [group(scripts.says(code), scripts.says(code))]}) as engine:
        engine.model.answer(*WRITES)
        await engine.post("go", RUN)
        while not started.exists():
            await asyncio.sleep(0.005)
        assert processes_of(RUN)
        await engine.cancel()
        assert (await engine.ended(RUN)).state == "cancelled"
        assert not processes_of(RUN) and not (scripts.project / "b.txt").exists()


async def test_h7_a_hook_that_prints_without_end_is_read_to_a_bound(scripts: Scripts) -> None:
    loud = scripts.says("for _ in range(50): sys.stdout.write('x' * 1_000_000)")
    async with scripts.working({"PostToolUse": [group(loud)]}) as engine:
        engine.model.answer(*call("view", file_path="a.txt"))
        (result,) = await play(engine)
        assert not result.is_error and "xxx" not in result.content


@pytest.mark.parametrize(
    "code",
    ["", "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"],
    ids=["deaf", "daemon"],
)
async def test_h8_a_hook_that_reads_nothing_or_leaves_a_daemon_delays_nothing(scripts: Scripts, code: str) -> None:
    hook = scripts.says()
    hook = type(hook)(command="true") if not code else scripts.says(code)
    async with scripts.working({"PreToolUse": [group(hook)]}) as engine:
        engine.model.answer(*call("write", file_path="b.txt", content="x" * 300_000))
        (result,) = await play(engine, yolo=True)
        assert not result.is_error and not processes_of(RUN)


async def test_h8_an_input_that_is_too_large_to_be_told_is_a_failure_and_no_wait(scripts: Scripts) -> None:
    hook = scripts.says(on_failure="deny")
    async with scripts.working({"PreToolUse": [group(hook)]}) as engine:
        with mock.patch("covey.tools.child.UNREAD_LIMIT", 1000):
            engine.model.answer(*call("write", file_path="b.txt", content="x" * 5000))
            (result,) = await play(engine, yolo=True)
        assert result.is_error and "failed" in result.content and not scripts.told()


async def test_x11_of_many_hooks_eight_run_at_once_and_the_others_after_them(scripts: Scripts) -> None:
    """None leaves before eight have come: so eight do run at once, and by the order of their notes never more."""
    notes = scripts.directory.parent / "notes"
    code = (
        f"import time; notes = {str(notes)!r}\n"
        "def note(word):\n    with open(notes, 'a') as file: file.write(word)\n"
        "note('+')\n"
        "while open(notes).read().count('+') < 8: time.sleep(0.01)\n"
        "note('-')"
    )
    hooks = [scripts.says(code, timeout=100) for _ in range(12)]
    async with scripts.working({"PreToolUse": [group(*hooks)]}) as engine:
        engine.model.answer(*call("view", file_path="a.txt"))
        (result,) = await play(engine)
        assert not result.is_error
    signs = notes.read_text()
    running = [signs[: end + 1].count("+") - signs[: end + 1].count("-") for end in range(len(signs))]
    assert signs.count("+") == signs.count("-") == 12 and max(running) == 8


async def test_a_hook_after_a_call_speaks_to_the_model_or_replaces_the_result(scripts: Scripts) -> None:
    says = scripts.answers(
        {"decision": "block", "reason": "run the tests", **specific(additionalContext="they are slow")}
    )
    replaces = scripts.answers(specific("PostToolUse", updatedToolOutput="(not shown)"))
    hooks = [group(says, matcher="Read"), group(replaces, matcher="LS")]
    async with scripts.working({"PostToolUse": hooks}) as engine:
        engine.model.answer(*call("view", file_path="a.txt"), *call("ls", "c2", 1))
        viewed, listed = await play(engine)
        assert viewed.content.endswith("[A hook says: run the tests]\n\n[A hook says: they are slow]")
        assert listed.content == "(not shown)"
        told = scripts.told("PostToolUse")[0]
        assert told["tool_response"]["success"] is True and "one" in told["tool_response"]["content"]


async def test_a_hook_can_end_the_run_after_its_call(scripts: Scripts) -> None:
    async with scripts.working(
        {"PostToolUse": [group(scripts.answers({"continue": False, "stopReason": "enough"}))]}
    ) as engine:
        engine.model.answer(*call("write", file_path="b.txt", content="made"))
        await play(engine, yolo=True)
        end = engine.terminals()[RUN]
        assert (end.outcome, end.error) == ("failed", "stopped by a hook: enough")
        assert not results(engine, RUN)[0].is_error, "what the call did is recorded"


async def test_hooks_get_a_short_environment_without_keys(scripts: Scripts) -> None:
    code = f"open({str(scripts.project / 'env')!r}, 'w').write(json.dumps(dict(os.environ)))"
    hook = scripts.says(code, env={"NAMED": "by the entry"})
    async with scripts.working({"PreToolUse": [group(hook)]}) as engine:
        engine.workspace._parts.agent._environ = {
            **engine.shared.environ, "OPENAI_API_KEY": "sk-secret", "COVEY_TOKEN": "secret", "OTHER": "x", "LC_ALL": "C"
        }  # fmt: skip
        engine.model.answer(*call("ls"))
        await play(engine)
        env = json.loads((scripts.project / "env").read_text())
        assert env["NAMED"] == "by the entry" and env["CLAUDE_PROJECT_DIR"] == str(scripts.project)
        assert not {"OPENAI_API_KEY", "COVEY_TOKEN", "OTHER"} & set(env)
