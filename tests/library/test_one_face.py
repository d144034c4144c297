"""What `covey.connect` gives and what `covey.open` gives cannot be told apart: the same methods, values and errors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import covey
from covey.protocol.errors import BadRequest, Conflict, NotFound, TooLarge
from covey.protocol.requests import MAX_BODY_BYTES, EditPrompt, UpdateSession
from covey.protocol.runs import RunState

pytestmark = pytest.mark.anyio

SOON_S = 30.0


async def results(client: covey.WorkspaceClient, answer: covey.RunComplete) -> list[str]:
    """What the model read about its calls."""
    messages = await client.messages(client.workspace_id, answer.session_id)
    return [result.content for message in messages for result in message.tool_results]


async def state_of(client: covey.WorkspaceClient, run_id: str) -> RunState:
    return (await client.run(client.workspace_id, run_id)).state


# ── the routes ──


async def test_the_routes_do_what_their_methods_say(client: covey.WorkspaceClient, project: Path) -> None:
    here = client.workspace_id
    assert (await client.health()).status == "ok"
    assert (await client.version()).version == covey.__version__
    assert client.home.path == str(project)
    assert await client.workspace(here) == client.home
    assert client.home in await client.workspaces()
    assert await client.rejoin(here) == here
    assert (await client.config(here)).models["large"].model == "default"
    assert [provider.id for provider in await client.providers(here)] == ["scripted"]
    session = await client.create_session(here, "a title")
    assert (await client.update_session(here, session.id, UpdateSession(title="änother"))).title == "änother"
    assert [found.id for found in await client.sessions(here)] == [session.id]
    assert (await client.agent(here)).is_ready
    await client.update_agent(here)
    async with covey.EventStream(client, here):
        await client.set_current_session(here, session.id)
        assert (await client.session(here, session.id)).attached_clients == 1
    assert "covey_" in await client.metrics()
    assert (await client.openapi())["openapi"]
    await client.delete_session(here, session.id)


async def test_errors_have_the_same_types_codes_and_words(client: covey.WorkspaceClient) -> None:
    here = client.workspace_id
    session = (await client.create_session(here)).id
    with pytest.raises(NotFound) as missing:
        await client.session(here, "nowhere")
    assert missing.value.code == "session_not_found"
    with pytest.raises(BadRequest) as empty:
        await client.post_prompt(here, covey.PostPrompt(session_id=session, prompt=" "))
    assert empty.value.code == "empty_prompt"
    with pytest.raises(Conflict) as absent:
        await client.set_current_session(here, session)
    assert absent.value.code == "not_attached"
    with pytest.raises(TooLarge):
        await client.create_session(here, "x" * (MAX_BODY_BYTES + 1))
    with pytest.raises(NotFound):
        await client.ask("hello", session="nowhere")
    with pytest.raises(covey.ApiError, match="nothing/here"):
        await client.ask("hello", model="nothing/here")


async def test_a_queue_is_edited_and_cancelled(client: covey.WorkspaceClient) -> None:
    here = client.workspace_id
    session = (await client.create_session(here)).id
    for prompt in ("hang", "two", "three"):
        run = covey.PostPrompt(session_id=session, prompt=prompt, run_id=f"{session}-{prompt}")
        assert (await client.post_prompt(here, run)).run_id == run.run_id
    async with asyncio.timeout(SOON_S):
        while await client.queued_count(here, session) < 2:
            await asyncio.sleep(0.005)
    edited = await client.edit_prompt(here, session, f"{session}-two", EditPrompt(prompt="too"))
    assert edited.prompt == "too"
    assert edited.posted_by == "a test"
    await client.drop_prompt(here, session, f"{session}-three")
    assert await client.queued_prompts(here, session) == ("too",)
    receipt = await client.cancel_session(here, session)
    assert len(receipt.covered) == 2
    assert (await client.run(here, f"{session}-hang", wait=SOON_S)).state == "cancelled"


# ── prompts ──


async def test_an_answer_and_its_conversation(client: covey.WorkspaceClient) -> None:
    first = await client.ask("héllo 😀")
    assert (first.outcome, first.text) == ("completed", "You said: héllo 😀")
    assert first.usage
    assert first.usage.prompt_tokens == 10
    second = await client.ask("again", session=first.session_id)
    assert second.session_id == first.session_id
    other, failed = await asyncio.gather(client.ask("hello"), client.ask("fail"))
    assert len({first.session_id, other.session_id, failed.session_id}) == 3
    assert failed.outcome == "failed"
    assert "the model broke" in (failed.error or "")


async def test_a_stream_brings_every_event_and_ends_with_the_end(client: covey.WorkspaceClient) -> None:
    stream = client.stream("long")
    with pytest.raises(covey.CoveyError, match="not ended"):
        _ = stream.result
    events = [event async for event in stream]
    assert isinstance(end := events[-1].payload, covey.RunComplete)
    assert (end.run_id, end.text) == (stream.run_id, stream.result.text)
    assert {"message", "message_delta", "run", "run_complete"} <= {event.type for event in events}
    assert stream.result.text == "wörd 😀 " * 500
    assert "".join([piece async for piece in client.stream("long").text()]) == stream.result.text
    with pytest.raises(covey.CoveyError, match="read once"):
        await stream.read_to_end()


async def test_leaving_a_stream_leaves_the_run_and_cancel_ends_it(client: covey.WorkspaceClient) -> None:
    stream = client.stream("hang")
    async for event in stream:
        if isinstance(event.payload, covey.MessageDelta):
            break
    assert await state_of(client, stream.run_id) == "active"
    assert [covered.run_id for covered in (await stream.cancel()).covered] == [stream.run_id]
    assert (await client.run(client.workspace_id, stream.run_id, wait=SOON_S)).state == "cancelled"
    watched = client.stream("hang")
    async for event in watched:
        if isinstance(event.payload, covey.MessageDelta):
            await watched.cancel()
    assert watched.result.outcome == "cancelled"


async def test_a_run_that_takes_too_long_is_cancelled(client: covey.WorkspaceClient) -> None:
    with pytest.raises(covey.RunTimedOut) as late:
        await client.ask("hang", run_id=f"late-{client.workspace_id}", timeout=0.05)
    assert isinstance(late.value, TimeoutError)
    assert await state_of(client, f"late-{client.workspace_id}") == "cancelled"


# ── what is asked on the way ──


async def test_without_anybody_to_ask_it_is_denied_and_the_model_reads_why(
    client: covey.WorkspaceClient, project: Path
) -> None:
    async with asyncio.timeout(SOON_S):
        answer = await client.ask("make it")
    assert answer.text == "Done."
    assert not (project / "made").exists()
    assert "nobody could be asked" in (await results(client, answer))[0]


async def test_functions_of_the_program_answer(client: covey.WorkspaceClient, project: Path) -> None:
    seen: list[covey.PermissionRequest] = []

    async def not_now(request: covey.PermissionRequest) -> covey.Deny:
        await asyncio.sleep(0)
        seen.append(request)
        return covey.Deny("not on a Monday")

    denied = await client.ask("make it", on_permission=not_now)
    assert "not on a Monday" in (await results(client, denied))[0]
    assert [(request.tool_name, request.run_id) for request in seen] == [("bash", denied.run_id)]
    await client.ask("make it", on_permission=lambda request: request.tool_name == "bash")
    assert (project / "made").exists()


@pytest.mark.parametrize(
    "options", [{"yolo": True}, {"allow": ["bash:touch*"]}, {"on_permission": lambda _: covey.Allow("allow_session")}]
)
async def test_what_is_allowed_is_done(
    client: covey.WorkspaceClient, project: Path, options: covey.PromptOptions
) -> None:
    await client.ask("make it", **options)
    assert (project / "made").exists()


async def test_a_function_that_fails_ends_the_run_and_is_heard_of(client: covey.WorkspaceClient) -> None:
    def broken(request: covey.PermissionRequest) -> bool:
        raise ZeroDivisionError

    stream = client.stream("make it", on_permission=broken)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(ZeroDivisionError):
            await stream.read_to_end()
    assert await state_of(client, stream.run_id) == "cancelled"


async def test_questions_are_answered_by_a_function_or_not_at_all(client: covey.WorkspaceClient) -> None:
    async with asyncio.timeout(SOON_S):
        refused = await client.ask("ask me")

    def yes(batch: covey.QuestionBatchRequest) -> list[covey.QuestionResponse]:
        return [covey.QuestionResponse(request_id=question.id, yes=True) for question in batch.questions]

    answered = await client.ask("ask me", on_question=yes)
    assert (refused.text, answered.text) == ("Done.", "Done.")
    assert (await results(client, refused)) != (await results(client, answered))


async def test_plain_words_answer_questions(client: covey.WorkspaceClient) -> None:
    answered = await client.ask("ask me much", on_question=lambda batch: ["sqlite", ["unit", "3"], "yes", "shop"])
    (said,) = await results(client, answered)
    for words in ("SQLite", "unit, load", "yes", "shop"):
        assert words in said
    own = await client.ask("ask me much", on_question=lambda batch: ["a file", ["load", "mine"], False, "shop"])
    (said,) = await results(client, own)
    for words in ("a file", "load, mine", "no"):
        assert words in said
    singles: list[Any] = [True, "yes", ["yes"], [True]]
    for single in singles:
        answered = await client.ask("ask me", on_question=lambda batch: single)  # noqa: B023
        assert "yes" in (await results(client, answered))[0]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ("sqlite", "a list of 4 answers, one for each question is wanted: Which store"),
        (["sqlite", "unit", "yes"], "a list of 4 answers"),
        ({"Which store?": "sqlite"}, "a list of 4 answers"),
        (["sqlite", "unit", "perhaps", "shop"], "'perhaps' to 'With types\\?', and yes or no is wanted"),
        ([True, "unit", "yes", "shop"], "a text is wanted"),
        ([["SQLite", "PostgreSQL"], "unit", "yes", "shop"], "one text is wanted"),
        (["sqlite", [1], "yes", "shop"], "a list of texts is wanted"),
        (["sqlite", "unit", "yes", ""], "a text is wanted"),
    ],
)
async def test_what_is_no_answer_is_told_to_the_program(client: covey.WorkspaceClient, answers: Any, why: str) -> None:
    stream = client.stream("ask me much", on_question=lambda batch: answers)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(covey.CoveyError, match=why) as wrong:
            await stream.read_to_end()
    assert wrong.value.code == "wrong_answer"
    assert await state_of(client, stream.run_id) == "cancelled"


async def test_what_is_no_decision_is_told_to_the_program(client: covey.WorkspaceClient) -> None:
    decide: Any = lambda request: "yes"  # noqa: E731
    with pytest.raises(covey.CoveyError, match="on_permission returned 'yes'"):
        await client.ask("make it", on_permission=decide)


async def test_none_leaves_questions_to_others_as_it_leaves_permissions(client: covey.WorkspaceClient) -> None:
    here = client.workspace_id
    async with client.another("a reviewer") as second, covey.EventStream(second, here) as watching:
        asking = asyncio.create_task(client.ask("ask me", on_question=lambda batch: None))
        async with asyncio.timeout(SOON_S):
            async for event in watching:
                match event.payload:
                    case covey.QuestionBatchRequest(id=batch_id):
                        assert await second.refuse_questions(here, batch_id)
                    case covey.RunComplete():
                        break
            assert (await asking).text == "Done."


# ── what was denied ──


async def test_an_answer_says_what_was_denied(client: covey.WorkspaceClient) -> None:
    allowed = await client.ask("make it", yolo=True)
    assert allowed.denied == ()
    answer = await client.ask("make it")
    (denied,) = answer.denied
    assert (denied.tool, denied.input, denied.by) == ("bash", {"command": "touch made"}, "nobody")
    assert "nobody could be asked" in denied.reason
    assert answer.outcome == "completed", "a run may go on without"
    again = client.stream("make it", session=answer.session_id, run_id=answer.run_id)
    assert (await again.read_to_end()).denied == answer.denied, "the run had ended when it was posted again"
    stream = client.stream("make it", on_permission=lambda request: covey.Deny("no"))
    last = [event.payload async for event in stream][-1]
    assert type(last) is covey.RunComplete, "an event is what came over the wire"
    assert [one.by for one in stream.result.denied] == ["person"]


async def test_a_refused_prompt_leaves_no_session(client: covey.WorkspaceClient) -> None:
    here = client.workspace_id
    kept = await client.ask("hello")
    before = {session.id for session in await client.sessions(here)}
    for wrong in ({"model": "no/such"}, {"allow": ["nonsense("]}, {"run_id": kept.run_id}):
        with pytest.raises(covey.ApiError):
            await client.ask("hi", **wrong)
    with pytest.raises(covey.ApiError):
        await client.ask("hi", session=kept.session_id, model="no/such")
    assert {session.id for session in await client.sessions(here)} == before


# ── a second face ──


async def test_a_second_client_sees_the_same_answers_and_cancels(client: covey.WorkspaceClient) -> None:
    here = client.workspace_id
    async with client.another("a reviewer") as second:
        assert second.client_id != client.client_id
        async with covey.EventStream(second, here) as watching, asyncio.timeout(SOON_S):
            asking = asyncio.create_task(client.ask("make it", on_permission=covey.leave_to_others))
            async for event in watching:
                match event.payload:
                    case covey.PermissionRequest(id=permission):
                        assert await second.answer_permission(here, permission, "deny", "says the reviewer")
                    case covey.RunComplete() as seen:
                        break
            assert (await asking).run_id == seen.run_id
            assert "says the reviewer" in (await results(client, seen))[0]
            stream = client.stream("hang")
            async for event in stream:
                if isinstance(event.payload, covey.MessageDelta):
                    await second.cancel_run(here, stream.run_id)
            assert stream.result.cancelled
            assert (await client.run(here, stream.run_id)).cancelled_by_client == "a reviewer"
    assert (await client.health()).status == "ok"


async def test_a_stream_resumes_after_the_last_event_that_it_gave(client: covey.WorkspaceClient) -> None:
    answer = await client.ask("one")
    here, session = client.workspace_id, answer.session_id
    async with covey.EventStream(client, here, session_id=session) as first:
        await client.ask("two", session=session)
        async for event in first:
            if event.type == "run":
                break
    stream = covey.EventStream(client, here, session_id=session, last_event_id=first.last_event_id)
    async with stream, asyncio.timeout(SOON_S):
        terminals = (event.payload async for event in stream if isinstance(event.payload, covey.RunComplete))
        assert (await anext(terminals)).text == "You said: two"
