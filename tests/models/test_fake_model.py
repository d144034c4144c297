"""The fake model is a tool of other tests, so it is tested like one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply, directed


def recorded(*messages: tuple[str, Any]) -> Recorded:
    body = {"messages": [{"role": role, "content": content} for role, content in messages]}
    return Recorded(body, {}, 0.0, 1)


def ask(url: str, prompt: str) -> str:
    body = json.dumps({"messages": [{"role": "user", "content": prompt}]}).encode()
    with urlopen(Request(f"{url}/chat/completions", body), timeout=10) as response:
        text: str = response.read().decode()
        return text


def test_without_a_directive_it_says_hello() -> None:
    assert directed(recorded(("user", "hi"))) == Reply()
    assert directed(recorded()) == Reply()


def test_the_prompt_says_what_each_call_gets() -> None:
    prompt = 'Go. [[{"tools": [{"name": "bash", "input": {"a": [[1]]}}]}, {"text": "x", "chunks": 9}]] Thanks.'
    first = directed(recorded(("user", prompt)))
    assert first.tools == (Call(name="bash", input={"a": [[1]]}),)
    again = (("user", prompt), ("assistant", None), ("tool", "ok"))
    assert directed(recorded(*again)).chunks == 9
    assert directed(recorded(*again, ("assistant", None), ("tool", "ok"))).chunks == 9
    assert directed(recorded(*again, ("user", [{"type": "text", "text": "hi"}]))) == Reply()


def test_a_mistake_in_a_test_is_shown() -> None:
    with FakeModel() as model, pytest.raises(HTTPError) as refused:
        ask(model.url, '[[{"txt": "x"}]]')
    assert "unknown field `txt`" in refused.value.read().decode()


def test_a_whole_conversation() -> None:
    with FakeModel() as model:
        text = ask(model.url, '[[{"text": "{n};", "chunks": 3, "reasoning": "hm", "usage": [1, 2]}]]')
        model.wait_for(lambda: model.requests[0].ended)
        assert model.requests[0].closed_early_at is None
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert deltas == [{"reasoning_content": "hm"}, {"content": "0;"}, {"content": "1;"}, {"content": "2;"}, {}]
    assert chunks[-1]["usage"]["total_tokens"] == 3


@pytest.fixture
def process() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.support.fake_model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def test_as_a_process_of_its_own(process: str) -> None:
    root = process.removesuffix("/v1")
    with urlopen(Request(f"{root}/release/go", method="POST"), timeout=10) as response:
        assert response.status == 200
    assert "held" in ask(process, '[[{"text": "held", "gates": {"0": "go"}}]]')
    with urlopen(f"{root}/requests", timeout=10) as response:
        [request] = json.load(response)
    assert request["body"]["messages"][0]["role"] == "user" and request["closed_early_at"] is None
