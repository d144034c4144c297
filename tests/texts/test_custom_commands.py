"""`/name arguments`: the turn puts in what the command says, and every face can ask what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.cli import doctor_texts
from covey.config.edit import trust
from covey.engine.turns.summary import with_requests
from covey.protocol.custom import COMMAND_TYPE
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.messages import BinaryPart
from covey.protocol.requests import EditPrompt
from covey.protocol.who import Who
from tests.server.site import CLIENT, serving
from tests.support.engine import Gate, call
from tests.texts.places import Places, put
from tests.texts.working import along, working

pytestmark = pytest.mark.anyio


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


async def test_the_model_reads_what_the_command_says_and_people_what_was_typed(places: Places) -> None:
    places.command("review", "---\ndescription: Review.\n---\nReview $1 with care.")
    async with working(places) as engine:
        await engine.post("/review 'src a' now", "r")
        await engine.ended("r")
        (seen,) = engine.model.requests[0].messages
        assert seen.text == "/review 'src a' now"
        assert along(seen) == {"command /review": "Review src a with care."}
        assert engine.messages()[0] == seen, "the model reads what is stored"
        (part,) = [part for part in seen.parts if isinstance(part, BinaryPart)]
        assert part.data.MIMEType == COMMAND_TYPE


async def test_a_name_that_nobody_knows_is_a_prompt_like_any_other(places: Places) -> None:
    places.command("review", "Review.")
    async with working(places) as engine:
        for number, prompt in enumerate(["/unknown x", " /review", "/usr/bin/env is odd"]):
            await engine.post(prompt, f"r{number}")
            assert (await engine.ended(f"r{number}")).state == "completed"
        assert [along(message) for message in engine.messages() if message.role == "user"] == [{}, {}, {}]


async def test_s11_a_command_that_mentions_a_file_brings_it_along_by_the_rules_of_mentions(places: Places) -> None:
    put(places.root / "notes.txt", "remember")
    put(places.project / "outside.txt", "not yours")
    places.command("read", "Read @notes.txt and @../outside.txt and $ARGUMENTS.\n```\n@notes.txt\n```")
    async with working(places) as engine:
        await engine.post("/read @notes.txt", "r")
        await engine.ended("r")
        brought = along(engine.messages()[0])
        assert set(brought) == {"notes.txt", "command /read"}
        assert brought["notes.txt"] == "remember"


async def test_s4_a_command_of_a_project_that_nobody_trusts_fails_the_run_and_names_the_file(places: Places) -> None:
    file = places.command("deploy", "Deploy now.", base=places.root / ".claude")
    async with working(places, trusted=False) as engine:
        await engine.post("/deploy", "r")
        run = await engine.ended("r")
        assert run.state == "failed" and run.error and str(file) in run.error and "covey trust" in run.error
        assert engine.model.requests == []


async def test_s4_whoever_types_its_name_is_asked_once_and_each_change_is_another_question(places: Places) -> None:
    file = places.command("deploy", "Deploy now.", base=places.root / ".claude")
    async with working(places, trusted=False) as engine:
        await engine.post("/deploy", "a")
        await engine.ended("a")
        (asked,) = engine.of_type(ApprovalRequest)
        assert asked.kind == "command" and asked.source == str(file) and "Deploy now." in (asked.text or "")
        await engine.workspace.extensions.answer(asked.id, approve=True)
        await engine.post("/deploy", "b")
        assert (await engine.ended("b")).state == "completed"
        assert along(engine.model.requests[0].messages[-1]) == {"command /deploy": "Deploy now."}
        places.command("deploy", "Deploy now!", base=places.root / ".claude")
        await engine.post("/deploy", "c")
        assert (await engine.ended("c")).state == "failed" and len(engine.of_type(ApprovalRequest)) == 2


async def test_a_prompt_that_was_edited_while_it_waited_means_what_it_says_then(places: Places) -> None:
    places.command("one", "First.")
    places.command("two", "Second.")
    async with working(places) as engine:
        gate = Gate()
        engine.model.answer("wait ", gate)
        await engine.post("begin", "a")
        await gate.reached()
        await engine.post("/one", "b")
        await engine.workspace.runs.edit_queued(engine.session_id, "b", EditPrompt(prompt="/two"))
        gate.open()
        await engine.ended("b")
        assert along(engine.messages()[2]) == {"command /two": "Second."}


async def test_a_folded_prompt_is_expanded_before_the_step_that_reads_it(places: Places) -> None:
    places.command("also", "Also this.")
    async with working(places) as engine:
        gate = Gate()
        engine.model.answer(gate, *call("ls"))
        await engine.post("begin", "a")
        await gate.reached()
        await engine.post("/also")
        gate.open()
        await engine.ended("a")
        folded = engine.model.requests[1].messages[-1]
        assert along(folded) == {"command /also": "Also this."}


async def test_s8_a_change_counts_from_the_next_run_on(places: Places) -> None:
    places.command("say", "Old.")
    async with working(places) as engine:
        gate = Gate()
        engine.model.answer(gate, *call("ls"))
        await engine.post("begin", "a")
        await gate.reached()
        places.command("say", "New.")
        await engine.post("/say")
        gate.open()
        await engine.ended("a")
        assert along(engine.model.requests[1].messages[-1]) == {"command /say": "Old."}
        await engine.post("/say", "b")
        await engine.ended("b")
        assert along(engine.model.requests[2].messages[-1]) == {"command /say": "New."}


async def test_a_summary_in_the_turn_keeps_what_the_command_says(places: Places) -> None:
    places.command("review", "Review with care.")
    async with working(places) as engine:
        await engine.post("/review", "r")
        await engine.ended("r")
        prompt, answer = engine.messages()
        assert along(with_requests(answer, [prompt])) == {"command /review": "Review with care."}


async def test_every_face_can_ask_what_there_is_and_what_it_says(places: Places) -> None:
    places.command("git/commit", "---\ndescription: Commit.\nargument-hint: '[words]'\n---\nCommit: $ARGUMENTS")
    places.skill("tables", base=places.home / ".agents")
    places.skill("hidden", "---\ndescription: d\nuser-invocable: no\n---\nx", base=places.home / ".agents")
    places.agent("reviewer", "---\ndescription: Reviews.\n---\nYou review.")
    theirs = places.command("deploy", "---\ndescription: Deploy.\n---\nx", base=places.root / ".claude")
    async with serving(places.home) as site:
        workspace = await site.workspaces.create(str(places.root), Who(client_id=CLIENT), yolo=False, env={})
        workspace.custom._environ = places.environ
        base = f"/v1/workspaces/{workspace.id}/commands"
        listed = (await site.request("GET", base)).value
        assert [(each["name"], each["kind"], each["source"], each.get("needs_trust", False)) for each in listed] == [
            ("deploy", "command", "project", True),
            ("git:commit", "command", "user", False),
            ("reviewer", "agent", "user", False),
            ("tables", "skill", "user", False),
        ]
        assert listed[1]["argument_hint"] == "[words]" and listed[0]["path"] == str(theirs)
        said = await site.request("POST", f"{base}/expand", {"name": "/git:commit", "arguments": "all"})
        assert said.value == {"name": "git:commit", "kind": "command", "text": "Commit: all"}
        refused = await site.request("POST", f"{base}/expand", {"name": "deploy"})
        assert (refused.status, refused.code) == (403, "not_trusted")
        unknown = await site.request("POST", f"{base}/expand", {"name": "nothing"})
        assert (unknown.status, unknown.code) == (404, "command_not_found")
        trust(places.environ, places.root)
        assert (await site.request("POST", f"{base}/expand", {"name": "deploy"})).value["text"] == "x"


async def test_v1_clients_see_the_skills_in_their_shapes(places: Places) -> None:
    places.skill("tables", base=places.home / ".agents", body="Draw.")
    places.skill("theirs")
    async with serving(places.home) as site:
        workspace = await site.workspaces.create(str(places.root), Who(client_id=CLIENT), yolo=False, env={})
        workspace.custom._environ = places.environ
        base = f"/v1/workspaces/{workspace.id}/skills"
        about = {"name": "tables", "description": "How to tables.", "source": "user"}
        info = {**about, "id": "tables", "label": "tables", "user_invocable": True}
        assert (await site.request("GET", base)).value == [info]
        read = (await site.request("POST", f"{base}/read", {"skill_id": "tables"})).value
        assert read == {"content": "RHJhdy4=", "result": {**about, "builtin": False}}
        assert (await site.request("POST", f"{base}/read", {"skill_id": "theirs"})).status == 404


def test_s1_the_doctor_names_what_is_left_out_and_why(places: Places) -> None:
    bad = places.skill("bad", "---\nname: bad\n---\nx", base=places.home / ".agents")
    places.skill("theirs")
    found = doctor_texts.look(places.root, places.environ)
    left, withheld = doctor_texts.lines(found)
    assert str(bad) in left and "no description" in left
    assert "skill theirs" in withheld and "covey trust" in withheld
    trust(places.environ, places.root)
    assert [file["name"] for file in doctor_texts.look(places.root, places.environ)["used"]] == ["theirs"]
