"""Whatever was cut short, what the model sees is a conversation that every provider accepts."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from covey.lifecycle import history
from covey.protocol.endings import CallEnd, closing_result
from covey.protocol.messages import (
    Finish,
    FinishPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    Role,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)


def message(message_id: str, role: Role, *parts: Part) -> Message:
    return Message(
        id=message_id, role=role, session_id="s", parts=parts, model="", provider="", created_at=0, updated_at=0
    )


def text(words: str) -> Part:
    return TextPart(data=Text(text=words))


def call(call_id: str, tool_input: str = "{}", name: str = "view") -> Part:
    return ToolCallPart(data=ToolCall(id=call_id, name=name, input=tool_input, finished=True))


def result(call_id: str, content: str = "done") -> Part:
    return ToolResultPart(
        data=ToolResult(tool_call_id=call_id, name="view", content=content, metadata="", is_error=False)
    )


def in_short(messages: list[Message]) -> list[tuple[str, list[str]]]:
    """Each message as its role and its parts in short."""
    return [(seen.role, [_short(part) for part in seen.parts]) for seen in messages]


def _short(part: Part) -> str:
    match part:
        case TextPart():
            return part.data.text
        case ToolCallPart():
            return f"{part.data.id}({part.data.input})"
        case ToolResultPart():
            return f"{part.data.tool_call_id}: {part.data.content}"
    return type(part).__name__


ASKED = message("u1", "user", text("look"))


def test_a_whole_history_is_given_as_it_is() -> None:
    messages = [
        ASKED,
        message("a1", "assistant", text("I look"), call("c1"), call("c2")),
        message("t1", "tool", result("c1"), result("c2")),
        message("a2", "assistant", text("there")),
        message("u2", "user", text("thanks")),
    ]
    seen = history.for_model(messages)
    assert in_short(seen) == in_short(messages)
    assert [one.id for one in seen] == ["u1", "a1", "a1.results", "a2", "u2"]


def test_results_stand_right_behind_their_calls_in_the_order_of_the_calls() -> None:
    messages = [
        ASKED,
        message("a1", "assistant", call("c1"), call("c2")),
        message("t1", "tool", result("c2")),
        message("u2", "user", text("also this")),
        message("t2", "tool", result("c1")),
    ]
    assert in_short(history.for_model(messages))[1:] == [
        ("assistant", ["c1({})", "c2({})"]),
        ("tool", ["c1: done", "c2: done"]),
        ("user", ["also this"]),
    ]


def test_a_call_without_a_result_gets_one_that_says_why() -> None:
    messages = [ASKED, message("a1", "assistant", call("c1"), call("c2")), message("t1", "tool", result("c2"))]
    seen = history.for_model(messages)
    first, second = seen[2].tool_results
    assert first == closing_result(ToolCall(id="c1", name="view", input="{}", finished=True), CallEnd.INTERRUPTED)
    assert (first.content, first.metadata, first.is_error) == (CallEnd.INTERRUPTED.words, "", True)
    assert second.content == "done"


def test_of_two_results_the_first_counts() -> None:
    messages = [
        ASKED,
        message("a1", "assistant", call("c1")),
        message("t1", "tool", result("c1", "first"), result("c1", "second")),
        message("t2", "tool", result("c1", "third")),
    ]
    assert in_short(history.for_model(messages))[2:] == [("tool", ["c1: first"])]


def test_a_result_without_a_call_is_left_out() -> None:
    messages = [ASKED, message("t1", "tool", result("nobody")), message("a1", "assistant", text("hm"))]
    assert in_short(history.for_model(messages)) == [("user", ["look"]), ("assistant", ["hm"])]


def test_ids_that_a_model_uses_again_keep_their_own_results() -> None:
    messages = [
        ASKED,
        message("a1", "assistant", call("c0")),
        message("t1", "tool", result("c0", "first")),
        message("a2", "assistant", call("c0")),
        message("a3", "assistant", call("c0")),
        message("t3", "tool", result("c0", "third")),
    ]
    assert in_short(history.for_model(messages))[1:] == [
        ("assistant", ["c0({})"]),
        ("tool", ["c0: first"]),
        ("assistant", ["c0({})"]),
        ("tool", [f"c0: {CallEnd.INTERRUPTED.words}"]),
        ("assistant", ["c0({})"]),
        ("tool", ["c0: third"]),
    ]


@pytest.mark.parametrize(
    "tool_input",
    ["", '{"path": "a', "[]", "null", '"text"', "{} {}", '{"a": NaN}', "[" * 100_000, '{"a":' * 100_000, "\ud800"],
    ids=lambda value: repr(value[:12]),
)
def test_input_that_is_not_a_json_object_becomes_an_empty_one(tool_input: str) -> None:
    messages = [ASKED, message("a1", "assistant", call("c1", tool_input), call("c2", '{"path": "b"}'))]
    assert in_short(history.for_model(messages))[1] == ("assistant", ["c1({})", 'c2({"path": "b"})'])
    assert messages[1].tool_calls[0].input == tool_input, "what is stored stays what the model wrote"


def test_an_answer_that_was_cut_short_before_its_first_word_is_left_out() -> None:
    finish = FinishPart(data=Finish(reason="canceled", time=1))
    thought = ReasoningPart(data=Reasoning(thinking="hm", signature=""))
    messages = [
        ASKED,
        message("a1", "assistant", finish),
        message("a2", "assistant", thought, text("  \n"), finish),
        message("a3", "assistant", thought, text("half a"), finish),
        message("u2", "user"),
    ]
    assert [seen.id for seen in history.for_model(messages)] == ["u1", "a3", "u2"]


def test_history_begins_with_the_last_summary_given_as_the_users_words() -> None:
    messages = [
        ASKED,
        message("a1", "assistant", call("c1")),
        message("sum", "assistant", text("so far")),
        message("u2", "user", text("go on")),
        message("t1", "tool", result("c1")),
    ]
    marked = [history.SUMMARY_BEGINS, "so far", history.SUMMARY_ENDS]
    assert in_short(history.for_model(messages, "sum")) == [("user", marked), ("user", ["go on"])]
    assert history.for_model(messages, "gone") == history.for_model(messages)


def test_open_calls_are_those_without_a_result() -> None:
    messages = [
        message("a1", "assistant", call("c1"), call("c2")),
        message("t1", "tool", result("c1")),
        message("a2", "assistant", call("c1"), call("c3")),
        message("t2", "tool", result("c3")),
    ]
    assert sorted(open_call.id for open_call in history.open_calls(messages)) == ["c1", "c2"]
    assert history.open_calls([]) == []


CALL_IDS = st.sampled_from(["c0", "c1", "c2"])
PARTS = st.one_of(
    st.builds(text, st.sampled_from(["", " ", "words"])),
    st.builds(call, CALL_IDS, st.sampled_from(["{}", "{", '{"a": 1}', ""])),
    st.builds(result, CALL_IDS, st.sampled_from(["x", "y"])),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool"])
MESSAGES = st.lists(
    st.builds(
        lambda number, role, parts: message(f"m{number}", role, *fitting(role, parts)),
        st.integers(0, 99),
        ROLES,
        st.lists(PARTS, max_size=4),
    ),
    max_size=12,
)


def fitting(role: Role, parts: list[Part]) -> list[Part]:
    """Only answers hold calls, only tool messages hold results; the ids of one answer's calls differ."""
    if role == "tool":
        return [part for part in parts if isinstance(part, ToolResultPart)]
    if role == "user":
        return [part for part in parts if isinstance(part, TextPart)]
    calls = {part.data.id: part for part in parts if isinstance(part, ToolCallPart)}
    return [*(part for part in parts if isinstance(part, TextPart)), *calls.values()]


