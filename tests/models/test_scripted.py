"""The model that replays a script, and the demo that Covey carries."""

from __future__ import annotations

import asyncio
import json
import time
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ReasoningDelta, Stopped, TextDelta, ToolCallBegun, ToolInputDelta, UsageReported
from covey.models.base import ModelFailed
from covey.models.scripted import Script, Scripted
from covey.protocol.messages import ToolCall, ToolCallPart, ToolResult, ToolResultPart
from tests.models.asking import answer, message, request, text

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def scripted(folder: Path, *replies: Any) -> Scripted:
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": replies}))
    return Scripted("demo", ProviderSettings(type="scripted", script=str(path)))


def step(*actions: Any) -> dict[str, Any]:
    return {"steps": [actions]}


CALL = message(
    "assistant", ToolCallPart(data=ToolCall(id="a", name="bash", input="{}", finished=True)), message_id="m2"
)
RESULT = message(
    "tool",
    ToolResultPart(data=ToolResult(tool_call_id="a", name="bash", content="x", metadata="", is_error=False)),
    message_id="m2.results",
)


async def test_text_comes_word_by_word(folder: Path) -> None:
    model = scripted(folder, step({"text": "  Hello, big\nworld! "}))
    assert await answer(model) == [
        TextDelta("  Hello, "),
        TextDelta("big\n"),
        TextDelta("world! "),
        Stopped("end_turn"),
    ]


async def test_repeat_says_the_same_in_one_piece_each_time(folder: Path) -> None:
    facts = await answer(scripted(folder, step({"text": "a b ", "repeat": 3}, {"reasoning": "c d", "repeat": 1})))
    assert facts == [*[TextDelta("a b ")] * 3, ReasoningDelta("c d"), Stopped("end_turn")]


async def test_reasoning_usage_and_tool_calls(folder: Path) -> None:
    model = scripted(
        folder,
        step(
            {"reasoning": "hm hm"},
            {"tool": "bash", "input": {"command": "ls"}},
            {"tool": "view"},
            {"usage": [7, 3]},
        ),
    )
    assert await answer(model) == [
        ReasoningDelta("hm "),
        ReasoningDelta("hm"),
        ToolCallBegun(0, "call_m1_0", "bash"),
        ToolInputDelta(0, '{"command": "ls"}'),
        ToolCallBegun(1, "call_m1_1", "view"),
        ToolInputDelta(1, "{}"),
        UsageReported(7, 3),
        Stopped("tool_use"),
    ]


async def test_the_same_request_gets_the_same_answer(folder: Path) -> None:
    model = scripted(folder, step({"text": "a"}, {"tool": "bash"}))
    assert await answer(model) == await answer(model)


async def test_the_prompt_is_put_into_texts_only(folder: Path) -> None:
    model = scripted(folder, step({"text": "You: ${prompt}"}, {"tool": "bash", "input": {"command": "echo ${prompt}"}}))
    facts = await answer(model, request("old", message("assistant", "yes"), "two words; rm -rf /"))
    assert text(facts) == "You: two words; rm -rf /"
    assert ToolInputDelta(0, '{"command": "echo ${prompt}"}') in facts


async def test_the_first_reply_that_fits_is_used(folder: Path) -> None:
    model = scripted(
        folder,
        {"when": "^list", **step({"text": "one"})},
        {"when": "(?i)FILES", **step({"text": "two"})},
        step({"text": "three"}),
    )
    for prompt, said in (("list files", "one"), ("my files", "two"), ("hello", "three")):
        assert text(await answer(model, prompt)) == said


async def test_a_prompt_that_nothing_fits(folder: Path) -> None:
    with pytest.raises(ModelFailed, match="demo: the script has no reply for this prompt: hello"):
        await answer(scripted(folder, {"when": "bye", **step({"text": "x"})}))


async def test_each_model_call_of_a_turn_has_its_step_and_the_last_one_repeats(folder: Path) -> None:
    model = scripted(folder, {"steps": [[{"text": "first"}], [{"text": "second"}]]})
    assert text(await answer(model, request("go"))) == "first"
    assert text(await answer(model, request("go", CALL, RESULT))) == "second"
    assert text(await answer(model, request("go", CALL, RESULT, CALL, RESULT))) == "second"
    assert text(await answer(model, request("go", CALL, RESULT, "again"))) == "first"


async def test_an_error(folder: Path) -> None:
    model = scripted(folder, {"when": "key", **step({"error": "bad key", "auth": True})}, step({"error": "broken"}))
    with pytest.raises(ModelFailed, match="demo: broken") as failed:
        await answer(model)
    assert not failed.value.auth
    with pytest.raises(ModelFailed, match="demo: bad key") as failed:
        await answer(model, "key")
    assert failed.value.auth


