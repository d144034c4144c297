"""A whole piece of work on a real small repository, through each wire format: look, change, test, mend, stop, go on.

The model is a script, but everything else is real: the server process, the files, the commands, the connection.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from covey.context.prompt import summary_prompt
from covey.machine.names import TAG_VARIABLE
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, finish_of, until

FORMATS = {
    "chat": 'type = "openai-compatible"',
    "openai": 'type = "openai"\napi = "chat"',
    "responses": 'type = "openai"\napi = "responses"',
    "anthropic": 'type = "anthropic"',
    "google": 'type = "google"',
}

CALC = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a + b\n"
MENDED = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"
TEST = """\
import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)

    def test_mul(self):
        self.assertEqual(calc.mul(2, 3), 6)
"""
UNITTEST = f"{sys.executable} -B -m unittest -q"
"""Without bytecode: what is mended within the same second, and is as long as before, would not be compiled again."""


def view(path: str) -> Call:
    return Call(name="view", input={"file_path": path})


def edit(path: str, old: str, new: str) -> Call:
    return Call(name="edit", input={"file_path": path, "old_string": old, "new_string": new})


def bash(command: str) -> Call:
    return Call(name="bash", input={"command": command})


STEPS = [
    Reply(text="I look.", tools=(view("calc.py"), view("NOTES.md"), Call(name="grep", input={"pattern": "def "}))),
    Reply(
        text="Two files change.",
        tools=(edit("calc.py", "a - b", "a + b"), edit("NOTES.md", "add: broken", "add: mended")),
    ),
    Reply(text="Now the tests.", tools=(bash(UNITTEST),)),
    Reply(
        text="mul is wrong too.",
        tools=(edit("calc.py", "mul(a, b):\n    return a + b", "mul(a, b):\n    return a * b"),),
    ),
    Reply(text="I wait.", tools=(bash("touch started; sleep 300 & sleep 300"),)),
    Reply(text="Once more.", tools=(bash(UNITTEST),), usage=(900, 10)),
    Reply(text="calc.py is mended; its tests pass.", usage=(20, 10)),
    Reply(text="All done."),
    Reply(text="You are welcome."),
]


@pytest.fixture(params=FORMATS)
def settings(request: pytest.FixtureRequest) -> str:
    return FORMATS[request.param]


@pytest.fixture
def server_config(model: FakeModel, settings: str) -> str:
    return f"""