@given(MESSAGES)
@settings(derandomize=True, database=None, deadline=None, max_examples=200)
def test_whatever_is_stored_each_call_has_one_result_and_repairing_twice_changes_nothing(
    messages: list[Message],
) -> None:
    seen = history.for_model(messages)
    for index, one in enumerate(seen):
        if one.role == "tool":
            assert index and seen[index - 1].tool_calls
        if calls := one.tool_calls:
            assert [answer.tool_call_id for answer in seen[index + 1].tool_results] == [asked.id for asked in calls]
            assert all(asked.input.startswith("{") and asked.input.endswith("}") for asked in calls)
    assert history.for_model(seen) == seen
    assert history.open_calls(seen) == []
    assert [m.text for m in seen if m.role == "user"] == [m.text for m in messages if m.role == "user"]


@pytest.mark.parametrize(
    ("cwd", "shown"), [("src", "'src'"), ("a\n\u202eb'c", '"a\\n\\u202eb\'c"')], ids=["plain", "made by a stranger"]
)
def test_a_prompt_says_where_its_author_was_and_nothing_in_its_name_is_hidden(cwd: str, shown: str) -> None:
    prompt = msgspec.structs.replace(message("1", "user", text("fix it here")), cwd=cwd)
    (seen,) = history.for_model([prompt])
    words = f'(I am in {shown} of the workspace as I write this: "here" and relative paths may mean there.)'
    assert seen.text == f"fix it here\n\n{words}"


def test_the_note_at_the_end_of_a_turn_is_nowhere() -> None:
    prompt = msgspec.structs.replace(message("1", "user", text("fix it here")), cwd="src")
    stopped = message("2", "assistant", FinishPart(data=Finish(reason="canceled", time=1)))
    seen = history.for_model([prompt, stopped])
    assert [(one.role, "I am in" in one.text) for one in seen] == [("user", True), ("assistant", False)]
