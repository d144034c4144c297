"""The embedded model's client, and the life of its process: with a process that is real and a model that is not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from covey.config import local_model
from covey.config.schema import ModelSettings, ProviderSettings
from covey.models import embedded_child
from covey.models.base import ModelFailed, ToolSpec
from covey.models.embedded import TINY_SYSTEM_PROMPT, Embedded, fit
from covey.protocol.messages import Binary, BinaryPart, Message, ToolCall, ToolCallPart
from tests.models.asking import answer, message, request, text

pytestmark = pytest.mark.anyio

FAKE = Path(__file__).with_name("fake_embedded.py")
ROOT = Path(__file__).parents[2]
Make = Callable[..., Embedded]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def until(condition: Callable[[], Any], what: str) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes clients for a model file of a name; all processes are ended with the test."""
    monkeypatch.setattr(embedded_child, "command", lambda: [sys.executable, str(FAKE)])
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}")
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    made: list[Embedded] = []

    def make(name: str = "model", **settings: Any) -> Embedded:
        file = tmp_path / f"{name}.gguf"
        file.touch()
        made.append(Embedded("local", ProviderSettings(type="embedded", model_file=str(file), **settings)))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()
    await embedded_child.end_all()


async def pid_of(client: Embedded) -> int:
    return int(text(await answer(client, "your pid")))


async def failure(client: Embedded, prompt: str) -> ModelFailed:
    with pytest.raises(ModelFailed) as failed:
        await answer(client, prompt)
    return failed.value


async def give_up(client: Embedded, prompt: str) -> None:
    """Ask, read the first words, and be cancelled."""
    began = asyncio.Event()

    async def ask() -> None:
        async for _ in client.stream(request(prompt)):
            began.set()

    asking = asyncio.create_task(ask())
    await asyncio.wait_for(began.wait(), 60)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()


async def test_an_answer_streams_out_of_a_process_of_its_own(make: Make) -> None:
    client = make()
    assert text(await answer(client, "hello")) == "You said: hello"
    pid = await pid_of(client)
    assert pid != os.getpid()
    assert pid == await pid_of(client)


async def test_all_clients_of_a_model_share_one_process_and_wait_for_each_other(make: Make) -> None:
    one, two, other = make(), make(), make("another")
    pids = await asyncio.gather(*(pid_of(client) for client in (one, two, one, two, other)))
    assert len(set(pids[:4])) == 1
    assert pids[4] != pids[0]


async def test_a_cancelled_answer_leaves_a_process_that_falls_quiet(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_child, "STOP_GENERATION_S", 30)  # on a busy machine that may take its time
    client = make()
    pid = await pid_of(client)
    await give_up(client, "endless")
    assert await pid_of(client) == pid


async def test_a_cancelled_answer_ends_a_process_that_goes_on_computing(make: Make) -> None:
    client = make()
    pid = await pid_of(client)
    await give_up(client, "stubborn")
    await until(lambda: not is_alive(pid), "the process is killed")
    assert await pid_of(client) != pid


async def test_an_iterator_that_is_closed_is_a_cancelled_answer(make: Make) -> None:
    client = make()
    pid = await pid_of(client)
    facts = client.stream(request("stubborn"))
    await anext(facts)
    await facts.aclose()
    await until(lambda: not is_alive(pid), "the process is killed")


async def test_a_crash_is_reported_with_the_last_words_and_the_next_prompt_gets_a_new_process(make: Make) -> None:
    client = make()
    pid = await pid_of(client)
    failed = await failure(client, "crash")
    assert str(failed) == "local: the model's process ended with code 3: out of memory, or so"
    assert failed.busy, "nothing of an answer was seen: another model may do"
    failed = await failure(client, "late-crash")
    assert str(failed).startswith("local: the model's process was ended by SIGABRT")
    assert not failed.busy
    assert await pid_of(client) != pid


async def test_a_process_that_somebody_killed_is_started_again(make: Make) -> None:
    client = make()
    pid = await pid_of(client)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_alive(pid), "it is dead")
    child = client._child
    assert child
    await until(lambda: child.pid is None, "its death is known")
    assert await pid_of(client) != pid


async def test_a_model_that_cannot_be_loaded_says_why_within_bounds(make: Make) -> None:
    failed = await failure(make("broken"), "hello")
    assert str(failed).endswith("x this file is no model")
    assert len(str(failed)) < embedded_child.MAX_STDERR + 50
    assert failed.busy


async def test_a_model_that_takes_too_long_to_load_is_given_up(make: Make, tmp_path: Path) -> None:
    failed = await failure(make("slow", idle_timeout_s=0.5), "hello")
    assert str(failed) == "local: the model was not loaded within 0.5 s (idle_timeout_s)"


async def test_a_cancel_while_the_model_is_loaded_ends_the_process(make: Make, tmp_path: Path) -> None:
    asking = asyncio.create_task(answer(make("slow"), "hello"))
    pid_file = tmp_path / "slow.pid"
    await until(lambda: pid_file.exists() and pid_file.read_text(), "it loads")
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert not is_alive(int(pid_file.read_text()))


async def test_a_model_that_nobody_asks_leaves_the_memory(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_child, "IDLE_S", 0.05)
    client = make()
    pid = await pid_of(client)
    await until(lambda: not is_alive(pid), "it has ended")
    assert await pid_of(client) != pid


