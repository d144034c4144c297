"""What a run costs: each token once, also those of a title, and of a step that did not come to its end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.config.schema import Config, ModelChoice, ModelSettings, ProviderSettings
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed
from tests.support.engine import Gate, Model, call, config, running

pytestmark = pytest.mark.anyio


def priced(small: str = "") -> Config:
    """A dollar for a million tokens that a model reads."""
    models = tuple(ModelSettings(id=name, price_prompt=1.0) for name in ("m", "s"))
    providers = {name: ProviderSettings(type="scripted", models=models) for name in ("test", "tiny")}
    choices = ModelChoice(large="test/m", small=small)
    return msgspec.structs.replace(config(), providers=providers, models=choices)


async def test_a_title_is_paid_for_once_however_often_its_tokens_are_reported(tmp_path: Path) -> None:
    """Anthropic reports at the beginning and at the end, Google with every piece: the last report holds."""
    big, small = Model(), Model()
    async with running(tmp_path, model={"test": big, "tiny": small}, settings=priced("tiny/s")) as engine:
        gate = Gate()
        small.answer(
            UsageReported(1_000_000, 0), "A bird", UsageReported(1_000_000, 0), " house", UsageReported(1_000_000, 0)
        )
        big.answer(gate, "done")
        await engine.post("build a bird house", "a")
        await engine.until(lambda: engine.workspace.sessions.get(engine.session_id).title == "A bird house")
        gate.open()
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost == 1.0


async def test_a_step_that_fails_is_paid_for(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced()) as engine:
        engine.model.answer(UsageReported(1_000_000, 0), "I beg", ModelFailed("test: broken"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "failed"
        usage = engine.terminals()["a"].usage
        assert usage is not None and usage.cost == 1.0
        assert engine.workspace.sessions.get(engine.session_id).cost == 1.0


async def test_a_step_that_is_cancelled_is_paid_for(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced()) as engine:
        gate = Gate()
        engine.model.answer(UsageReported(1_000_000, 0), "I begin", gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.cancel()
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost == 1.0


async def test_a_bound_holds_for_a_session_whose_steps_all_break_off(tmp_path: Path) -> None:
    settings = priced()
    limits = msgspec.structs.replace(settings.limits, cost_per_session=2.0)
    async with running(tmp_path, settings=msgspec.structs.replace(settings, limits=limits)) as engine:
        for name in "abcd":
            engine.model.answer(UsageReported(1_000_000, 0), "I beg", ModelFailed("test: broken"))
            await engine.post(name, name)
            await engine.ended(name)
        assert len(engine.model.requests) == 2


async def test_a_summary_is_paid_for_once(tmp_path: Path) -> None:
    async with running(tmp_path, settings=priced()) as engine:
        engine.model.answer("one", UsageReported(1_000_000, 0))
        await engine.post("a", "a")
        await engine.ended("a")
        engine.model.answer("a summary", UsageReported(2_000_000, 0))
        await engine.ended((await engine.workspace.summarize(engine.session_id)).run_id)
        assert engine.workspace.sessions.get(engine.session_id).cost == 3.0


async def test_what_a_model_that_was_replaced_reported_is_not_charged_to_its_replacement(tmp_path: Path) -> None:
    settings = priced()
    choices = msgspec.structs.replace(settings.models, fallback=("tiny/s",))
    big, other = Model(), Model()
    async with running(
        tmp_path, model={"test": big, "tiny": other}, settings=msgspec.structs.replace(settings, models=choices)
    ) as engine:
        big.answer(UsageReported(1_000_000, 0), ModelFailed("test: busy", busy=True))
        other.answer("done", UsageReported(2_000_000, 0))
        await engine.post("a", "a")
        await engine.ended("a")
        assert engine.workspace.sessions.get(engine.session_id).cost == 3.0


async def test_a_title_that_fails_in_a_way_nobody_foresaw_is_no_business_of_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    big, small = Model(), Model()
    async with running(tmp_path, model={"test": big, "tiny": small}, settings=priced("tiny/s")) as engine:
        small.answer(RuntimeError("oh"))
        big.answer("I look", *call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
    import gc

    gc.collect()
    assert not [record for record in caplog.records if "never retrieved" in record.getMessage()]
