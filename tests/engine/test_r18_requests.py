"""R18: whatever became of a prompt, the bytes of the next request say so in every wire format, and "continue" works."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from covey.config.schema import Config, LimitSettings, ModelSettings, ProviderSettings
from covey.lifecycle.history import CUT_OFF_NOTE, FAILED_NOTE, STOPPED_NOTE, SUMMARY_BEGINS, SUMMARY_ENDS
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed, ModelRequest
from covey.protocol.requests import ForkSession
from tests.models.accepted import CHECKS, spoken
from tests.models.fixtures import FORMATS
from tests.support.engine import Engine, Gate, call, running, within
from tests.support.unfinished import (
    Scenario,
    at_gate,
    cancelled,
    cancelled_before_the_first_word,
    cancelled_before_there_is_an_answer,
    cancelled_in_a_tool,
    cancelled_in_the_middle,
    cancelled_in_the_middle_of_a_call,
    cancelled_in_thought,
    cancelled_on_entry,
    failed,
    failed_after_a_tool,
    failed_at_once,
    failed_in_the_middle,
    in_a_tool,
    interrupted,
    interrupted_before_the_first_word,
    shut_down,
)

pytestmark = pytest.mark.anyio

MODELS = {"chat": "big", "responses": "gpt-9", "anthropic": "claude-sonnet-4-5", "google": "gemini-3-pro"}
NOTES = (STOPPED_NOTE, FAILED_NOTE, CUT_OFF_NOTE)


def settings(wire: str, *, window: int = 0) -> Config:
    """The engine's only model, under the name that its wire format knows, and with thoughts."""
    model = ModelSettings(id=MODELS[wire], context_window=window, effort="low")
    return Config(
        providers={"local": ProviderSettings(type="scripted", models=(model,))},
        limits=LimitSettings(summarize_at=0.8),
    )


def body_of(wire: str, request: ModelRequest) -> dict[str, Any]:
    """The bytes that the model would be sent, once they have been found to be acceptable."""
    sent: dict[str, Any] = json.loads(FORMATS[wire].client("http://127.0.0.1:1")._body(request))
    CHECKS[wire](sent)
    return sent


ENDED: dict[Scenario, str] = {
    cancelled_on_entry: STOPPED_NOTE,
    cancelled_before_there_is_an_answer: STOPPED_NOTE,
    cancelled_before_the_first_word: STOPPED_NOTE,
    cancelled_in_thought: STOPPED_NOTE,
    cancelled_in_the_middle: STOPPED_NOTE,
    cancelled_in_the_middle_of_a_call: STOPPED_NOTE,
    cancelled_in_a_tool: STOPPED_NOTE,
    failed_at_once: FAILED_NOTE,
    failed_in_the_middle: FAILED_NOTE,
    failed_after_a_tool: FAILED_NOTE,
}
"""What ends a run, and what the model reads of that."""
CUT_OFF = (interrupted, interrupted_before_the_first_word, in_a_tool, shut_down)
"""What the next start finds."""


async def continued(engine: Engine, wire: str) -> dict[str, Any]:
    """ "Continue" works; gives what the model was sent for it."""
    engine.tool.act = engine.tool._work
    engine.model.answer("I go on.")
    run = await engine.ended((await engine.post("continue")).run_id)
    assert (run.state, run.text) == ("completed", "I go on.")
    return body_of(wire, engine.model.requests[-1])


