"""A conversation that grows in a turn is at each step what it would be if it were worked out anew."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from msgspec import structs

from covey.lifecycle import history
from covey.lifecycle.history import Conversation
from covey.protocol.endings import AnswerEnd
from covey.protocol.messages import Finish, FinishPart, Message, Part, ShellCommand, ShellCommandPart
from tests.lifecycle.test_history import CALL_IDS, PARTS, ROLES, call, fitting, message, result, text

FINISHES = st.sampled_from(
    [
        Finish(reason="tool_use", time=1),
        Finish(reason="end_turn", time=1),
        Finish(reason="canceled", time=1, message=AnswerEnd.STOPPED.words),
        Finish(reason="canceled", time=1, message=AnswerEnd.SHUT_DOWN.words),
        Finish(reason="error", time=1, message=AnswerEnd.FAILED.words),
        Finish(reason="error", time=1, message=AnswerEnd.INTERRUPTED.words),
        Finish(reason="error", time=1, message=AnswerEnd.RETRIED.words),
        Finish(reason="error", time=1, message=AnswerEnd.REJECTED.words, details="$ must be a list"),
        None,
    ]
)
RUN_IDS = st.sampled_from(["r1", "r2", None])


def command(line: str, *, share: bool) -> Message:
    data = ShellCommand(command=line, output="out", exit_code=0, share=share)
    return structs.replace(message("!", "user", ShellCommandPart(data=data)), run_id=None)


@st.composite
def stored(draw: st.DrawFn) -> Message:
    """Anything that a session can hold, and more: it need not make sense beside its neighbours."""
    if draw(st.integers(0, 5)) == 0:
        return command("make", share=draw(st.booleans()))
    role = draw(ROLES)
    parts = fitting(role, draw(st.lists(PARTS, max_size=3)))
    finish = draw(FINISHES) if role == "assistant" else None
    made = message("", role, *parts, *([FinishPart(data=finish)] if finish else []))
    is_summary = role == "assistant" and draw(st.booleans())
    return structs.replace(made, run_id=draw(RUN_IDS), is_summary_message=is_summary)


@st.composite
def addition(draw: st.DrawFn) -> list[Message]:
    """What a turn adds in one go: prompts that join it, or an answer with the results of its calls."""
    if draw(st.booleans()):
        prompts = [message("u", "user", text("also")) for _ in range(draw(st.integers(0, 2)))]
        is_shared: bool = draw(st.booleans())
        return [command("make", share=True), *prompts] if prompts and is_shared else prompts
    called = draw(st.lists(CALL_IDS, min_size=1, max_size=4))  # some models give two calls of an answer the same id
    parts: list[Part] = [call(each, draw(st.sampled_from(["{}", "{"]))) for each in called]
    answer = message("a", "assistant", *parts, FinishPart(data=Finish(reason="tool_use", time=1)))
    return [answer, *(message("t", "tool", result(each, f"result {n}")) for n, each in enumerate(called))]


def of_run(one: Message) -> Message:
    return structs.replace(one, run_id="mine")


@given(st.lists(stored(), max_size=6), st.lists(addition(), max_size=5))
@settings(derandomize=True, database=None, deadline=None, max_examples=200)
def test_a_conversation_that_grows_is_what_the_whole_would_be(past: list[Message], added: list[list[Message]]) -> None:
    whole = [*past, of_run(message("u", "user", text("do it")))]
    conversation = Conversation(whole)
    for further in added:
        mine = [one if one.is_command else of_run(one) for one in further]
        conversation.add(mine)
        whole += mine
    assert conversation.messages == history.for_model(whole)
    assert conversation.tokens == sum(map(history.estimated_tokens, conversation.messages))


def test_there_is_a_past_as_soon_as_there_is_an_answer() -> None:
    conversation = Conversation([message("u1", "user", text("do it"))])
    assert not conversation.has_past
    conversation.add([message("u2", "user", text("also"))])
    assert not conversation.has_past
    conversation.add([message("a1", "assistant", call("c1")), message("t1", "tool", result("c1"))])
    assert conversation.has_past


def test_a_shared_command_is_seen_with_the_next_prompt_and_another_one_never() -> None:
    asked, later = message("u1", "user", text("do it")), message("u2", "user", text("and?"))
    answer = message("a1", "assistant", call("c1"), FinishPart(data=Finish(reason="tool_use", time=1)))
    in_between = [command("secret", share=False), command("make", share=True)]
    last = message("a2", "assistant", text("done"), FinishPart(data=Finish(reason="end_turn", time=1)))
    turn = [asked, answer, *in_between, message("t1", "tool", result("c1")), last]
    assert history.for_model([*turn, command("late", share=True)]) == history.for_model([asked, answer, turn[-2], last])
    *before, prompt = history.for_model([*turn, later])
    assert before == history.for_model([asked, answer, turn[-2], last])
    assert prompt == structs.replace(later, parts=(*in_between[1].parts, *later.parts))
    assert history.estimated_tokens(prompt) > history.estimated_tokens(later)
