"""The rules of undo and fork, on values: what goes, what is restored, what stands in the way, where a cut is whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.lifecycle.undo import (
    CHANGED,
    DELETED,
    IN_BETWEEN,
    NOT_KEPT,
    FileStep,
    Found,
    Obstacle,
    Odd,
    Restore,
    last_summary,
    may_have_more_effects,
    plan,
    todos_before,
    turns_from,
    whole_until,
)
from covey.protocol.effects import Effect
from covey.protocol.endings import CallEnd
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Role,
    ShellCommand,
    ShellCommandPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)


def message(message_id: str, role: Role = "user", run_id: str | None = "r", *parts: Part, **more: Any) -> Message:
    return Message(
        id=message_id, role=role, session_id="s", parts=parts, model="", provider="", created_at=1, updated_at=1,
        run_id=run_id, **more,
    )  # fmt: skip


def finish(reason: FinishReason = "end_turn") -> FinishPart:
    return FinishPart(data=Finish(reason=reason, time=1))


def asks(call_id: str) -> ToolCallPart:
    return ToolCallPart(data=ToolCall(id=call_id, name="view", input="{}", finished=True))


def result(
    call_id: str = "c", name: str = "view", content: str = "", *, is_error: bool = False, metadata: str = ""
) -> ToolResultPart:
    found = ToolResult(tool_call_id=call_id, name=name, content=content, metadata=metadata, is_error=is_error)
    return ToolResultPart(data=found)


def step(before: str | None, after: str | None, path: str = "/a", *, kept: bool = True, mode: int = 0) -> FileStep:
    return FileStep("r", "m", path, before, after, mode, kept)


# ── turns ──


def ids(messages: Any) -> str:
    return "".join(message.id for message in messages)


TALK = [message("a", run_id="1"), message("b", run_id="1"), message("c", run_id="2"), message("d", run_id="3")]
TALK += [message("e", run_id="2"), message("f", run_id=None), message("g", run_id="4"), message("h", run_id=None)]


@pytest.mark.parametrize(
    ("run_id", "cut"),
    [("", "gh"), ("4", "gh"), ("2", "cdefgh"), ("3", "cdefgh"), ("1", "abcdefgh"), ("5", "")],
)
def test_an_undo_takes_whole_turns_and_all_behind_them(run_id: str, cut: str) -> None:
    assert ids(turns_from(TALK, {"3": "2"}, run_id)) == cut


def test_there_is_no_turn_in_what_has_no_runs() -> None:
    assert turns_from([], {}, "") == ()
    assert turns_from([message("a", run_id=None)], {}, "") == ()


def test_the_last_summary_is_the_last_that_was_finished() -> None:
    made = [
        message("a", "assistant", None, finish(), is_summary_message=True),
        message("b", "assistant", None, finish("canceled"), is_summary_message=True),
        message("c", "assistant", None, is_summary_message=True),
        message("d", "assistant", None, finish()),
    ]
    assert last_summary(made) == "a"
    assert last_summary(made[1:]) == last_summary([]) == ""


def noted(*things: str) -> ToolResultPart:
    """A call of `todos` that was made; without things it emptied the list."""
    todos = [{"content": thing, "status": "pending"} for thing in things]
    return result(name="todos", metadata=msgspec.json.encode({"todos": todos}).decode() if todos else "")


def test_the_list_of_things_to_do_is_again_what_the_turns_that_stay_have_left() -> None:
    first, second = (
        message("a", "tool", None, noted("look"), noted("look", "mend")),
        message("b", "tool", None, noted()),
    )
    said, failed = message("c"), message("d", "tool", None, result(name="todos", is_error=True))
    two = todos_before([first, said], [said, second])["todos"]
    assert [todo["content"] for todo in two] == ["look", "mend"]
    assert todos_before([first, second], [first]) == {"todos": ()}
    assert todos_before([said, failed], [first]) == {"todos": None}
    assert todos_before([first], [said, failed]) == {}, "somebody may have changed it by hand"


EFFECTS = {
    "view": Effect.LOOKS,
    "fetch": Effect.REACHES_OUT,
    "todos": Effect.TALKS,
    "bash": Effect.RUNS_COMMANDS,
    "edit": Effect.CHANGES_FILES,
}


@pytest.mark.parametrize(
    ("part", "more"),
    [
        (result(name="view"), False),
        (result(name="view", content=CallEnd.CANCELLED.words, is_error=True), False),
        (result(name="fetch", content=CallEnd.INTERRUPTED.words, is_error=True), False),
        (result(name="todos", content=CallEnd.RUN_FAILED.words, is_error=True), False),
        (result(name="view", is_error=True), False),
        (result(name="bash"), True),
        (result(name="bash", content="exit code 1", is_error=True), True),
        (result(name="bash", content="no", is_error=True, metadata='{"denied": "person"}'), False),
        (result(name="bash", content="bad input", is_error=True, metadata='{"never_ran": true}'), False),
        (result(name="of an extension that is gone"), True),
        (result(name="of an extension that is gone", content="no", is_error=True), True),
        (result(name="edit", content="no such text", is_error=True), False),
        (result(name="edit", content=CallEnd.CANCELLED.words, is_error=True), True),
        (result(name="edit", content=CallEnd.INTERRUPTED.words, is_error=True), True),
        (result(name="edit", content=CallEnd.RUN_FAILED.words, is_error=True), True),
        (result(name="edit"), True),
        (result(name="edit", content=CallEnd.NOT_BEGUN.words, is_error=True), False),
        (result(name="bash", content=CallEnd.NOT_BEGUN.words, is_error=True), False),
    ],
)
def test_a_call_may_have_had_effects_of_which_nobody_knows(part: Part, more: bool) -> None:
    said = message("m", "tool", "r", part)
    assert may_have_more_effects([said], [], EFFECTS) is more
    assert not may_have_more_effects([said], [step("a", "b")], EFFECTS), "what it changed was recorded"


# ── files ──


@pytest.mark.parametrize(
    ("steps", "now", "wanted"),
    [
        ([step("1", "2")], "2", Restore("/a", "2", "1", 0)),
        ([step("1", "2"), step("2", "3")], "3", Restore("/a", "3", "1", 0)),
        ([step(None, "2")], "2", Restore("/a", "2", None, 0)),
        ([step("1", None, mode=0o755)], None, Restore("/a", None, "1", 0o755)),
        ([step("1", "2")], "1", None),
        ([step(None, "2")], None, None),
        ([step("1", "2"), step("2", "1")], "1", None),
        ([step("1", "2")], "9", CHANGED),
        ([step(None, "2")], "9", CHANGED),
        ([step("1", None)], "9", CHANGED),
        ([step("1", "2")], None, DELETED),
        ([step("1", "2"), step("8", "3")], "3", IN_BETWEEN),
        ([step("1", "2"), step(None, "3")], "3", IN_BETWEEN),
        ([step("1", "2", kept=False)], "2", NOT_KEPT),
        ([step("1", "2"), step("2", "3", kept=False)], "3", Restore("/a", "3", "1", 0)),
        ([step("1", "2")], Odd("it is a door"), "it is a door"),
    ],
)
def test_a_file_is_restored_only_if_nobody_else_has_touched_it(
    steps: list[FileStep], now: Found, wanted: Restore | str | None
) -> None:
    found = plan(steps, {"/a": now})
    if isinstance(wanted, str):
        assert (found.restore, found.conflicts) == ((), (Obstacle("/a", wanted),))
    else:
        assert (found.restore, found.conflicts) == ((wanted,) if wanted else (), ())


def test_a_file_that_is_forced_is_restored_unless_that_is_impossible() -> None:
    steps = [step("1", "2"), step("8", "3"), step("1", "2", "/b", kept=False), step("1", "2", "/c")]
    found = plan(steps, {"/a": "9", "/b": "2", "/c": Odd("a door")}, ["/a", "/b", "/c"])
    assert found.restore == (Restore("/a", "9", "1", 0),)
    assert found.conflicts == (Obstacle("/b", NOT_KEPT), Obstacle("/c", "a door"))


DIGESTS = st.sampled_from([None, "1", "2", "3"])


@given(st.lists(st.tuples(DIGESTS, DIGESTS, st.booleans()), min_size=1, max_size=5), DIGESTS)
def test_what_is_overwritten_was_written_by_the_turns_themselves(
    changes: list[tuple[str | None, str | None, bool]], now: str | None
) -> None:
    steps = [step(before, after, kept=kept) for before, after, kept in changes]
    found = plan(steps, {"/a": now})
    for restore in found.restore:
        assert restore.found == now == steps[-1].after
        assert restore.target == steps[0].before != now
        assert all(one.after == other.before for one, other in pairwise(steps))
        assert steps[0].before_kept
    assert len(found.restore) + len(found.conflicts) == (now != steps[0].before)


# ── forks ──

STEP = [
    message("a"),
    message("b", "assistant", "r", asks("1"), asks("2"), finish("tool_use")),
    message("c", "tool", "r", result("1")),
    message("d", "tool", "r", result("2")),
    message("e", "assistant", "r", finish()),
    message("f"),
]


@pytest.mark.parametrize(
    ("talk", "at", "kept"),
    [
        (STEP, "", "abcdef"),
        (STEP, "a", "a"),
        (STEP, "b", "abcd"),
        (STEP, "c", "abcd"),
        (STEP, "d", "abcd"),
        (STEP, "f", "abcdef"),
        (STEP[:3], "", "a"),
        (STEP[:3], "b", "a"),
        (STEP[:2], "b", "a"),
        ([*STEP[:4], message("e", "assistant")], "", "abcd"),
        ([*STEP[:4], message("e", "assistant")], "e", "abcd"),
        ([message("e", "assistant")], "", ""),
        ([], "", ""),
        ([STEP[1], *STEP[4:]], "", "bef"),
    ],
)
def test_a_cut_is_never_between_a_call_and_its_results(talk: list[Message], at: str, kept: str) -> None:
    assert ids(whole_until(talk, at)) == kept


def test_a_fork_takes_results_along_also_behind_a_command_of_a_person() -> None:
    own = message("x", "user", None, ShellCommandPart(data=ShellCommand(command="ls", output="", exit_code=0)))
    step, found = message("a", "assistant", "r", asks("c"), finish("tool_use")), message("t", "tool", "r", result())
    assert ids(whole_until([step, own, found, message("b")], "a")) == "axt"
    assert ids(whole_until([message("p"), step, own], "a")) == "p"