async def test_it_outlives_its_last_client_for_a_while_and_serves_the_next(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make(), make()
    pid = await pid_of(one)
    await one.aclose()
    assert await pid_of(two) == pid
    monkeypatch.setattr(embedded_child, "LINGER_S", 0.05)
    await two.aclose()
    await until(lambda: not is_alive(pid), "it has ended")


async def test_it_sees_no_keys_and_what_it_is_asked_goes_out_as_it_is(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    client = make()
    seen = text(await answer(client, "your env")).split()
    assert "PATH" in seen
    assert "OPENAI_API_KEY" not in seen
    tool = ToolSpec("ls", "lists", {"type": "object"})
    asked = json.loads(text(await answer(client, request("the request", system="Be kind.", tools=[tool]))))
    assert not client.is_tiny, "the user's own model is a model like any other"
    assert asked["messages"][0] == {"role": "system", "content": "Be kind."}
    assert asked["tools"]


KILLED = """
    import asyncio, sys
    from pathlib import Path
    from covey.config import local_model
    from covey.config.schema import ProviderSettings
    from covey.models import embedded_child
    from covey.models.embedded import Embedded
    from tests.models.asking import answer, request, text

    async def main():
        embedded_child.command = lambda: [sys.executable, sys.argv[1]]
        local_model.has_runtime = lambda: True
        client = Embedded("local", ProviderSettings(type="embedded", model_file=sys.argv[2]))
        print(text(await answer(client, "your pid")), flush=True)
        async for _ in client.stream(request("endless")):
            print("computing", flush=True)

    asyncio.run(main())
"""


def test_the_process_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.touch()
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(FAKE), str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as server:
        assert server.stdout
        pid = int(server.stdout.readline())
        assert server.stdout.readline() == "computing\n"
        assert is_alive(pid)
        server.kill()
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ── what is missing ──


def test_without_xllamacpp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: False)
    with pytest.raises(ModelFailed, match=r"^local: .* install covey\[local\]"):
        Embedded("local", ProviderSettings(type="embedded"))


def test_without_weights_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    monkeypatch.setattr(local_model, "find_weights", lambda: None)
    with pytest.raises(ModelFailed, match="`covey models get`"):
        Embedded("local", ProviderSettings(type="embedded"))


def test_a_model_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    with pytest.raises(ModelFailed, match=r"there is no model file /nowhere/x\.gguf"):
        Embedded("local", ProviderSettings(type="embedded", model_file="/nowhere/x.gguf"))


def test_the_context_is_what_the_settings_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    monkeypatch.setattr(local_model, "find_weights", lambda: tmp_path / "w.gguf")
    tiny = Embedded("local", local_model.PROVIDER)
    assert tiny.is_tiny
    assert tiny._spec.context_window == local_model.CONTEXT_WINDOW
    assert tiny._spec.sha256 == local_model.SMOLLM2.sha256
    (tmp_path / "own.gguf").touch()
    models = (ModelSettings(id="own", context_window=2000),)
    own = Embedded("local", ProviderSettings(type="embedded", model_file=str(tmp_path / "own.gguf"), models=models))
    assert (own._spec.context_window, own._spec.sha256) == (2000, "")


# ── what a very small model is sent ──


def roles(messages: list[Message]) -> list[str]:
    return [f"{message.role}: {message.text}" for message in messages]


def test_a_tiny_model_gets_a_short_prompt_and_no_tools() -> None:
    asked = fit(request("hello", system="x" * 5000, tools=[ToolSpec("ls", "lists", {})], effort="high"), 4096)
    assert asked.system == TINY_SYSTEM_PROMPT
    assert (asked.tools, asked.effort, asked.sees_images) == ([], "", False)
    assert asked.max_tokens == local_model.MAX_TOKENS
    assert roles(asked.messages) == ["user: hello"]
    assert fit(request("hello", system="Be kind."), 4096).system == "Be kind."


def test_a_tiny_model_gets_the_last_messages_that_fit_beginning_with_a_prompt() -> None:
    talk = [
        message("user", "old " * 2000),
        message("assistant", "older answer"),
        message("user", "what is a fox"),
        message("assistant", "an animal"),
        message("user", "what colour"),
    ]
    assert roles(fit(request(*talk), 4096).messages)[0] == "user: " + "old " * 2000
    assert roles(fit(request(*talk), 2048).messages) == [
        "user: what is a fox",
        "assistant: an animal",
        "user: what colour",
    ]


def test_a_prompt_too_long_for_a_tiny_model_is_not_cut() -> None:
    long = "word " * 10_000
    assert roles(fit(request("hi", message("assistant", "hello"), long), 4096).messages) == [f"user: {long}"]


def test_a_tiny_model_gets_only_what_was_said() -> None:
    call = ToolCallPart(data=ToolCall(id="c1", name="ls", input="{}", finished=True))
    talk = [
        message("user", "list the files"),
        message("assistant", call),
        message("tool", "a file"),
        message("assistant", "there is one", call),
        message("user", "thanks"),
    ]
    asked = fit(request(*talk), 4096)
    assert roles(asked.messages) == ["user: list the files", "assistant: there is one", "user: thanks"]
    assert not any(entry.tool_calls for entry in asked.messages)


def test_attached_files_count_as_words() -> None:
    file = BinaryPart(data=Binary(Path="a.txt", MIMEType="text/plain", Data="QUFB" * 5000))
    asked = fit(request(message("user", "read this", file), message("assistant", "done"), "and?"), 4096)
    assert roles(asked.messages) == ["user: and?"]
