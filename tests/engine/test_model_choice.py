"""Which model speaks: of the run, of the session, of the configuration, or another one when that cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from covey.config.schema import (
    Config,
    ConfigError,
    LimitSettings,
    ModelChoice,
    ModelSettings,
    ProviderSettings,
    ProviderType,
)
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed
from covey.models.ollama import Ollama
from covey.protocol.events import AgentEvent
from covey.protocol.messages import Session
from covey.protocol.requests import PostPrompt, UpdateSession
from tests.support.engine import Engine, Gate, Model, call, running, within

pytestmark = pytest.mark.anyio

MODELS: dict[str, Model] = {}
WITH_SMALL = ModelChoice(large="one/m", small="small/m")


@pytest.fixture(autouse=True)
def models() -> Iterator[None]:
    """Each provider has a model of its own."""
    MODELS.clear()
    MODELS.update({"one": Model(), "two": Model(), "small": Model()})
    yield
    assert all(model.open_streams == 0 for model in MODELS.values())


def settings(choice: ModelChoice | None = None, limits: LimitSettings | None = None) -> Config:
    priced = ModelSettings(id="m", price_prompt=1.0, price_completion=2.0)
    return Config(
        providers={name: ProviderSettings(type="scripted", models=(priced,)) for name in MODELS},
        models=choice or ModelChoice(large="one/m"),
        limits=limits or LimitSettings(),
    )


async def post(engine: Engine, prompt: str, run_id: str, **options: object) -> None:
    request = PostPrompt(session_id=engine.session_id, prompt=prompt, run_id=run_id, **options)  # type: ignore[arg-type]
    await within(engine.workspace.runs.post(request))


def said(model: Model) -> int:
    return len(model.requests)


async def test_the_run_the_session_and_the_configuration_in_this_order(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        await post(engine, "a", "a")
        await engine.ended("a")
        assert (said(MODELS["one"]), said(MODELS["two"])) == (1, 0)
        session = await engine.workspace.sessions.update(engine.session_id, UpdateSession(model="two/m"))
        assert session.model == "two/m"
        await post(engine, "b", "b")
        await engine.ended("b")
        assert (said(MODELS["one"]), said(MODELS["two"])) == (1, 1)
        await post(engine, "c", "c", model="one/m")
        await engine.ended("c")
        assert (said(MODELS["one"]), said(MODELS["two"])) == (2, 1)
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(model=None))
        await post(engine, "d", "d")
        await engine.ended("d")
        assert (said(MODELS["one"]), said(MODELS["two"])) == (3, 1)
        models = [message.provider for message in engine.messages() if message.role == "assistant"]
        assert models == ["one", "two", "one", "one"]


async def test_a_model_that_nobody_knows_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        with pytest.raises(ConfigError, match="no model is known"):
            await post(engine, "a", "a", model="nobody/m")
        with pytest.raises(ConfigError, match="no model is known"):
            await engine.workspace.sessions.update(engine.session_id, UpdateSession(model="nobody/m"))
        assert engine.messages() == []
        assert engine.workspace.sessions.get(engine.session_id).model is None


async def test_a_session_changes_its_model_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        gate = Gate()
        MODELS["one"].answer(gate, *call())
        MODELS["two"].answer("from two")
        await post(engine, "a", "a")
        await gate.reached()
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(model="two/m"))
        gate.open()
        assert (await engine.ended("a")).text == "from two"


async def test_when_a_model_cannot_be_reached_the_next_one_is_asked_and_it_is_told(tmp_path: Path) -> None:
    choice = ModelChoice(large="one/m", fallback=("one/m", "two/m"))
    async with running(tmp_path, model=MODELS, settings=settings(choice)) as engine:
        MODELS["one"].answer(ModelFailed("one: overloaded", busy=True))
        MODELS["two"].answer("hello", *call())
        MODELS["two"].answer("done")
        await post(engine, "a", "a")
        run = await engine.ended("a")
        assert (run.state, run.text) == ("completed", "done")
        assert said(MODELS["one"]) == 1, "it stays with the one that answers"
        retries = [event for event in engine.of_type(AgentEvent) if event.type == "retry"]
        assert [event.reason for event in retries] == ["one: overloaded; two/m is asked instead"]
        assert {message.provider for message in engine.messages() if message.role == "assistant"} == {"two"}


async def test_the_last_failure_counts_when_nobody_can_be_reached(tmp_path: Path) -> None:
    choice = ModelChoice(large="one/m", fallback=("two/m", "nobody/m"))
    async with running(tmp_path, model=MODELS, settings=settings(choice)) as engine:
        MODELS["one"].answer(ModelFailed("one: overloaded", busy=True))
        MODELS["two"].answer(ModelFailed("two: down", busy=True))
        await post(engine, "a", "a")
        assert (await engine.ended("a")).error == "two: down"


@pytest.mark.parametrize("failure", [ModelFailed("bad", busy=False), ModelFailed("key", auth=True)])
async def test_another_model_is_no_help_against_other_failures(tmp_path: Path, failure: ModelFailed) -> None:
    choice = ModelChoice(large="one/m", fallback=("two/m",))
    async with running(tmp_path, model=MODELS, settings=settings(choice)) as engine:
        MODELS["one"].answer(failure)
        await post(engine, "a", "a")
        assert (await engine.ended("a")).state == "failed"
        assert said(MODELS["two"]) == 0


async def test_half_an_answer_is_not_given_twice(tmp_path: Path) -> None:
    choice = ModelChoice(large="one/m", fallback=("two/m",))
    async with running(tmp_path, model=MODELS, settings=settings(choice)) as engine:
        MODELS["one"].answer("half", ModelFailed("cut", busy=True))
        await post(engine, "a", "a")
        assert (await engine.ended("a")).state == "failed"
        assert said(MODELS["two"]) == 0


# ── what a run may cost ──


async def test_no_further_step_is_begun_once_the_run_has_cost_too_much(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        for number in range(2):
            MODELS["one"].answer(*call(call_id=f"c{number}"), UsageReported(500_000, 0))
        MODELS["one"].answer("That is all.", *call(call_id="c2"), UsageReported(500_000, 0))
        await post(engine, "a", "a", max_cost=0.9)
        run = await engine.ended("a")
        assert run.state == "failed"
        assert "$1.0000" in (run.error or "") and "$0.9" in (run.error or "")
        assert said(MODELS["one"]) == 3, "two steps, and a last word"
        assert len(engine.tool.calls) == 2, "the last word runs no tool"


async def test_a_session_may_cost_only_so_much_over_all_its_runs(tmp_path: Path) -> None:
    limits = LimitSettings(cost_per_session=1.0)
    async with running(tmp_path, model=MODELS, settings=settings(limits=limits)) as engine:
        MODELS["one"].answer("a", UsageReported(1_000_000, 0))
        await post(engine, "a", "a")
        assert (await engine.ended("a")).state == "completed"
        await post(engine, "b", "b")
        assert "limits.cost_per_session" in ((await engine.ended("b")).error or "")
        assert said(MODELS["one"]) == 1


async def test_a_run_may_take_only_so_many_steps(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        for number in range(3):
            MODELS["one"].answer(*call(call_id=f"c{number}", subject=str(number)))
        await post(engine, "a", "a", max_steps=2)
        assert "after 2 steps" in ((await engine.ended("a")).error or "")


# ── titles ──


async def test_the_small_model_finds_a_title_while_the_turn_is_under_way(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings(WITH_SMALL)) as engine:
        gate = Gate()
        MODELS["one"].answer(gate, "done")
        MODELS["small"].answer('"A house for birds."\nmore words', UsageReported(500_000, 0))
        await post(engine, "please build a house for birds", "a")
        await engine.until(lambda: engine.of_type(Session)[-1].title == "A house for birds")
        gate.open()
        await engine.ended("a")
        session = engine.workspace.sessions.get(engine.session_id)
        assert (session.title, session.cost) == ("A house for birds", 0.5)
        await post(engine, "b", "b")
        await engine.ended("b")
        assert said(MODELS["small"]) == 1


def without_small(type_: ProviderType) -> Config:
    priced = ModelSettings(id="m", price_prompt=1.0, price_completion=2.0)
    return Config(providers={"one": ProviderSettings(type=type_, models=(priced,))}, models=ModelChoice(large="one/m"))


async def test_without_a_small_model_the_large_one_finds_the_title_beside_its_answer(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=without_small("openai-compatible")) as engine:
        gate = Gate()
        MODELS["one"].answer("do", gate, "ne", UsageReported(1_000_000, 0))
        MODELS["one"].answer("A house for birds", UsageReported(500_000, 0))
        await post(engine, "please build a house for birds", "a")
        await engine.until(lambda: engine.of_type(Session)[-1].title == "A house for birds")
        gate.open()
        assert (await engine.ended("a")).text == "done"
        assert engine.workspace.sessions.get(engine.session_id).cost == 1.5
        answer, title = MODELS["one"].requests
        assert answer.tools and not title.tools, "the answer was asked for first"


@pytest.mark.parametrize("type_", ["scripted", "embedded"])
async def test_what_has_one_place_for_all_requests_is_not_asked_for_titles(tmp_path: Path, type_: ProviderType) -> None:
    async with running(tmp_path, model=MODELS, settings=without_small(type_)) as engine:
        await post(engine, "build it", "a")
        await engine.ended("a")
        assert said(MODELS["one"]) == 1
        assert not Ollama.answers_aside


async def test_a_turn_does_not_wait_for_a_title(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings(WITH_SMALL)) as engine:
        gate, never = Gate(), Gate()
        MODELS["one"].answer(gate, "done")
        MODELS["small"].answer(never)
        await post(engine, "build it", "a")
        await never.reached()
        gate.open()
        assert (await engine.ended("a")).state == "completed"
        assert MODELS["small"].open_streams == 0
        assert engine.workspace.sessions.get(engine.session_id).title == "build it"


async def test_a_small_model_that_fails_is_no_harm(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings(WITH_SMALL)) as engine:
        gate = Gate()
        MODELS["one"].answer(gate, "done")
        MODELS["small"].answer(ModelFailed("down"))
        await post(engine, "build it", "a")
        await gate.reached()
        gate.open()
        assert (await engine.ended("a")).state == "completed"


async def test_a_title_that_somebody_chose_stays(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings(WITH_SMALL)) as engine:
        gate, thinking = Gate(), Gate()
        MODELS["one"].answer(gate, "done")
        MODELS["small"].answer(thinking, "Something else")
        await post(engine, "build it", "a")
        await thinking.reached()
        await engine.workspace.sessions.update(engine.session_id, UpdateSession(title="Mine"))
        thinking.open()
        gate.open()
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).title == "Mine"


async def test_a_refused_key_is_read_again_with_the_next_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, model=MODELS, settings=settings()) as engine:
        MODELS["one"].answer(ModelFailed("key", auth=True))
        await post(engine, "a", "a")
        await engine.ended("a")
        renewed = msgspec.structs.replace(engine.workspace._parts.agent.config, models=ModelChoice(large="two/m"))

        async def load(shared: object, path: str, env: object = None) -> tuple[Config, tuple[str, ...]]:
            return renewed, ()

        with mock.patch("covey.engine.commands.settings.load_config", load):
            await post(engine, "b", "b")
        await engine.ended("b")
        assert said(MODELS["two"]) == 1
