"""What an editor may count on, by the numbers of the statements. Each message is judged by the official schema."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from covey.acp.stdio import LEAVE_S, LINE_BYTES
from tests.acp.conftest import LONG_COMMAND, StartEditor
from tests.acp.editor import Editor, text_of
from tests.acp.looking import runs, state_of
from tests.cli.conftest import Home, finish, has_ended, until
from tests.mcp_server.test_mcp_sdk import HttpServer
from tests.support.mcp import HOSTILE

CANCELLED = {"outcome": {"outcome": "cancelled"}}


def children(pid: int) -> list[int]:
    """Processes whose parent this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def test_a1_when_stdin_ends_the_bridge_leaves_and_the_run_goes_on(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    editor.prompt(session, "answer slowly")
    editor.update("agent_message_chunk")
    assert set(children(editor.process.pid)) <= {home.pid()}  # the server, which stays on purpose
    assert editor.leave() == 0
    assert LEAVE_S < 1  # nothing else is waited for when the editor has left
    until(lambda: state_of(home, "answer slowly") == "completed", "the end of the run")


def test_a1_when_the_bridge_is_killed_a_new_one_has_all_of_it_once(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    editor.prompt(session, "answer slowly")
    editor.update("agent_message_chunk")
    editor.process.send_signal(signal.SIGKILL)
    editor.process.wait()
    again = start(home)
    before = again.load(session)
    assert before[0]["content"]["text"] == "answer slowly"
    until(lambda: again.next() and text_of(again.updates()).count("word") == 60, "the rest of the answer")
    assert again.said() == "word " * 60
    assert again.said("user_message_chunk") == "answer slowly"


def test_a2_whatever_version_is_asked_for_the_answer_is_1(home: Home, start: StartEditor) -> None:
    editor = start(home)
    for version in (2, 99):
        assert editor.call("initialize", {"protocolVersion": version})["protocolVersion"] == 1


def test_a3_what_is_announced_is_there(home: Home, start: StartEditor) -> None:
    editor = start(home)
    can = editor.opened["agentCapabilities"]
    cwd = str(home.project)
    session = editor.new()
    assert editor.reply(editor.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
    methods: dict[str, dict[str, Any]] = {
        "list": {"cwd": cwd},
        "resume": {"sessionId": session, "cwd": cwd},
        "close": {"sessionId": session},
        "delete": {"sessionId": session},
    }
    assert set(can["sessionCapabilities"]) == set(methods)
    assert can["loadSession"] is True
    assert text_of(editor.load(session)) == "You said: hello"
    assert [each["sessionId"] for each in editor.call("session/list", methods["list"])["sessions"]] == [session]
    for name in ("resume", "close", "delete"):
        editor.call(f"session/{name}", methods[name])
    assert editor.call("session/list", methods["list"])["sessions"] == []
    assert session not in [each["sessionId"] for each in editor.call("session/list", {})["sessions"]]
    assert editor.refused("session/delete", {"sessionId": session})["code"] == -32002
    assert editor.refused("authenticate", {"methodId": "none"})["code"] == -32602


def test_a3_pictures_and_files_come_along(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    (home.project / "here.txt").write_text("hello")
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "resource_link", "uri": f"file://{home.project}/here.txt", "name": "here.txt"},
        {"type": "resource", "resource": {"uri": "file:///x/far.py", "text": "x = 1"}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]
    answer = editor.reply(editor.begin("session/prompt", {"sessionId": session, "prompt": blocks}))
    assert answer["result"]["stopReason"] == "end_turn"
    assert editor.said().startswith('You said: see @"here.txt"')
    again = editor.load(session)
    shown = [update["content"] for update in again if update["sessionUpdate"] == "user_message_chunk"]
    assert {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"} in shown
    assert any("/x/far.py" in block.get("text", "") for block in shown)
    assert any("here.txt]" in block.get("text", "") for block in shown)
    audio = [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]
    assert editor.refused("session/prompt", {"sessionId": session, "prompt": audio})["code"] == -32602


def test_a4_a_session_is_known_by_its_id_also_after_a_restart(own_home: Home, start: StartEditor) -> None:
    editor = start(own_home)
    session = editor.new()
    editor.reply(editor.prompt(session, "hello"))
    server = own_home.pid()
    assert editor.leave() == 0
    os.kill(server, signal.SIGKILL)
    until(lambda: has_ended(server), "the end of the server")
    again = start(own_home)
    assert text_of(again.load(session)) == "You said: hello"
    assert [each["id"] for each in own_home.sessions()] == [session]


def test_a4_a_session_is_there_and_answers_though_a_server_of_the_editor_never_does(
    home: Home, start: StartEditor, tmp_path: Path
) -> None:
    editor, log = start(home), tmp_path / "asked.log"
    silent = {"name": "mute", "command": sys.executable, "args": ["-S", str(HOSTILE), "silent", str(log)], "env": []}
    session = editor.call("session/new", {"cwd": str(home.project), "mcpServers": [silent]})["sessionId"]
    assert editor.reply(editor.prompt(session, "hello"))["result"]["stopReason"] == "end_turn"
    until(lambda: log.exists() and "server/discover" in log.read_text(), "the question to the server")
    states = {each["name"]: each["state"] for each in json.loads(home.covey("mcp", "list", "--json").stdout)}
    assert states == {"mute": "starting"}, "it was waited for by nobody"
    editor.call("session/close", {"sessionId": session})


def test_a5_a_cancel_ends_what_this_editor_began_and_nothing_else(home: Home, start: StartEditor) -> None:
    one, two = start(home, name="One"), start(home, name="Two")
    session = one.new()
    first = one.prompt(session, "hang on")
    one.update("agent_message_chunk", lambda update: "two" in update["content"]["text"])
    two.load(session)
    second = two.prompt(session, "second")
    until(lambda: len(runs(home)) == 2, "the second prompt")
    two.notify("session/cancel", {"sessionId": session})
    assert two.reply(second)["result"]["stopReason"] == "cancelled"
    assert state_of(home, "hang on") == "active"
    one.notify("session/cancel", {"sessionId": session})
    assert one.reply(first)["result"]["stopReason"] == "cancelled"
    assert one.said() == "one two "  # and all of it before the answer
    assert state_of(home, "hang on") == "cancelled"
    one.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
    assert one.said() == "one two "


def test_a5_a_request_that_is_taken_back_cancels_its_run(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "hang on")
    editor.update("agent_message_chunk")
    editor.notify("$/cancel_request", {"requestId": prompt})
    assert editor.reply(prompt)["result"]["stopReason"] == "cancelled"


def test_a6_a_cancel_right_behind_the_prompt_counts(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "hang on"}]}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
    ]
    editor.client.judge(messages[0], editor.agent)
    editor.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    assert editor.reply(1)["result"]["stopReason"] == "cancelled"
    assert [run.state for run in runs(home)] == ["cancelled"]


def test_a7_a_question_that_somebody_else_answered_is_taken_back(home: Home, start: StartEditor) -> None:
    one, two = start(home), start(home)
    session = one.new()
    two.load(session)
    prompt = one.prompt(session, "make a file")
    mine, theirs = one.asked(), two.asked()
    two.choose(theirs, "allow")
    taken_back = one.until(lambda message: message.get("method") == "$/cancel_request")
    assert taken_back["params"] == {"requestId": mine["id"]}
    one._judged = False  # the answer to a request that the judge knows is over
    one.choose(mine, "deny")
    assert one.reply(prompt)["result"]["stopReason"] == "end_turn"
    assert (home.project / "made").exists()
    assert one.said() == "I make it.Done."


def test_a8_what_an_agent_of_an_agent_asks_reaches_the_editor(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "send an agent")
    request = editor.asked()
    assert request["params"]["sessionId"] == session
    assert request["params"]["toolCall"]["kind"] == "read"
    assert request["params"]["toolCall"]["locations"] == [{"path": "/etc/hostname", "line": 1}]
    editor.choose(request, "deny")
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    assert editor.said() == "It has looked."


def test_a9_all_of_a_command_is_in_the_request(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "long command")
    request = editor.asked()["params"]
    call = request["toolCall"]
    assert call["kind"] == "execute" and call["title"].startswith("touch file-0 file-1")
    assert call["content"][0]["content"]["text"] == f"```sh\n{LONG_COMMAND}\n```"
    assert call["rawInput"]["command"] == LONG_COMMAND
    kinds = [option["kind"] for option in request["options"]]
    assert kinds[0] == "allow_once" and kinds[-1] == "reject_once"
    editor.choose(editor.seen[-1], "deny")
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"


def test_a9_a_change_is_in_the_request_as_a_diff(home: Home, start: StartEditor) -> None:
    editor = start(home)
    session = editor.new()
    prompt = editor.prompt(session, "write notes")
    request = editor.asked()
    call, path = request["params"]["toolCall"], str(home.project / "notes.md")
    change = {"type": "diff", "path": path, "oldText": None, "newText": "# Notes\n"}
    assert call["kind"] == "edit" and "notes.md" in call["title"]
    assert call["content"][0] == change
    assert call["locations"] == [{"path": path}]
    editor.choose(request, "allow")
    assert editor.update("tool_call_update", lambda u: u["status"] == "completed")["content"] == [change]
    editor.reply(prompt)
    assert (home.project / "notes.md").read_text() == "# Notes\n"


def test_a10_a_session_is_loaded_in_the_middle_of_a_turn(home: Home, start: StartEditor) -> None:
    one = start(home)
    session = one.new()
    one.reply(one.prompt(session, "hello"))
    running = one.prompt(session, "answer without end")
    one.update("agent_message_chunk", lambda update: "word" in update["content"]["text"])
    two = start(home)
    two.load(session)
    two.until(lambda message: text_of(two.updates()).count("word") >= 30)
    said = [update["content"]["text"] for update in two.updates() if update["sessionUpdate"] == "user_message_chunk"]
    assert said == ["hello", "answer without end"]
    two.notify("session/cancel", {"sessionId": session})  # the same editor, so the run is its own
    assert one.reply(running)["result"]["stopReason"] == "cancelled"
    text = one.said()
    while two.said() != text:
        assert two.next()


def test_a11_what_one_says_the_others_see(home: Home, start: StartEditor) -> None:
    one, two = start(home), start(home)
    session = one.new()
    two.load(session)
    one.reply(one.prompt(session, "from one"))
    two.update("agent_message_chunk")
    assert home.covey("run", "--session", session, "from a terminal").returncode == 0
    for editor in (one, two):
        while "from a terminal" not in editor.said():
            assert editor.next()
    assert one.said("user_message_chunk") == "from a terminal"
    assert two.said("user_message_chunk") == "from onefrom a terminal"
    assert one.said() == two.said() == "You said: from oneYou said: from a terminal"


def test_a12_what_is_large_unknown_or_no_message_at_all_leaves_the_connection_alive(
    home: Home, start: StartEditor
) -> None:
    editor = start(home, judged=False)
    session = editor.new()
    large = "x" * 2_000_000
    editor.begin("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": f"too much {large}"}]})
    assert editor.until(lambda message: "stopReason" in message.get("result", {}))["result"]["stopReason"]
    assert editor.refused("session/fly", {})["code"] == -32601
    editor.notify("session/sing", {"_meta": {"a": 1}})
    for line, code in [(b"no json\n", -32700), (b"[]\n", -32600), (b'{"id": 5}\n', -32600), (b'{"id": []}\n', -32600)]:
        editor.send_bytes(line)
        assert editor.until(lambda message: "error" in message)["error"]["code"] == code
    editor.send_bytes(b'{"jsonrpc": "2.0", "id": 6, "method": "session/list", "params": [1]}\n')
    assert editor.reply(6)["error"]["code"] == -32602
    for _ in range(LINE_BYTES // 2**20 + 1):
        editor.send_bytes(b"y" * 2**20)
    editor.send_bytes(b"\n")
    assert editor.until(lambda message: "error" in message)["error"]["code"] == -32600
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "hello", "_meta": {"b": 2}}], "_meta": {"c": 3}}
    assert editor.call("session/prompt", params)["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"cwd": "relative", "mcpServers": []}),
        ("session/new", {"mcpServers": []}),
        ("session/new", {"cwd": "/does/not/exist", "mcpServers": []}),
        ("session/load", {"cwd": "/tmp", "sessionId": "nobody", "mcpServers": []}),
        ("session/prompt", {"sessionId": "nobody", "prompt": []}),
        ("session/set_mode", {"sessionId": "nobody", "modeId": "ask"}),
        ("session/list", {"cursor": "made-up"}),
        ("session/close", {"sessionId": "nobody"}),
    ],
)
def test_a12_what_cannot_be_is_refused_by_code(one_editor: Editor, method: str, params: dict[str, Any]) -> None:
    error = one_editor.refused(method, params)
    assert error["code"] in (-32602, -32002) and error["message"]


