"""N8: the same run id is the same run at every node, also when it is posted at two at once; and R7 holds there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support.cluster import Cluster
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Workspace, outline

LOOK = Call(name="ls", input={"path": "."})


def test_n8_posted_at_every_node_at_once_it_is_one_run(server: Cluster, workspace: Workspace, model: FakeModel) -> None:
    session = workspace.session()
    for number in range(5):
        body = {"session_id": session, "prompt": "hello", "run_id": f"r{number}"}
        with ThreadPoolExecutor(6) as pool:
            posts = [pool.submit(node.request, "POST", f"{workspace.path}/agent", body) for node in server.nodes * 2]
        answers = [post.result() for post in posts]
        assert {answer.status for answer in answers} == {202}
        assert len({answer.body["seq"] for answer in answers}) == 1
        assert workspace.ended(f"r{number}")["state"] == "completed"
    assert outline(workspace.messages(session)) == ["hello", "assistant end_turn"] * 5
    assert len(model.requests) == 5


def test_n8_an_id_with_other_content_is_refused_at_every_node(server: Cluster, workspace: Workspace) -> None:
    session = workspace.session()
    workspace.prompt(session, "hello", run_id="r1")
    for node in server.nodes:
        body = {"session_id": session, "prompt": "something else", "run_id": "r1"}
        node.request("POST", f"{workspace.path}/agent", body).refused(409, "run_id_reused")


def test_r7_a_prompt_without_an_id_is_folded_from_every_node(
    server: Cluster, workspace: Workspace, model: FakeModel
) -> None:
    """The id that the first node chooses does not count as the caller's."""

    def steps(request: Recorded) -> Reply:
        is_first = all(message["role"] != "tool" for message in request.body["messages"])
        return Reply(text="", tools=(LOOK,), gates={0: "go"}) if is_first else Reply(text="done")

    model.on(steps)
    session = workspace.session()
    workspace.prompt(session, "first", run_id="host")
    model.wait_for(lambda: len(model.requests) == 1)
    posted = [
        node.request("POST", f"{workspace.path}/agent", {"session_id": session, "prompt": node.name}).ok()["run_id"]
        for node in server.nodes
    ]
    model.release("go")
    assert workspace.ended("host")["state"] == "completed"
    assert [workspace.ended(run_id)["folded_into"] for run_id in posted] == ["host"] * 3
