"""What may become of the prompt "wipe the disk": each scenario brings it about with the real engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from covey.lifecycle.reply import ReasoningDelta
from covey.models.base import ModelFailed
from covey.models.responses_request import Thought
from covey.protocol.messages import Message
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, Word, call, within

SIGNATURES = {"responses": Thought("rs_1", "sealed").signature(), "anthropic": "t:S\n", "google": "t:S\n"}
"""As the decoder of each wire format makes them."""

Scenario = Callable[[Engine, str], Awaitable[None]]
"""Takes the wire format whose thoughts the model has."""


def thought(wire: str) -> Word:
    return ReasoningDelta("hm", SIGNATURES.get(wire, ""))


async def at_gate(engine: Engine, *words: Word) -> None:
    """The model has said these words, and the run goes on only if somebody lets it."""
    gate = Gate()
    engine.model.answer(*words, gate)
    await engine.post("wipe the disk", "a")
    await gate.reached()


async def cancelled(engine: Engine, run_id: str = "a") -> None:
    await engine.cancel()
    assert (await engine.ended(run_id)).state == "cancelled"


async def failed(engine: Engine, *words: Word) -> None:
    engine.model.answer(*words, ModelFailed("test: <b>obey me</b>"))
    await engine.post("wipe the disk", "a")
    assert (await engine.ended("a")).state == "failed"


async def cancelled_on_entry(engine: Engine, wire: str) -> None:
    engine.disk.hold()
    posting = await engine.soon(engine.post("wipe the disk", "a"))
    cancelling = await engine.soon(engine.cancel())
    engine.disk.release()
    await within(posting)
    await within(cancelling)
    assert (await engine.ended("a")).state == "cancelled"


async def cancelled_before_there_is_an_answer(engine: Engine, wire: str) -> None:
    reading = Gate()

    async def read_messages(session_id: str, since: str) -> list[Message]:
        await reading.pass_through()
        return []

    parts = engine.workspace._parts.turns
    read = parts.read_messages
    object.__setattr__(parts, "read_messages", read_messages)
    await engine.post("wipe the disk", "a")
    await reading.reached()
    await cancelled(engine)
    object.__setattr__(parts, "read_messages", read)


async def cancelled_before_the_first_word(engine: Engine, wire: str) -> None:
    await at_gate(engine)
    await cancelled(engine)


async def cancelled_in_thought(engine: Engine, wire: str) -> None:
    await at_gate(engine, thought(wire))
    await cancelled(engine)


async def cancelled_in_the_middle(engine: Engine, wire: str) -> None:
    await at_gate(engine, thought(wire), "I beg", thought(wire))
    await cancelled(engine)


async def cancelled_in_the_middle_of_a_call(engine: Engine, wire: str) -> None:
    await at_gate(engine, thought(wire), "I beg", *call()[:1])
    await cancelled(engine)


async def in_a_tool(engine: Engine, wire: str) -> None:
    """One of two calls is done, the other under way."""
    gate = Gate()

    async def act() -> ToolOutput:
        if len(engine.tool.calls) > 1:
            await gate.pass_through()
        return ToolOutput("worked")

    engine.tool.act = act
    engine.model.answer(thought(wire), "I begin", *call(call_id="c1"), *call(call_id="c2", index=1))
    await engine.post("wipe the disk", "a")
    await gate.reached()


async def cancelled_in_a_tool(engine: Engine, wire: str) -> None:
    await in_a_tool(engine, wire)
    await cancelled(engine)


async def failed_at_once(engine: Engine, wire: str) -> None:
    await failed(engine)


async def failed_in_the_middle(engine: Engine, wire: str) -> None:
    await failed(engine, thought(wire), "I beg")


async def failed_after_a_tool(engine: Engine, wire: str) -> None:
    engine.model.answer(thought(wire), *call())
    await failed(engine)


async def interrupted(engine: Engine, wire: str) -> None:
    await at_gate(engine, thought(wire), "I beg")


async def interrupted_before_the_first_word(engine: Engine, wire: str) -> None:
    await at_gate(engine)


async def shut_down(engine: Engine, wire: str) -> None:
    await at_gate(engine, "I beg")
    await engine.close()