@pytest.fixture(scope="module")
def one_editor(shared_home: Home) -> Any:
    editor = Editor(shared_home, judged=False)
    yield editor
    editor.close()


def test_a13_mcp_servers_of_the_editor_are_approved_used_and_end_with_the_session(
    home: Home, start: StartEditor, tmp_path: Path
) -> None:
    editor, log = start(home), tmp_path / "asked.log"
    servers = [
        {"name": "My Tools", "command": sys.executable, "args": ["-S", str(HOSTILE), "plain", str(log)], "env": []},
        {"type": "sse", "name": "far", "url": "http://127.0.0.1:1/", "headers": []},
    ]
    opened = editor.call("session/new", {"cwd": str(home.project), "mcpServers": servers})
    session = opened["sessionId"]
    assert "far" in editor.update("agent_thought_chunk")["content"]["text"]
    waiting = editor.prompt(session, "hang on")
    request = editor.asked()  # nobody has seen its tools yet
    begun = [update for update in editor.updates() if update["sessionUpdate"] == "tool_call"]
    assert [call["toolCallId"] for call in begun] == [request["params"]["toolCall"]["toolCallId"]]
    assert "Says it again." in request["params"]["toolCall"]["content"][1]["content"]["text"]
    editor.choose(request, "approve")
    ended = editor.update("tool_call_update", lambda update: update["toolCallId"] == begun[0]["toolCallId"])
    assert ended["status"] == "completed", "an editor that shows it as a call sees its end"
    editor.notify("session/cancel", {"sessionId": session})
    assert editor.reply(waiting)["result"]["stopReason"] == "cancelled"
    prompt = editor.prompt(session, "echo it")
    editor.choose(editor.asked(), "allow")
    assert editor.reply(prompt)["result"]["stopReason"] == "end_turn"
    results = [update for update in editor.updates() if update["sessionUpdate"] == "tool_call_update"]
    assert "plain: hi" in results[-1]["content"][0]["content"]["text"]
    assert processes_with(str(log))
    editor.call("session/close", {"sessionId": session})
    until(lambda: not processes_with(str(log)), "the end of the editor's server")