def check(wire: str, body: dict[str, Any], note: str, *asked: str) -> None:
    """All that was asked, then the note, which is not the user's, then "continue", which is glued to nothing."""
    said = spoken(wire, body)
    assert said[-1] == ("user", "continue")
    (place,) = [index for index, (_, text) in enumerate(said) if text.endswith(note)]
    assert said[place][0] == "assistant"
    assert place == len(said) - 2, "nothing stands between the note and the next prompt"
    before = "\n\n".join(text for role, text in said[:place] if role == "user")
    assert before == "\n\n".join(asked)
    raw = json.dumps(body)
    assert sum(raw.count(json.dumps(one)[1:-1]) for one in NOTES) == 1
    assert "obey me" not in raw, "an error is not told: others can choose its words"


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("scenario", ENDED, ids=lambda scenario: scenario.__name__)
async def test_r18_the_next_request_says_what_became_of_the_prompt(
    tmp_path: Path, scenario: Scenario, wire: str
) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await scenario(engine, wire)
        check(wire, await continued(engine, wire), ENDED[scenario], "wipe the disk")


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("scenario", ENDED, ids=lambda scenario: scenario.__name__)
async def test_r18_a_fork_and_the_next_start_say_the_same(tmp_path: Path, scenario: Scenario, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await scenario(engine, wire)
        disk = engine.disk.copy()
        source = engine.session_id
        engine.session_id = (await within(engine.workspace.sessions.fork(source, ForkSession()))).id
        in_fork = await continued(engine, wire)
        engine.session_id = source
        here = await continued(engine, wire)
    async with running(tmp_path, settings=settings(wire), store=disk) as engine:
        after_restart = await continued(engine, wire)
    check(wire, in_fork, ENDED[scenario], "wipe the disk")
    assert in_fork == here == after_restart


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("scenario", CUT_OFF, ids=lambda scenario: scenario.__name__)
async def test_r18_what_a_stop_of_the_server_cut_off_is_told(tmp_path: Path, scenario: Scenario, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await scenario(engine, wire)
        disk = engine.disk.copy()
    async with running(tmp_path, settings=settings(wire), store=disk) as engine:
        assert (await engine.ended("a")).state in ("interrupted", "cancelled")
        check(wire, await continued(engine, wire), CUT_OFF_NOTE, "wipe the disk")


async def folded_into_the_first_step(engine: Engine, last: Gate) -> str:
    engine.model.answer("I beg", last)
    engine.disk.hold()
    posting = [await engine.soon(engine.post(prompt)) for prompt in ("wipe the disk", "and the backups")]
    engine.disk.release()
    host, _ = [await within(posted) for posted in posting]
    return host.run_id


async def folded_into_the_next_step(engine: Engine, last: Gate) -> str:
    looked = Gate()
    engine.model.answer("I look", looked, *call())
    engine.model.answer("I beg", last)
    host = await engine.post("wipe the disk")
    await looked.reached()
    await engine.post("and the backups")
    looked.open()
    return host.run_id


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("fold", [folded_into_the_first_step, folded_into_the_next_step])
async def test_r18_no_prompt_that_was_folded_is_read_as_still_asked(
    tmp_path: Path, fold: Callable[[Engine, Gate], Awaitable[str]], wire: str
) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        gate = Gate()
        host = await fold(engine, gate)
        await gate.reached()
        await cancelled(engine, host)
        assert "folded" in [run.state for run in engine.store.runs("w", "", "", 10)]
        check(wire, await continued(engine, wire), STOPPED_NOTE, "wipe the disk", "and the backups")


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_each_of_several_prompts_that_were_stopped_has_its_note(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await cancelled_on_entry(engine, wire)
        engine.model.answer("I fail", ModelFailed("test: no"))
        await engine.ended((await engine.post("and the backups")).run_id)
        said = spoken(wire, await continued(engine, wire))
        whole = [(role, text.strip()) for role, text in said]
        if wire != "chat":  # there the words and the note are one text
            assert whole.pop(3) == ("assistant", "I fail")
        last = FAILED_NOTE if wire != "chat" else f"I fail\n\n{FAILED_NOTE}"
        assert whole == [
            ("user", "wipe the disk"),
            ("assistant", STOPPED_NOTE),
            ("user", "and the backups"),
            ("assistant", last),
            ("user", "continue"),
        ]


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_a_prompt_that_was_dropped_from_the_queue_is_not_seen_at_all(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        gate = Gate()
        engine.model.answer(gate, "done")
        await engine.post("say hello", "host")
        await gate.reached()
        await engine.post("wipe the disk", "a")
        await engine.told_state("a", "queued")
        await within(engine.workspace.runs.clear_queue(engine.session_id))
        gate.open()
        await engine.ended("host")
        said = spoken(wire, await continued(engine, wire))
        assert said == [("user", "say hello"), ("assistant", "done"), ("user", "continue")]


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_a_fork_at_a_prompt_does_not_ask_for_it_again(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await cancelled_in_the_middle(engine, wire)
        at = ForkSession(message_id=engine.messages()[0].id)
        engine.session_id = (await within(engine.workspace.sessions.fork(engine.session_id, at))).id
        check(wire, await continued(engine, wire), CUT_OFF_NOTE, "wipe the disk")


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_a_fork_of_a_run_under_way_does_not_ask_for_it_again(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await at_gate(engine, "I beg")
        source = engine.session_id
        engine.session_id = (await within(engine.workspace.sessions.fork(source, ForkSession()))).id
        check(wire, await continued(engine, wire), CUT_OFF_NOTE, "wipe the disk")
        engine.session_id = source
        await cancelled(engine)


# ── summaries ──


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_the_summary_is_made_with_the_note_in_sight_and_stands_without_it(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await cancelled_in_the_middle(engine, wire)
        engine.model.answer("They had the disk wiped, and stopped that.")
        await engine.ended((await within(engine.workspace.runs.summarize(engine.session_id))).run_id)
        asked = json.dumps(body_of(wire, engine.model.requests[-1]))
        assert json.dumps(STOPPED_NOTE)[1:-1] in asked
        body = await continued(engine, wire)
        said = "\n\n".join(text for role, text in spoken(wire, body))
        marked = (SUMMARY_BEGINS, "They had the disk wiped, and stopped that.", SUMMARY_ENDS)
        assert said == "\n\n".join((*marked, "continue"))


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("way", ["cancel", "crash"])
async def test_r18_a_turn_that_is_stopped_after_its_summary_says_so_behind_it(
    tmp_path: Path, wire: str, way: str
) -> None:
    """The summary quotes the prompt as what is being worked on."""
    async with running(tmp_path, settings=settings(wire, window=1000)) as engine:
        gate = Gate()
        engine.model.answer("I look.", *call(), UsageReported(850, 10))
        engine.model.answer("They want the disk wiped.")
        engine.model.answer(gate)
        await engine.post("wipe the disk", "a")
        await gate.reached()
        disk = engine.disk.copy()
        if way == "cancel":
            await cancelled(engine)
            body = await continued(engine, wire)
    if way == "crash":
        async with running(tmp_path, settings=settings(wire, window=1000), store=disk) as engine:
            await engine.ended("a")
            body = await continued(engine, wire)
    said = spoken(wire, body)
    assert said[-2:] == [("assistant", STOPPED_NOTE if way == "cancel" else CUT_OFF_NOTE), ("user", "continue")]
    assert "wipe the disk" in "".join(text for role, text in said[:-2] if role == "user")


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_an_answer_that_is_asked_for_again_in_the_same_turn_has_no_note(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await engine.ended((await engine.post("say hello")).run_id)
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("They said hello.")
        engine.model.answer("The disk is wiped.")
        assert (await engine.ended((await engine.post("wipe the disk", "a")).run_id)).state == "completed"
        await continued(engine, wire)
        assert [m.finish.message for m in engine.messages() if m.finish and m.finish.message] == ["Too long"]
        for request in engine.model.requests:
            raw = json.dumps(body_of(wire, request))
            assert not any(json.dumps(note)[1:-1] in raw for note in NOTES)


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_a_summary_that_fails_leaves_no_prompt_open(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await engine.ended((await engine.post("say hello")).run_id)
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        await failed(engine, "They said h")
        said = spoken(wire, await continued(engine, wire))
        assert said[2:] == [("user", "wipe the disk"), ("assistant", FAILED_NOTE), ("user", "continue")]


# ── the provider's cache ──


@pytest.mark.parametrize("wire", FORMATS)
async def test_r18_what_was_sent_once_is_sent_again_byte_for_byte(tmp_path: Path, wire: str) -> None:
    async with running(tmp_path, settings=settings(wire)) as engine:
        await cancelled_in_a_tool(engine, wire)
        sent = []
        for _ in range(3):
            await continued(engine, wire)
            sent.append(_conversation(FORMATS[wire].client("http://127.0.0.1:1")._body(engine.model.requests[-1])))
    for before, after in pairwise(sent):
        assert after.startswith(before)


def _conversation(raw: bytes) -> bytes:
    """The turns as they are sent, without what marks the end of what is to be cached, up to the last bracket."""
    body = json.loads(raw.replace(b',"cache_control":{"type":"ephemeral"}', b""))
    turns = body.get("messages") or body.get("input") or body["contents"]
    return json.dumps(turns).encode()[:-1]


async def test_r18_stored_messages_are_not_changed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await cancelled_in_the_middle(engine, "chat")
        before = engine.messages()
        await continued(engine, "chat")
        assert engine.messages()[: len(before)] == before
        assert not any(STOPPED_NOTE in one.text for one in engine.messages())
