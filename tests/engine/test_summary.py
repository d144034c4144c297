"""A conversation that becomes too long is summarised inside the run, which keeps its id and has one end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from covey.config.schema import Config, LimitSettings, ModelSettings
from covey.engine.turns import looking_back, summary
from covey.lifecycle import history
from covey.lifecycle.history import SUMMARY_BEGINS, SUMMARY_ENDS
from covey.lifecycle.reply import Stopped, UsageReported
from covey.models.base import ModelFailed
from covey.protocol.messages import Message
from covey.protocol.requests import PostPrompt
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, Word, call, config, running, within

pytestmark = pytest.mark.anyio


def with_window(tokens: int, share: float = 0.8) -> Config:
    """A configuration whose model has a window of so many tokens."""
    base = config()
    provider = base.providers["test"]
    model = ModelSettings(id="m", context_window=tokens)
    return msgspec.structs.replace(
        base,
        providers={"test": msgspec.structs.replace(provider, models=(model,))},
        limits=LimitSettings(summarize_at=share),
    )


def summaries(engine: Engine) -> list[Message]:
    return [message for message in engine.messages() if message.is_summary_message]


async def test_scenario_19_a_run_that_becomes_too_long_is_summarised_and_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(850, 10))
        engine.model.answer("They wanted a bird house; the wood is cut.")
        engine.model.answer("The bird house is done.")
        await engine.post("build a bird house", "a")
        run = await engine.ended("a")
        assert (run.state, run.text) == ("completed", "The bird house is done.")
        assert list(engine.terminals()) == ["a"]
        (written,) = summaries(engine)
        assert engine.workspace.sessions.get(engine.session_id).summary_message_id == written.id
        _, asked, following = engine.model.requests
        assert asked.messages[-1].role == "user" and "ummar" in asked.messages[-1].text
        (seen,) = following.messages
        assert seen.role == "user"
        assert "the wood is cut" in seen.text and "build a bird house" in seen.text


async def test_a_summary_that_the_model_could_not_finish_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(850, 10))
        engine.model.answer("They wanted a bird", Stopped("max_tokens"))
        await engine.post("build a bird house", "a")
        assert (await engine.ended("a")).state == "completed"
        (written,) = summaries(engine)
        assert written.finish and written.finish.reason == "max_tokens"


async def test_the_next_prompt_sees_the_summary_and_what_came_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("one", "a")
        await engine.ended("a")
        engine.model.answer("They said one.")
        receipt = await engine.workspace.runs.summarize(engine.session_id)
        run = await engine.ended(receipt.run_id)
        assert (run.state, run.prompt) == ("completed", summary.PROMPT)
        assert run.text == f"They said one.{summary.SAID}one"
        await engine.post("two", "b")
        await engine.ended("b")
        texts = [message.text for message in engine.model.requests[-1].messages]
        assert texts == [f"{SUMMARY_BEGINS}They said one.{summary.SAID}one{SUMMARY_ENDS}", "two"]


async def test_a_conversation_that_the_model_refuses_as_too_long_is_summarised(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for name in "abc":
            await engine.post("word " * 100 + name, name)
            await engine.ended(name)
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("a, b and c were said.")
        engine.model.answer("d is done.")
        await engine.post("d", "d")
        run = await engine.ended("d")
        assert (run.state, run.text) == ("completed", "d is done.")
        asked = engine.model.requests[-2]
        assert 1 < len(asked.messages) < len(engine.model.requests[-3].messages), "the oldest were left out"


async def test_a_summary_that_does_not_help_fails_the_run_instead_of_going_round(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("before", "b")
        await engine.ended("b")
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("Something was said.")
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, run.error) == ("failed", "test: too long")
        assert len(engine.model.requests) == 4


async def test_a_prompt_that_is_too_long_by_itself_is_not_summarised(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(100)) as engine:
        await engine.post("word " * 1000, "a")
        assert (await engine.ended("a")).state == "completed"
    async with running(tmp_path) as engine:
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        await engine.post("word " * 1000, "a")
        assert (await engine.ended("a")).error == "test: too long"


async def test_a_summary_longer_than_the_bound_is_not_summarised_again_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(200)) as engine:
        engine.model.answer("I look.", *call(), UsageReported(180, 10))
        engine.model.answer("word " * 400)
        engine.model.answer("done")
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert len(summaries(engine)) == 1


async def test_an_empty_summary_fails_the_run_and_the_conversation_stays(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("one", "a")
        await engine.ended("a")
        engine.model.answer("  ")
        run = await engine.ended((await engine.workspace.runs.summarize(engine.session_id)).run_id)
        assert run.state == "failed"
        assert engine.workspace.sessions.get(engine.session_id).summary_message_id == ""
        await engine.post("two", "b")
        await engine.ended("b")
        assert engine.model.prompts[-1] == ["one", summary.PROMPT, "two"]


async def test_a_cancel_in_the_middle_of_a_summary_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        gate = Gate()
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer("They wanted", gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert engine.workspace.sessions.get(engine.session_id).summary_message_id == ""
        await engine.post("b", "b")
        await engine.ended("b")
        assert engine.model.prompts[-1] == ["a", "b"]
        assert "They wanted" not in [message.text for message in engine.model.requests[-1].messages]


async def test_a_cancel_after_the_summary_is_no_word_about_it(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        gate = Gate()
        engine.model.answer("I look.", *call(), UsageReported(990, 10))
        engine.model.answer("They wanted a house.")
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        (written,) = summaries(engine)
        assert written.finish is not None and written.finish.reason == "end_turn"


async def test_a_prompt_folded_before_the_summary_is_not_lost(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(1000)) as engine:
        gate = Gate()

        async def wait_for_the_second() -> None:
            await within(gate.reached())
            await engine.post("and a door")
            gate.open()

        engine.model.answer(gate, *call())
        engine.model.answer("I do both.", *call(call_id="c2"), UsageReported(990, 10))
        engine.model.answer("A summary.")
        await engine.post("a house", mode="own_turn", run_id="a")
        await asyncio.create_task(wait_for_the_second())
        await engine.ended("a")
        (seen,) = engine.model.requests[-1].messages
        assert "a house" in seen.text and "and a door" in seen.text


# ── what the user said, and what must be kept ──


async def test_a_summary_keeps_what_the_user_said_word_by_word_also_after_the_next_one(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number, prompt in enumerate(["use tabs, never blanks", "only the parser"]):
            await engine.post(prompt, f"p{number}")
            await engine.ended(f"p{number}")
            engine.model.answer(f"summary {number}")
            receipt = await within(engine.workspace.runs.summarize(engine.session_id))
            await engine.ended(receipt.run_id)
        await engine.post("go on", "last")
        await engine.ended("last")
        read = engine.model.requests[-1].messages[0].text
        assert read.startswith(f"{SUMMARY_BEGINS}summary 1") and "summary 0" not in read
        assert read.index("use tabs, never blanks") < read.index("only the parser")


async def test_the_words_of_the_user_that_are_kept_have_a_bound(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for number in range(8):
            await engine.post(f"{number} " + "word " * 5_000, f"p{number}")
            await engine.ended(f"p{number}")
        engine.model.answer("summary")
        receipt = await within(engine.workspace.runs.summarize(engine.session_id))
        await engine.ended(receipt.run_id)
        text = next(message.text for message in engine.messages() if message.is_summary_message)
        assert len(text) < summary.SAID_CHARACTERS + 1_000
        assert "7 word" in text and "0 word" not in text, "the newest is kept"


async def test_a_focus_is_given_to_the_model_that_summarises(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("a", "a")
        await engine.ended("a")
        receipt = await within(engine.workspace.runs.summarize(engine.session_id, "the names of the tests"))
        await engine.ended(receipt.run_id)
        assert engine.model.requests[-1].messages[-1].text.endswith("keep above all: the names of the tests")


# ── what is too long to be read for its summary ──


def long_results(engine: Engine, tokens: int) -> None:
    """Every call of the tool gives about so many."""

    async def act() -> ToolOutput:
        return ToolOutput("the first line\n" + "line\n" * (tokens * 4 // 5) + "the last line\n")

    engine.tool.act = act


def eight_calls() -> tuple[Word, ...]:
    return tuple(word for n in range(8) for word in call(call_id=f"c{n}", index=n, subject=str(n)))


async def test_results_that_are_too_long_are_shortened_in_what_is_summarised(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(40_000)) as engine:
        long_results(engine, 7_000)
        engine.model.answer("I look.", *eight_calls())
        engine.model.answer("They wanted a bird house.")
        await engine.post("build a bird house", "a")
        assert (await engine.ended("a")).state == "completed"
        asked = engine.model.requests[1]
        assert sum(map(history.estimated_tokens, asked.messages)) < 40_000 and not asked.may_call
        results = [found.content for message in asked.messages for found in message.tool_results]
        assert len(results) == 8 and all("characters are left out here" in content for content in results)
        assert asked.messages[0].text == "build a bird house", "nothing else was left out, and nobody says so"


async def test_the_turn_before_is_summarised_by_a_model_with_a_smaller_window(tmp_path: Path) -> None:
    base = with_window(0)
    models = (ModelSettings(id="m"), ModelSettings(id="s", context_window=40_000))
    provider = msgspec.structs.replace(base.providers["test"], models=models)
    async with running(tmp_path, settings=msgspec.structs.replace(base, providers={"test": provider})) as engine:
        long_results(engine, 7_000)
        engine.model.answer(*eight_calls())
        engine.model.answer("The first is done.")
        await engine.post("the first", "a")
        await engine.ended("a")
        engine.model.answer("summary")
        request = PostPrompt(session_id=engine.session_id, prompt="the second", run_id="b", model="test/s")
        await within(engine.workspace.runs.post(request))
        assert (await engine.ended("b")).state == "completed"
        asked = [message.text for message in engine.model.requests[2].messages]
        assert asked[:1] + asked[-3:-1] == ["the first", "The first is done.", "the second"]


async def test_a_request_for_a_summary_that_is_refused_is_made_once_more_with_half(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(40_000)) as engine:
        long_results(engine, 7_000)
        engine.model.answer(*eight_calls())
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("A summary.")
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        first, second = (sum(map(history.estimated_tokens, asked.messages)) for asked in engine.model.requests[1:3])
        assert second <= first // 2 + 1_000
        assert len(summaries(engine)) == 1


async def test_what_is_left_out_at_the_beginning_is_said_with_what_it_is_about(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for name in "abc":
            await engine.post("word " * 100 + name, name)
            await engine.ended(name)
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("A summary.")
        await engine.post("d", "d")
        await engine.ended("d")
        assert engine.model.requests[-2].messages[0].text == looking_back.BEGINNING, "its own prompt is still there"
