"""What a run costs: each token once, also those of a title, and of a step that did not come to its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.schema import Config, ModelChoice, ModelSettings, ProviderSettings
from covey.lifecycle.reply import UsageReported
from covey.models.base import ModelFailed
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunOptions
from tests.support.disk import Disk
from tests.support.engine import Gate, Model, Stubborn, call, config, running, within

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
        await engine.ended((await engine.workspace.runs.summarize(engine.session_id)).run_id)
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


async def test_a_title_that_fails_in_a_way_nobody_foresaw_is_no_business_of_the_run(tmp_path: Path) -> None:
    big, small = Model(), Model()
    async with running(tmp_path, model={"test": big, "tiny": small}, settings=priced("tiny/s")) as engine:
        small.answer(RuntimeError("oh"))
        big.answer("I look", *call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert len(small.requests) == 1


async def test_a_title_that_does_not_stop_does_not_keep_the_run_from_ending(tmp_path: Path) -> None:
    big, small = Model(), Model()
    async with running(tmp_path, model={"test": big, "tiny": small}, settings=priced("tiny/s")) as engine:
        stuck, gate = Stubborn(), Gate()
        small.answer(stuck)
        big.answer(gate, "done")
        await engine.post("a", "a")
        await stuck.reached()
        gate.open()
        try:
            assert (await engine.ended("a")).state == "completed"
        finally:
            stuck.open()
            while small.open_streams:
                await asyncio.sleep(0)


async def test_a_session_that_has_spent_what_it_may_is_not_summarised_either(tmp_path: Path) -> None:
    settings = priced()
    limits = msgspec.structs.replace(settings.limits, cost_per_session=2.0)
    async with running(tmp_path, settings=msgspec.structs.replace(settings, limits=limits)) as engine:
        engine.model.answer("done", UsageReported(2_000_000, 0))
        await engine.post("a", "a")
        await engine.ended("a")
        receipt = await engine.workspace.runs.summarize(engine.session_id)
        assert (await engine.ended(receipt.run_id)).state == "failed"
        assert len(engine.model.requests) == 1


async def test_what_a_queued_run_may_do_and_cost_is_known_after_a_crash(tmp_path: Path) -> None:
    store = Disk()
    store.keeps_copies = True
    options: dict[str, Any] = {"model": "test/s", "plan": True, "max_cost": 1.5, "max_steps": 7}
    async with running(tmp_path, store=store, settings=priced()) as engine:
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("a", "a")
        await gate.reached()
        request = PostPrompt(session_id=engine.session_id, prompt="b", run_id="b", **options)
        assert (await within(engine.workspace.runs.post(request))).state == "queued"
        left = store.copies[-1]
        gate.open()
        await engine.ended("b")
    async with running(tmp_path, store=left, settings=priced()) as engine:
        engine.model.answer(*call("work"), UsageReported(2_000_000, 0))
        run = await engine.ended("b")
        assert run.options == RunOptions(**options)
        assert [(request.model, request.tools) for request in engine.model.requests] == [("s", [])] * 2, (
            "a step, and a last word"
        )
        assert engine.tool.calls == []
        assert "it may cost $1.5" in (run.error or "")