def test_a13_a_server_of_the_editor_may_be_on_http(home: Home, start: StartEditor, tmp_path: Path) -> None:
    """It is another Covey: `covey mcp serve --http`."""
    served = HttpServer(home)
    editor = start(home)
    headers = [{"name": "Authorization", "value": f"Bearer {served.token}"}]
    servers = [{"type": "http", "name": "other", "url": served.url, "headers": headers}]
    opened = editor.call("session/new", {"cwd": str(home.project), "mcpServers": servers})
    session = opened["sessionId"]
    waiting = editor.prompt(session, "hang on")
    told = json.dumps(editor.asked()["params"])
    assert "list_sessions" in told and served.token not in told
    editor.notify("session/cancel", {"sessionId": session})
    assert editor.reply(waiting)["result"]["stopReason"] == "cancelled"
    assert served.close() == 0


def processes_with(word: str) -> list[int]:
    """Processes with this among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def test_two_bridges_and_a_terminal_share_a_session(home: Home, start: StartEditor) -> None:
    one, two = start(home), start(home)
    session = one.new()
    two.load(session)
    prompt = one.prompt(session, "make a file")
    for editor in (one, two):
        editor.asked()
    terminal = home.spawn("run", "--session", session, "after that")
    until(lambda: len(runs(home)) == 2, "the prompt of the terminal")
    one.choose(one.seen[-1], "allow")
    assert one.reply(prompt)["result"]["stopReason"] == "end_turn"
    code, _, err = finish(terminal)
    assert code == 0, err
    for editor in (one, two):
        while "after that" not in editor.said("user_message_chunk"):
            assert editor.next()
    assert two.said("user_message_chunk") == "make a fileafter that"