[models]
large = "fake/m"
[providers.fake]
{settings}
base_url = "{model.url}"
api_key = "not-a-real-key"
models = [{{ id = "m", context_window = 1000, price_prompt = 100, price_completion = 1000 }}]
[limits]
summarize_at = 0.85
"""


@pytest.fixture
def server(server: Server) -> Server:
    repository(server.project)
    return server


def repository(project: Path) -> None:
    (project / "calc.py").write_text(CALC)
    (project / "test_calc.py").write_text(TEST)
    (project / "NOTES.md").write_text("# Notes\n\nadd: broken\n")
    (project / "AGENTS.md").write_text("Run the tests before you say that you are done.\n")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    commands = ("init -q -b main", "add .", "-c user.name=t -c user.email=t@example.com commit -qm begin")
    for command in commands:
        subprocess.run(["git", *command.split()], cwd=project, env=env, check=True)


def results(workspace: Workspace, session: str) -> list[Any]:
    parts = [part for message in workspace.messages(session) for part in message["parts"]]
    return [part["data"] for part in parts if part["type"] == "tool_result"]


def processes(workspace: Workspace) -> list[str]:
    """What the tools of a workspace have running, by the tag in the environment of each process."""
    tag = f"{TAG_VARIABLE}=covey-{workspace.id}-".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and tag in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def answered(request: Recorded) -> bool:
    """Whether each tool call in a request has exactly one result, in the words of its format."""
    body = request.body
    if "contents" in body:
        parts = [part for content in body["contents"] for part in content["parts"]]
        return _count(parts, "functionCall") == _count(parts, "functionResponse")
    if "input" in body:
        calls = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
        outputs = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
        return calls == outputs
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    used = [b["id"] for b in blocks if b["type"] == "tool_use"]
    used += [call["id"] for m in body["messages"] for call in m.get("tool_calls") or ()]
    results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
    results += [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
    return used == results


def _count(parts: list[Any], key: str) -> int:
    return sum(key in part for part in parts)


def test_a_whole_piece_of_work(server: Server, workspace: Workspace, model: FakeModel) -> None:
    steps = iter(STEPS)
    model.on(lambda request: next(steps))
    session = workspace.session()
    stream = workspace.stream()

    workspace.prompt(session, "mend calc.py", run_id="r1", yolo=True)
    until((server.project / "started").exists)
    assert any("sleep 300" in command for command in processes(workspace))
    assert [covered["run_id"] for covered in workspace.cancel(session)["covered"]] == ["r1"]
    assert stream.terminal("r1")["cancelled"] is True
    assert not processes(workspace)

    workspace.prompt(session, "go on", run_id="r2", yolo=True)
    end = stream.terminal("r2")
    assert (end["text"], end.get("error")) == ("All done.", None)
    workspace.prompt(session, "thanks", run_id="r3")
    assert workspace.ended("r3")["text"] == "You are welcome."

    assert (server.project / "calc.py").read_text() == MENDED
    assert (server.project / "NOTES.md").read_text() == "# Notes\n\nadd: mended\n"
    first, second = (r["content"] for r in results(workspace, session) if UNITTEST and "Ran 2 tests" in r["content"])
    assert "FAILED (failures=1)" in first and "exit code 1" in first
    assert "OK" in second and "exit code 0" in second
    assert "calc.py" in results(workspace, session)[2]["content"], "grep found it"

    reasons = [finish_of(m) for m in workspace.messages(session) if m["role"] == "assistant"]
    assert reasons == ["tool_use"] * 4 + ["canceled", "tool_use", "end_turn", "end_turn", "end_turn"]
    (summary,) = (m for m in workspace.messages(session) if m.get("is_summary_message"))
    told = workspace.get(f"/sessions/{session}")
    assert told["summary_message_id"] == summary["id"]
    # 7 answers of 10 and 5 tokens, one of 900 and 10, and the summary of 20 and 10; in dollars a million 100 and 1000.
    assert told["cost"] == pytest.approx((7 * 10 + 900 + 20) * 100e-6 + (7 * 5 + 10 + 10) * 1000e-6)

    assert all(answered(request) for request in model.requests)
    asked, following = model.requests[6], model.requests[7]
    assert summary_prompt().partition("\n")[0] in str(asked.body)
    assert "its tests pass" in following.prompt and "go on" in following.prompt
    model.wait_for(lambda: all(request.ended for request in model.requests))
    assert not processes(workspace)


def test_the_model_is_told_where_it_is_and_what_the_project_says(workspace: Workspace, model: FakeModel) -> None:
    workspace.ended(workspace.prompt(workspace.session(), "look at @NOTES.md", run_id="r1")["run_id"])
    (request,) = model.requests
    told = str(request.body)
    assert "Run the tests before you say that you are done." in told
    assert str(workspace.server.project) in told
    assert "branch main" in told
    assert "add: broken" in told, "the file that was mentioned came along"


def test_a_turn_is_undone_with_its_files(server: Server, workspace: Workspace, model: FakeModel) -> None:
    steps = iter([STEPS[0], STEPS[1], Reply(text="done")])
    model.on(lambda request: next(steps))
    session = workspace.session()
    workspace.prompt(session, "mend it", run_id="r1", yolo=True)
    assert workspace.ended("r1")["state"] == "completed"
    assert "mended" in (server.project / "NOTES.md").read_text()
    undone = workspace.request("POST", f"/sessions/{session}/undo", {}).ok()
    assert [turn["run_id"] for turn in undone["undone"]] == ["r1"]
    assert (server.project / "calc.py").read_text() == CALC
    assert "broken" in (server.project / "NOTES.md").read_text()
    assert workspace.messages(session) == []
