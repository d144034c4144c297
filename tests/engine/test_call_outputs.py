"""What the calls of a turn print, as clients of the workspace see it: nothing after a result, nothing after the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from covey.engine.commands.stream import Reader
from covey.protocol.endings import OUTPUT_UNTIL_THEN, CallEnd, call_end
from covey.protocol.events import Event, ToolOutputDelta, decode_event
from covey.protocol.messages import Message
from covey.protocol.requests import RunShell
from covey.protocol.runs import RunComplete
from covey.protocol.sse import FrameDecoder
from covey.tools.base import ToolOutput
from tests.support.engine import Engine, Gate, Stubborn, call, config, running, within

pytestmark = pytest.mark.anyio


class Client:
    """A client of the event stream, which reads when the test says so."""

    def __init__(self, reader: Reader) -> None:
        self.events: list[Event] = []
        self._reader = reader
        self._decoder = FrameDecoder()
        self._take(reader.present)

    def read(self) -> list[Event]:
        while data := self._reader.live.take():
            self._take(data)
        return self.events

    def _take(self, data: bytes) -> None:
        self.events += [event for frame in self._decoder.feed(data) if (event := decode_event(frame.data))]

    def outputs(self) -> list[ToolOutputDelta]:
        return [event.payload for event in self.read() if isinstance(event.payload, ToolOutputDelta)]

    def printed(self, call_id: str = "c1") -> list[tuple[int, str]]:
        return [(output.offset, output.delta) for output in self.outputs() if output.tool_call_id == call_id]

    def close(self) -> None:
        self._reader.live.close()


@contextmanager
def attached(engine: Engine, *, deltas: bool = True) -> Iterator[Client]:
    client = Client(engine.workspace.stream.open(engine.session_id, deltas=deltas))
    try:
        yield client
    finally:
        client.close()


class Printing:
    """In the place of what the tool does: prints, waits at a gate, prints again."""

    def __init__(self, engine: Engine, gate: Gate, *, outlives_call: bool = False) -> None:
        self.gate = gate
        self.ended = asyncio.Event()
        self._engine = engine
        self._outlives_call = outlives_call
        engine.tool.act = self._act

    async def _act(self) -> ToolOutput:
        assert self._engine.tool.context is not None
        self.open_sink = self._engine.tool.context.open_sink
        self.sink = self.open_sink(outlives_call=self._outlives_call)
        self.sink.publish(0, b"one ")
        await self.gate.pass_through()
        self.sink.publish(4, b"two")
        self.ended.set()
        return ToolOutput("result")


async def test_what_a_call_prints_stands_between_its_answer_and_its_result(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        printing = Printing(engine, Gate())
        with attached(engine) as client, attached(engine, deltas=False) as whole:
            engine.model.answer(*call())
            await engine.post("a", "a")
            await printing.gate.reached()
            assert client.printed() == whole.printed() == [(0, "one ")]
            printing.gate.open()
            await engine.ended("a")
            assert client.printed() == whole.printed() == [(0, "one "), (4, "two")]
            kinds = [event.type for event in client.events]
            answer = next(m for m in engine.messages() if m.tool_calls)
            for event in client.events:
                if isinstance(event.payload, ToolOutputDelta):
                    assert (event.payload.run_id, event.payload.message_id) == ("a", answer.id)
                    assert event.payload.session_id == engine.session_id
        results = [
            index
            for index, event in enumerate(client.events)
            if isinstance(event.payload, Message) and event.payload.tool_results
        ]
        last = len(kinds) - 1 - kinds[::-1].index("tool_output")
        assert last < results[0]


async def test_whoever_attaches_while_a_call_runs_gets_what_it_has_printed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        printing = Printing(engine, Gate())
        engine.model.answer(*call())
        await engine.post("a", "a")
        await printing.gate.reached()
        with attached(engine) as client:
            assert client.printed() == [(0, "one ")]
            printing.gate.open()
            await engine.ended("a")
            assert client.printed() == [(0, "one "), (4, "two")]
        with attached(engine) as late:
            assert late.printed() == [], "the result is what counts now"


async def test_nothing_is_printed_after_run_complete_by_a_call_that_was_abandoned(tmp_path: Path) -> None:
    """It may still print, and even begin to, but nobody sees it."""
    async with running(tmp_path, settings=config(grace_s=0.01)) as engine:
        printing = Printing(engine, Stubborn())
        with attached(engine) as client:
            engine.model.answer(*call())
            await engine.post("a", "a")
            await printing.gate.reached()
            await engine.cancel()
            await engine.ended("a")
            printing.gate.open()
            await within(printing.ended.wait())
            for outlives_call in (False, True):
                printing.open_sink(outlives_call=outlives_call).publish(7, b"three")
            assert client.printed() == [(0, "one ")]
            kinds = [type(event.payload) for event in client.events]
            assert kinds.index(RunComplete) > kinds.index(ToolOutputDelta)
        with attached(engine) as late:
            assert late.printed() == []


async def test_what_a_job_prints_is_seen_after_its_run_until_it_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        printing = Printing(engine, Gate(), outlives_call=True)
        printing.gate.open()
        with attached(engine) as client:
            engine.model.answer(*call())
            await engine.post("a", "a")
            await engine.ended("a")
            client.read()
            printing.sink.publish(7, b" three")
            with attached(engine) as late:
                assert late.printed() == [(0, "one two three")]
            assert client.printed()[-1] == (7, " three")
        printing.sink.close()
        printing.sink.publish(13, b" four")
        with attached(engine) as late:
            assert late.printed() == []


async def test_a_disk_that_cannot_write_holds_back_nothing_that_is_printed(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        printing = Printing(engine, Gate())
        with attached(engine) as client:
            engine.model.answer(*call())
            await engine.post("a", "a")
            await printing.gate.reached()
            engine.disk.hold()
            try:
                printing.gate.open()
                await within(printing.ended.wait())
                assert client.printed() == [(0, "one two")]
            finally:
                engine.disk.release()
            await engine.ended("a")


@pytest.mark.parametrize("gate", [Gate, Stubborn])
async def test_what_a_cancelled_call_had_printed_is_kept_with_its_result(tmp_path: Path, gate: type[Gate]) -> None:
    """For the model too, when it goes on; also if the call could not be stopped."""
    async with running(tmp_path, settings=config(grace_s=0.2)) as engine:
        printing = Printing(engine, gate())
        engine.model.answer(*call())
        await engine.post("a", "a")
        await printing.gate.reached()
        await engine.cancel()
        await engine.ended("a")
        printing.gate.open()
        (result,) = (result for message in engine.messages() for result in message.tool_results)
        assert call_end(result) is CallEnd.CANCELLED
        assert result.content == f"{CallEnd.CANCELLED.words}{OUTPUT_UNTIL_THEN}one"
        await engine.post("go on", "b")
        await engine.ended("b")
        assert result in [seen for message in engine.model.requests[-1].messages for seen in message.tool_results]


async def test_what_a_person_has_started_is_seen_meanwhile_under_the_id_of_its_message(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        with attached(engine) as client, attached(engine, deltas=False) as whole:
            engine.workspace._parts.agent.root = tmp_path
            os.mkfifo(tmp_path / "go")
            command = RunShell(command="echo one; cat go")
            asking = asyncio.create_task(engine.workspace.shell.run(engine.session_id, command))
            while not (client.outputs() and whole.outputs()):
                await asyncio.sleep(0)
            with attached(engine) as late:
                assert client.outputs() == whole.outputs() == late.outputs()
            await asyncio.to_thread((tmp_path / "go").write_text, "two\n")
            assert (await within(asking)).output == "one\ntwo\n"
            (message,) = engine.messages()
            assert "".join(output.delta for output in client.outputs()) == "one\ntwo\n"
            assert {(o.run_id, o.message_id, o.tool_call_id) for o in client.outputs()} == {
                ("", message.id, message.id)
            }
            with attached(engine) as late:
                assert late.outputs() == [], "the message is what counts now"
