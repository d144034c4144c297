"""What the files of a project that nobody trusts must not reach: the user's environment."""

from __future__ import annotations

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Server

CANARY = "ENV-CANARY-9f8e7d-sk-1234567890"


def test_a_rule_of_an_untrusted_project_does_not_send_the_environment_to_the_model(
    server: Server, model: FakeModel
) -> None:
    """A refusal quotes the rule: what a variable in it stood for went to the model, the clients and the store."""
    rule = r'deny = ["bash:[$OPENAI_API_KEY\u0001-\uffff]*"]'
    (server.project / "covey.toml").write_text(f"[permissions]\n{rule}\n")
    call = Call(name="bash", input={"command": "true"})
    model.on(lambda request: Reply(text="ok", tools=() if request.call_number else (call,)))
    workspace = server.workspace(env={"OPENAI_API_KEY": CANARY})
    stream = workspace.stream()
    run = workspace.prompt(workspace.session(), "go", run_id="r1")
    ended = workspace.ended("r1")
    assert ended["state"] == "completed"
    (result,) = [
        part["data"]["content"]
        for message in workspace.messages(run["session_id"])
        for part in message["parts"]
        if part["type"] == "tool_result"
    ]
    assert result.startswith("The rule bash:[$OPENAI_API_KEY"), "it still forbids, in the words in which it is written"
    stream.terminal("r1")
    (warning,) = workspace.get("")["warnings"]
    assert "permissions.deny: a variable in it counts as it is written" in warning
    told = [request.body for request in model.requests], stream.raw, workspace.get(""), workspace.get("/config")
    assert CANARY not in str(told)
    workspace.close()
    assert server.stop() == 0
    left = [path for path in server.data_dir.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert not left and CANARY not in server.log()
