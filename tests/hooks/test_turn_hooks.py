"""Hooks at the beginning and the end of a turn, of a session and of a summary: exactly one terminal event, always."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.extensions import hook_host
from covey.machine.names import workspace_tag
from covey.protocol.endings import AnswerEnd, answer_end
from covey.protocol.events import AgentEvent
from covey.protocol.runs import RunComplete
from covey.tools import process_table
from tests.hooks.hooking import RUN, Scripts, group, play, processes_of, specific
from tests.support.engine import Gate, call, config, within
from tests.texts.working import along

pytestmark = pytest.mark.anyio


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


REFUSES = 'print("no secrets here", file=sys.stderr); sys.exit(2)'


# ── prompts ──


async def test_a_prompt_that_a_hook_refuses_fails_its_run_and_no_model_reads_it(scripts: Scripts) -> None:
    async with scripts.working({"UserPromptSubmit": [group(scripts.says(REFUSES))]}) as engine:
        await play(engine, prompt="the password is x")
        end = engine.terminals()[RUN]
        assert (end.outcome, end.error) == ("failed", "a hook refused the prompt: no secrets here")
        assert engine.model.requests == [] and scripts.told()[0]["prompt"] == "the password is x"


async def test_a_folded_prompt_that_a_hook_refuses_fails_the_turn_that_it_joined(scripts: Scripts) -> None:
    refuses = scripts.says(f"if 'secret' in told: {REFUSES}")
    async with scripts.working({"UserPromptSubmit": [group(refuses)]}) as engine:
        gate = Gate()
        engine.model.answer(gate, *call("ls"))
        await engine.post("begin", RUN)
        await gate.reached()
        folded = (await engine.post("a secret")).run_id
        gate.open()
        await engine.ended(folded)
        ends = engine.terminals()
        assert {ends[RUN].error, ends[folded].error} == {"a hook refused the prompt: no secrets here"}
        assert ends[folded].folded_into == RUN and len(engine.model.requests) == 1


async def test_what_a_hook_adds_to_a_prompt_is_stored_and_is_not_the_users_words(scripts: Scripts) -> None:
    adds = group(scripts.says("print('It is Friday.')"), scripts.answers(specific(additionalContext="Be brief.")))
    async with scripts.working({"UserPromptSubmit": [adds]}) as engine:
        await play(engine, prompt="hello")
        (seen,) = engine.model.requests[0].messages
        assert seen.text == "hello" and along(seen) == {"hooks": "It is Friday.\nBe brief."}
        assert engine.messages()[0] == seen


async def test_a_cancel_reaches_a_hook_of_a_prompt(scripts: Scripts) -> None:
    started = scripts.project / "started"
    waits = scripts.says(f"open({str(started)!r}, 'w').close(); import time; time.sleep(600)")
    async with scripts.working({"UserPromptSubmit": [group(waits)]}) as engine:
        await engine.post("go", RUN)
        while not started.exists():
            await asyncio.sleep(0.005)
        await engine.cancel()
        assert (await engine.ended(RUN)).state == "cancelled" and not processes_of(RUN)
        assert [message.role for message in engine.messages()] == ["user", "assistant"]


# ── the end ──


async def test_h6_a_stop_hook_that_blocks_again_and_again_is_overruled_and_it_is_said(scripts: Scripts) -> None:
    blocks = scripts.answers({"decision": "block", "reason": "the tests do not pass"})
    async with scripts.working({"Stop": [group(blocks)]}) as engine:
        for number in range(4):
            engine.model.answer(f"done {number}")
        await play(engine)
        end = engine.terminals()[RUN]
        assert (end.outcome, end.text) == ("completed", "done 3") and len(engine.of_type(RunComplete)) == 1
        assert [told["stop_hook_active"] for told in scripts.told()] == [False, True, True, True]
        warned = [event.reason or "" for event in engine.of_type(AgentEvent) if event.type == "warning"]
        assert "3 times in a row" in warned[-1]
        assert "It says: the tests do not pass]" in engine.model.requests[1].messages[-1].text
        held = [message for message in engine.messages() if answer_end(message.finish) is AnswerEnd.HELD]
        assert [message.text for message in held] == ["done 0", "done 1", "done 2"]


async def test_h6_work_in_between_begins_the_count_anew_and_bounds_hold(scripts: Scripts) -> None:
    blocks = scripts.answers({"decision": "block", "reason": "go on"})
    async with scripts.working({"Stop": [group(blocks)]}, config(steps=6)) as engine:
        for number in range(6):
            engine.model.answer("done") if number % 2 else engine.model.answer(*call("ls", f"c{number}"))
        engine.model.answer("last word")
        await play(engine)
        end = engine.terminals()[RUN]
        assert end.outcome == "failed" and end.error and "stopped after 6 steps" in end.error


async def test_what_a_held_turn_said_is_read_the_same_after_a_restart(scripts: Scripts) -> None:
    once = scripts.says(
        'if not json.loads(told)[\'stop_hook_active\']: print(\'{"decision": "block", "reason": "more"}\')'
    )
    async with scripts.working({"Stop": [group(once)]}) as engine:
        engine.model.answer("first")
        engine.model.answer("second")
        await play(engine)
        await play(engine, f"{RUN}-next")
        live, later = engine.model.requests[1].messages, engine.model.requests[2].messages
        assert [(message.role, message.text) for message in later[:3]] == [
            (message.role, message.text) for message in live
        ]
        assert [message.role for message in later[:5]] == ["user", "assistant", "user", "assistant", "user"]


async def test_a_cancel_reaches_a_stop_hook_and_the_run_ends_once(scripts: Scripts) -> None:
    started = scripts.project / "started"
    waits = scripts.says(f"open({str(started)!r}, 'w').close(); import time; time.sleep(600)")
    async with scripts.working({"Stop": [group(waits)]}) as engine:
        await engine.post("go", RUN)
        while not started.exists():
            await asyncio.sleep(0.005)
        assert RUN not in engine.terminals(), "the terminal event comes after the hooks"
        assert (await engine.workspace.runs.get(RUN)).waiting_on == "hook:Stop"
        await engine.cancel()
        assert (await engine.ended(RUN)).state == "cancelled" and not processes_of(RUN)


async def test_the_end_of_an_agent_is_a_subagent_stop(scripts: Scripts) -> None:
    notes = group(scripts.says())
    async with scripts.working({"Stop": [notes], "SubagentStop": [notes]}) as engine:
        engine.model.answer(*call("agent", prompt="look"))
        engine.model.answer("found")
        await play(engine)
        assert [told["hook_event_name"] for told in scripts.told()] == ["SubagentStop", "Stop"]
        assert scripts.told("Stop")[0]["last_assistant_message"] == "done"


# ── sessions, summaries, notices ──


async def test_sessions_begin_and_end_once_and_what_a_hook_says_at_the_beginning_is_read(scripts: Scripts) -> None:
    begins = group(scripts.says("print('Use tabs.')"), matcher="startup")
    async with scripts.working({"SessionStart": [begins], "SessionEnd": [group(scripts.says())]}) as engine:
        await play(engine, prompt="one")
        await play(engine, f"{RUN}-2", prompt="two")
        first = engine.messages()[0]
        assert along(first) == {"hooks": "Use tabs."}
        assert [told["source"] for told in scripts.told("SessionStart")] == ["startup"]
    assert [told["session_id"] for told in scripts.told("SessionEnd")] == [engine.session_id]


async def test_where_a_conversation_begins_anew_with_a_summary_hooks_are_heard_again(scripts: Scripts) -> None:
    async with scripts.working(
        {"SessionStart": [group(scripts.says("print('Use tabs.')"), matcher="compact")]}
    ) as engine:
        await play(engine)
        engine.model.answer("all of it in short")
        await engine.ended((await engine.workspace.runs.summarize(engine.session_id)).run_id)
        await play(engine, f"{RUN}-next")
        first = engine.model.requests[-1].messages[0]
        assert "all of it in short" in first.text and along(first) == {"hooks": "Use tabs."}


async def test_h11_session_end_hooks_that_hang_do_not_delay_closing(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hook_host.CLOSING_S == 1.5
    monkeypatch.setattr(hook_host, "CLOSING_S", 0.05)
    hangs = scripts.says("import time; time.sleep(600)")
    async with scripts.working({"SessionEnd": [group(hangs, hangs, hangs)]}) as engine:
        await play(engine)
        await within(engine.workspace.close(30.0))
        assert not process_table.tagged(workspace_tag("w") + "/hook")


async def test_a_hook_is_told_of_a_summary_and_may_forbid_one_that_was_asked_for(scripts: Scripts) -> None:
    notes = scripts.says("if json.loads(told)['trigger'] == 'manual': print('not now', file=sys.stderr); sys.exit(2)")
    async with scripts.working({"PreCompact": [group(notes)]}) as engine:
        await play(engine)
        receipt = await engine.workspace.runs.summarize(engine.session_id, "the plan")
        run = await engine.ended(receipt.run_id)
        assert (run.state, run.error) == ("failed", "a hook forbids to summarise: not now")
        assert scripts.told("PreCompact")[0]["custom_instructions"] == "the plan"


async def _told(scripts: Scripts, count: int) -> None:
    while len(scripts.told()) < count:
        await asyncio.sleep(0.005)


async def test_notices_are_sent_when_somebody_is_asked_and_when_a_run_has_ended(scripts: Scripts) -> None:
    async with scripts.working({"Notification": [group(scripts.says())]}) as engine:
        await play(engine)
        await _told(scripts, 1)  # hooks run beside each other: what was told first may be written last
        engine.model.answer(*call("bash", command="touch x"))
        await engine.post("go", f"{RUN}-2")
        await _told(scripts, 2)
        await engine.cancel()
        await engine.ended(f"{RUN}-2")
        assert [told["notification_type"] for told in scripts.told()][:2] == ["run_complete", "permission_prompt"]


async def test_without_hooks_nothing_is_started_and_nothing_is_written_twice(scripts: Scripts) -> None:
    async with scripts.working({}) as engine:
        engine.model.answer(*call("ls"))
        await play(engine)
        assert [event.type for event in engine.of_type(AgentEvent)] == ["agent_finished"]
        assert not scripts.told()