async def test_an_error_after_some_words(folder: Path) -> None:
    facts = []
    with pytest.raises(ModelFailed):
        async for fact in scripted(folder, step({"text": "half"}, {"error": "x"})).stream(request("hello")):
            facts.append(fact)
    assert facts == [TextDelta("half")]


async def test_finish_ends_the_step(folder: Path) -> None:
    facts = await answer(scripted(folder, step({"text": "half"}, {"finish": "max_tokens"}, {"text": "never"})))
    assert facts == [TextDelta("half"), Stopped("max_tokens")]


async def test_hang_lasts_until_cancelled(folder: Path) -> None:
    connected = asyncio.Event()
    model = scripted(folder, step({"hang": True}))
    hanging = asyncio.create_task(answer(model, request("hello", on_connected=connected.set)))
    await connected.wait()
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(hanging, 5)


async def test_delays_are_kept(folder: Path) -> None:
    start = time.monotonic()
    await answer(scripted(folder, step({"delay_ms": 20}, {"text": "a b c", "delay_ms": 10})))
    assert time.monotonic() - start >= 0.05


async def test_others_get_their_turn_between_the_words(folder: Path) -> None:
    """A long script without delays must not hold the loop."""
    answering = asyncio.create_task(answer(scripted(folder, step({"text": "x", "repeat": 10_000}))))
    await asyncio.sleep(0)
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"replies": [\n  {"steps": [}\n]}', "not JSON: Expecting value: line 2 column 14"),
        ("", "not JSON: Expecting value: line 1 column 1"),
        ('{"replies": 5}', r"not valid: .*`\$\.replies`"),
        ('{"replies": [{"steps": []}]}', r"at least one step - at `\$\.replies\[0\]`"),
        ('{"replies": [{"steps": [[{"say": "x"}]]}]}', r"unknown field `say` - at `\$\.replies\[0\]\.steps\[0\]\[0\]`"),
        ('{"replies": [{"steps": [[{}]]}]}', r"An action needs one of .*steps\[0\]\[0\]`"),
        ('{"replies": [{"steps": [[{"text": "x", "tool": "y"}]]}]}', "does one thing, but this one has text and tool"),
        ('{"replies": [{"steps": [[{"text": "x", "repeat": -1}]]}]}', "must not be negative"),
        ('{"replies": [{"steps": [[{"finish": "whenever"}]]}]}', r"not valid: .*finish`"),
        ('{"replies": [{"when": "(", "steps": [[]]}]}', r"not a regular expression: .*replies\[0\]`"),
    ],
)
async def test_a_script_with_a_mistake(folder: Path, content: str, message: str) -> None:
    path = folder / "script.json"
    path.write_text(content)
    with pytest.raises(ModelFailed, match=message) as failed:
        Scripted("demo", ProviderSettings(type="scripted", script=str(path)))
    assert str(failed.value).startswith(f"demo: the script {path} is not ")


async def test_a_script_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ModelFailed, match=r"none\.json cannot be read: No such file"):
        Scripted("demo", ProviderSettings(type="scripted", script=str(folder / "none.json")))


def quick_demo(folder: Path) -> Scripted:
    """The demo that Covey carries, without its pauses."""
    demo = msgspec.json.decode(
        resources.files("covey.models")
        .joinpath("demo_script.json")
        .read_bytes()
        .replace(b'"delay_ms": 15', b'"delay_ms": 0')
    )
    return scripted(folder, *demo["replies"])


async def test_the_demo_answers_any_prompt(folder: Path) -> None:
    said = text(await answer(quick_demo(folder), "Say hello, and tell me what Covey is."))
    assert "scripted demo model" in said and "not an AI" in said
    assert "Covey is a coding agent that runs as a server." in said
    assert "You asked: Say hello, and tell me what Covey is." in said


@pytest.mark.parametrize("prompt", ["Please list files", "List the files here", "look around", "show me all my files"])
async def test_the_demo_shows_a_real_tool_call(folder: Path, prompt: str) -> None:
    demo = quick_demo(folder)
    facts = await answer(demo, prompt)
    assert [fact.name for fact in facts if isinstance(fact, ToolCallBegun)] == ["bash"]
    facts = await answer(demo, request(prompt, CALL, RESULT))
    assert facts[-1] == Stopped("end_turn") and "a real call" in text(facts)


async def test_the_demo_is_what_an_empty_script_means() -> None:
    carried = resources.files("covey.models").joinpath("demo_script.json").read_bytes()
    model = Scripted("demo", ProviderSettings(type="scripted"))
    assert model._script == msgspec.json.decode(carried, type=Script)
