"""R18: a prompt whose turn was stopped, failed or was cut off is not read by the model as if it were still asked."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest
from msgspec import structs

from covey.lifecycle import history
from covey.lifecycle.decisions import Outcome
from covey.lifecycle.history import CUT_OFF_NOTE, FAILED_NOTE, STOPPED_NOTE, SUMMARY_BEGINS, SUMMARY_ENDS
from covey.protocol.endings import AnswerEnd, CallEnd
from covey.protocol.messages import Finish, FinishPart, FinishReason, Message, Part, Reasoning, ReasoningPart, Role
from tests.lifecycle.test_history import call, in_short, message, result, text

NOTES = {
    ("canceled", "Stopped by the user"): STOPPED_NOTE,
    ("canceled", None): STOPPED_NOTE,  # as stores were written before there were words
    ("canceled", "Stopped by a shutdown"): CUT_OFF_NOTE,
    ("error", "The run was interrupted"): CUT_OFF_NOTE,
    ("error", "The run failed"): FAILED_NOTE,
    ("error", None): FAILED_NOTE,  # as `covey doctor` finished answers
}


def end(reason: FinishReason = "canceled", words: str | None = "Stopped by the user") -> Part:
    return FinishPart(data=Finish(reason=reason, time=1, message=words, details="the details"))


def thought(signature: str = "signed") -> Part:
    return ReasoningPart(data=Reasoning(thinking="hm", signature=signature))


def of_run(run_id: str | None, message_id: str, role: Role, *parts: Part) -> Message:
    return structs.replace(message(message_id, role, *parts), run_id=run_id)


def summary(message_id: str, *parts: Part) -> Message:
    return structs.replace(message(message_id, "assistant", *parts), is_summary_message=True)


WIPE, HELLO = message("u1", "user", text("wipe the disk")), message("u2", "user", text("say hello"))


@pytest.mark.parametrize(("reason", "words"), NOTES)
def test_r18_a_note_stands_in_the_place_of_a_missing_answer(reason: FinishReason, words: str | None) -> None:
    for parts in ((), (thought(),), (text(" \n"),), (thought(), text(""), thought())):
        seen = history.for_model([WIPE, message("a1", "assistant", *parts, end(reason, words)), HELLO])
        assert in_short(seen) == [
            ("user", ["wipe the disk"]),
            ("assistant", [NOTES[reason, words]]),
            ("user", ["say hello"]),
        ]
        assert [one.id for one in seen] == ["u1", "a1", "u2"]


@pytest.mark.parametrize(("reason", "words"), NOTES)
def test_r18_a_note_stands_after_a_partial_answer(reason: FinishReason, words: str | None) -> None:
    stored = message("a1", "assistant", thought(), text("I beg"), text("in"), thought("t:x"), end(reason, words))
    note = NOTES[reason, words]
    assert in_short(history.for_model([WIPE, stored, HELLO]))[1:] == [
        ("assistant", ["ReasoningPart", "I beg", "in", f"\n\n{note}"]),
        ("user", ["say hello"]),
    ]
    assert stored.finish is not None, "what is stored stays as it is"


def test_r18_a_note_stands_behind_the_results_of_calls_that_were_half_done() -> None:
    seen = history.for_model(
        [
            WIPE,
            message("a1", "assistant", thought(), text("I wipe"), call("c1"), call("c2"), end()),
            message("t1", "tool", result("c1")),
            message("t2", "tool", result("c2", CallEnd.CANCELLED.words)),
            HELLO,
        ]
    )
    assert in_short(seen)[2:] == [
        ("tool", ["c1: done", f"c2: {CallEnd.CANCELLED.words}"]),
        ("assistant", [STOPPED_NOTE]),
        ("user", ["say hello"]),
    ]
    assert len({one.id for one in seen}) == len(seen)


def test_r18_a_note_stands_behind_a_call_whose_result_was_lost() -> None:
    seen = history.for_model([WIPE, message("a1", "assistant", call("c1"), end()), HELLO])
    assert [one.role for one in seen] == ["user", "assistant", "tool", "assistant", "user"]
    assert seen[3].text == STOPPED_NOTE


def test_r18_prompts_that_were_folded_stand_before_the_note() -> None:
    also = message("u0", "user", text("and the backups"))
    at_once = [WIPE, also, message("a1", "assistant", end()), HELLO]
    assert [one.text for one in history.for_model(at_once)] == [
        "wipe the disk", "and the backups", STOPPED_NOTE, "say hello",
    ]  # fmt: skip
    later = [
        WIPE,
        message("a1", "assistant", call("c1"), end("tool_use", None)),
        message("t1", "tool", result("c1")),
        also,
        message("a2", "assistant", end()),
        HELLO,
    ]
    assert [one.text for one in history.for_model(later)] == [
        "wipe the disk", "", "", "and the backups", STOPPED_NOTE, "say hello",
    ]  # fmt: skip


def test_r18_each_turn_has_its_own_note_and_the_last_one_too() -> None:
    failed = message("a2", "assistant", end("error", "The run failed"))
    seen = history.for_model([WIPE, message("a1", "assistant", end()), HELLO, failed])
    assert [one.text for one in seen] == ["wipe the disk", STOPPED_NOTE, "say hello", FAILED_NOTE]


@pytest.mark.parametrize("reason", sorted(set(get_args(FinishReason)) - {"canceled", "error"}))
def test_r18_an_answer_that_was_not_cut_short_has_no_note(reason: FinishReason) -> None:
    answer = message("a1", "assistant", text("done"), end(reason, None))
    assert in_short(history.for_model([WIPE, answer, HELLO]))[1] == ("assistant", ["done", "FinishPart"])


def test_r18_an_answer_that_is_asked_for_again_in_its_turn_has_no_note() -> None:
    tried = message("a1", "assistant", end("error", "Too long"))
    assert in_short(
        history.for_model([WIPE, tried, message("a2", "assistant", text("done"), end("end_turn", None))])
    ) == [
        ("user", ["wipe the disk"]),
        ("assistant", ["done", "FinishPart"]),
    ]
    for last in (WIPE, HELLO):  # the turn goes on, perhaps with a prompt that was folded into it
        assert [one.role for one in history.for_model([WIPE, tried, last])] == ["user", "user"]


# ── summaries ──


@pytest.mark.parametrize("words", ["", "They wan"])
def test_r18_a_summary_that_was_cut_short_is_not_seen_but_the_note_is(words: str) -> None:
    seen = history.for_model([WIPE, summary("s1", text(words), end("error", "The run failed")), HELLO])
    assert in_short(seen) == [("user", ["wipe the disk"]), ("assistant", [FAILED_NOTE]), ("user", ["say hello"])]


def test_r18_a_turn_that_was_cut_off_after_its_summary_has_its_note_behind_the_summary() -> None:
    """The summary quotes what is being worked on. The answer before it is the last of the turn that a crash found."""
    seen = history.for_model(
        [
            WIPE,
            message("a1", "assistant", call("c1"), end("error", "The run was interrupted")),
            message("t1", "tool", result("c1")),
            summary("s1", text("This is being worked on: wipe the disk"), end("end_turn", None)),
            HELLO,
        ],
        "s1",
    )
    assert in_short(seen) == [
        ("user", [SUMMARY_BEGINS, "This is being worked on: wipe the disk", "FinishPart", SUMMARY_ENDS]),
        ("assistant", [CUT_OFF_NOTE]),
        ("user", ["say hello"]),
    ]


def test_r18_what_a_summary_stands_for_has_no_note_of_its_own() -> None:
    messages = [WIPE, message("a1", "assistant", end()), HELLO, summary("s1", text("so far"), end("end_turn", None))]
    assert in_short(history.for_model([*messages, HELLO], "s1")) == [
        ("user", [SUMMARY_BEGINS, "so far", "FinishPart", SUMMARY_ENDS]),
        ("user", ["say hello"]),
    ]


# ── forks: copies belong to no run ──

COPIED = of_run(None, "u1", "user", text("wipe the disk"))
NEXT = of_run("r2", "u2", "user", text("say hello"))


def test_r18_a_prompt_that_was_copied_without_its_answer_is_cut_off() -> None:
    seen = history.for_model([COPIED, NEXT])
    assert [one.text for one in seen] == ["wipe the disk", CUT_OFF_NOTE, "say hello"]
    assert len({one.id for one in seen}) == 3
    step = of_run(None, "a1", "assistant", call("c1"), end("tool_use", None))
    done = of_run(None, "t1", "tool", result("c1"))
    assert [one.text for one in history.for_model([COPIED, step, done, NEXT])][2:] == ["", CUT_OFF_NOTE, "say hello"]


def test_r18_what_was_copied_whole_is_not_cut_off() -> None:
    answer = of_run(None, "a1", "assistant", text("done"), end("end_turn", None))
    assert [one.text for one in history.for_model([COPIED, answer, NEXT])] == ["wipe the disk", "done", "say hello"]
    whole = structs.replace(answer, is_summary_message=True)
    seen = [one.text for one in history.for_model([COPIED, whole, NEXT], "a1")]
    assert seen == [f"{SUMMARY_BEGINS}done{SUMMARY_ENDS}", "say hello"]
    stopped = of_run(None, "a1", "assistant", end())
    assert [one.text for one in history.for_model([COPIED, stopped, NEXT])][1:] == [STOPPED_NOTE, "say hello"]


def test_r18_folded_prompts_are_not_taken_for_copies() -> None:
    mine = of_run("r1", "u1", "user", text("wipe the disk"))
    assert [one.role for one in history.for_model([mine, NEXT])] == ["user", "user"]
    assert [one.role for one in history.for_model([COPIED, structs.replace(NEXT, run_id=None)])] == ["user", "user"]


# ── what a provider keeps in its cache ──

LONG = [
    WIPE,
    message("a1", "assistant", text("I beg"), end()),
    HELLO,
    message("a2", "assistant", text("I look"), call("c1"), end()),
    message("t2", "tool", result("c1")),
    message("u3", "user", text("again")),
    message("a3", "assistant", text("Hello!"), end("end_turn", None)),
    message("u4", "user", text("and again")),
    message("a4", "assistant", end("error", "The run was interrupted")),
    message("u5", "user", text("continue")),
]


def test_r18_what_was_seen_once_is_seen_again_word_for_word() -> None:
    prompts = [index for index, one in enumerate(LONG, 1) if one.role == "user"]
    seen = [history.for_model(LONG[:end]) for end in prompts]
    for before, after in pairwise(seen):
        assert after[: len(before)] == before


# ── the words ──


@pytest.mark.parametrize(
    ("outcome", "cancelled_by", "note"),
    [
        (Outcome.CANCELLED, "session_cancel", STOPPED_NOTE),
        (Outcome.CANCELLED, "run_cancel", STOPPED_NOTE),
        (Outcome.CANCELLED, "shutdown", CUT_OFF_NOTE),
        (Outcome.FAILED, None, FAILED_NOTE),
        (Outcome.INTERRUPTED, None, CUT_OFF_NOTE),
    ],
)
def test_r18_how_a_run_ended_is_known_from_what_its_answer_says(
    outcome: Outcome, cancelled_by: str | None, note: str
) -> None:
    ending = history.last_answer_end(outcome.value, cancelled_by)
    assert ending and ending.reason == ("canceled" if outcome is Outcome.CANCELLED else "error")
    assert history.for_model([WIPE, message("a1", "assistant", end(ending.reason, ending.words))])[1].text == note


def test_r18_a_completed_run_has_no_such_words() -> None:
    assert history.last_answer_end("completed", None) is None


def test_r18_the_notes_differ_and_stand_in_brackets() -> None:
    notes = {STOPPED_NOTE, FAILED_NOTE, CUT_OFF_NOTE}
    assert len(notes) == 3
    for note in notes:
        assert note.startswith("[") and note.endswith("]")
        assert "not to be acted upon unless the user asks for them again or says to continue" in note


@pytest.mark.parametrize("words", ["{}", ""])
def test_an_answer_that_does_not_fit_is_followed_by_what_does_not(words: str) -> None:
    finish = Finish(reason="error", time=1, message=AnswerEnd.REJECTED.words, details="$.n is missing")
    rejected = message("m2", "assistant", text(words), FinishPart(data=finish))
    seen = history.for_model([message("m1", "user", text("count")), rejected, message("m3", "assistant", text("1"))])
    corrected = ("user", history.correction("$.n is missing"))
    expected = [("user", "count"), *([("assistant", words)] if words else []), corrected, ("assistant", "1")]
    assert [(each.role, each.text) for each in seen] == expected
