"""Ways to damage a store by SQL, each with what the oracle has to call it. The store is `ended` of `good_stores`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from tests.support.meddling import Database


class Damage(NamedTuple):
    kind: str
    """What must be found, perhaps among other things."""
    named: str
    """What the sentence has to say."""
    do: Callable[[Database], None]


DAMAGES: dict[str, Damage] = {}


def damage(kind: str, named: str) -> Callable[[Callable[[Database], None]], Callable[[Database], None]]:
    def add(do: Callable[[Database], None]) -> Callable[[Database], None]:
        DAMAGES[do.__name__] = Damage(kind, named, do)
        return do

    return add


def by_sql(name: str, kind: str, named: str, *statements: str, trimmed: bool = False) -> None:
    def do(db: Database) -> None:
        if trimmed:
            db.trim()
        for statement in statements:
            db.do(statement)

    DAMAGES[name] = Damage(kind, named, do)


# ── the event log ──

by_sql("a_gap", "lost_history", "the log has a gap", "DELETE FROM events WHERE seq = 9")
by_sql("no_log", "lost_history", "its event log is empty", "DELETE FROM events")
by_sql("a_broken_event", "unreadable_event", "event 5 cannot", "UPDATE events SET encoded = x'7bff' WHERE seq = 5")
by_sql("an_event_of_nothing", "unreadable_event", "event 5", "UPDATE events SET encoded = '[]' WHERE seq = 5")
by_sql("a_far_event", "lost_history", "gap", f"UPDATE events SET seq = {2**63 - 1} WHERE seq = 5")
by_sql("a_misfiled_event", "misfiled_row", "event 5", "UPDATE events SET session_id = 'x' WHERE seq = 5")


@damage("unreadable_event", "cannot be read")
def an_event_without_a_field(db: Database) -> None:
    db.edit("events", f"seq = {db.event('run', 'r-tool')}", mode=None)


@damage("unreadable_event", "cannot be read")
def an_event_of_the_far_future(db: Database) -> None:
    db.edit("events", 'CAST(encoded AS TEXT) LIKE \'%"type":"session"%\'', updated_at=2**70)


@damage("lost_history", "r-queued")
def the_newest_events_lost(db: Database) -> None:
    db.do("DELETE FROM events WHERE seq > ?", db.event("run", "r-queued", first=True) + 3)


@damage("lost_history", "run r-queued")
def a_run_lost_from_a_trimmed_log(db: Database) -> None:
    db.do("DELETE FROM events WHERE seq < ?", db.event("run", "r-other", first=True))
    db.do("DELETE FROM events WHERE seq >= ?", db.event("run", "r-queued", first=True))


@damage("lost_history", "run r-queued is active")
def a_start_that_was_not_logged(db: Database) -> None:
    """The row must be believed: a run that has begun is not begun again."""
    db.reopen("r-queued", "active")
    for field in ("message_id", "text"):
        db.edit("runs", "run_id = 'r-queued'", **{field: None})
    db.do("DELETE FROM events WHERE seq > ?", db.event("run", "r-queued", first=True))


@damage("missing_terminal", "run r-queued has ended")
def the_last_end_unlogged(db: Database) -> None:
    db.forget(db.event("run_complete", "r-queued"))


@damage("missing_terminal", "run r-host has ended")
def an_earlier_end_unlogged(db: Database) -> None:
    db.forget(db.event("run_complete", "r-host"))


@damage("missing_terminal", "run r-folded has ended")
def a_folded_end_unlogged(db: Database) -> None:
    db.forget(db.event("run_complete", "r-folded"))


@damage("two_terminals", "r-tool has ended already")
def two_ends(db: Database) -> None:
    db.tell(db.event("run_complete", "r-tool"))


@damage("after_terminal", "r-tool has ended already")
def a_message_after_the_end(db: Database) -> None:
    db.tell(db.event("message", "r-tool"))


@damage("wrong_terminal", "different texts")
def a_cancelled_end_with_another_text(db: Database) -> None:
    db.edit("events", f"seq = {db.event('run_complete', 'r-cancel')}", text="something else")


@damage("wrong_terminal", "different texts")
def an_end_with_another_text(db: Database) -> None:
    db.edit("events", f"seq = {db.event('run_complete', 'r-tool')}", text="something else")


@damage("wrong_terminal", "ended as failed")
def a_failure_logged_as_success(db: Database) -> None:
    db.edit("events", f"seq = {db.event('run_complete', 'r-fail')}", error=None)


@damage("wrong_terminal", "nobody knows by what")
def cancelled_by_nobody(db: Database) -> None:
    db.edit("runs", "run_id = 'r-cancel'", cancelled_by=None)
    for seq in range(db.event("run", "r-cancel", first=True), db.event("run", "r-cancel") + 1):
        value = db.value("events", f"seq = {seq}")
        if value["type"] == "run" and "cancelled_by" in value["payload"]["payload"]:
            db.edit("events", f"seq = {seq}", cancelled_by=None)


@damage("wrong_owner", "names session elsewhere")
def an_event_of_another_session(db: Database) -> None:
    db.edit("events", f"seq = {db.event('agent_event', 'r-fail')}", session_id="elsewhere")


@damage("wrong_owner", "names no run")
def an_event_of_no_run(db: Database) -> None:
    db.edit("events", f"seq = {db.event('agent_event', 'r-fail')}", run_id="")


@damage("wrong_order", "was never announced")
def a_run_never_announced(db: Database) -> None:
    db.forget(db.event("run", "r-tool", first=True))


@damage("wrong_order", "was given out after")
def seqs_that_fall(db: Database) -> None:
    db.edit("events", f"seq = {db.event('run', 'r-busy', first=True)}", seq=1)


@damage("wrong_order", "announced twice")
def announced_twice(db: Database) -> None:
    first = db.event("run", "r-tool", first=True)
    db.tell(first, first + 1)


@damage("wrong_order", "does not follow right after")
def a_folded_end_too_late(db: Database) -> None:
    end = db.event("run_complete", "r-folded")
    db.tell(end, db.event("run_complete", "r-fail") + 1)
    db.forget(end)


@damage("two_turns", "has not ended")
def turns_that_overlap(db: Database) -> None:
    prompt = db.event("message", "r-fail", first=True)
    db.tell(prompt, db.event("run_complete", "r-busy"))
    db.forget(prompt + 1)


# ── rows ──

by_sql("a_broken_run", "unreadable_row", "run r-tool", "UPDATE runs SET value = '{' WHERE run_id = 'r-tool'")
by_sql(
    "a_broken_old_run", "unreadable_row", "run r-tool", "UPDATE runs SET value = '{}' WHERE run_id = 'r-tool'",
    trimmed=True,
)  # fmt: skip
by_sql("a_broken_session", "unreadable_row", "session", "UPDATE sessions SET value = x'00'")
by_sql("a_broken_old_session", "unreadable_row", "session", "UPDATE sessions SET value = x'00'", trimmed=True)
by_sql("a_broken_message", "unreadable_row", "message", "UPDATE messages SET value = '[]' WHERE position = 2")
by_sql("broken_messages", "unreadable_row", "message", "UPDATE messages SET value = 'x'", trimmed=True)
by_sql("broken_attachments", "unreadable_row", "attachments of run", "UPDATE runs SET attachments = '{}'")
by_sql("a_misfiled_run", "misfiled_row", "run r-tool", "UPDATE runs SET state = 'active' WHERE run_id = 'r-tool'")
by_sql("a_run_filed_as_open", "misfiled_row", "run r-tool", "UPDATE runs SET ended = 0 WHERE run_id = 'r-tool'")
by_sql("cancelled_by_a_column", "misfiled_row", "run r-tool", "UPDATE runs SET cancelled = 1 WHERE run_id = 'r-tool'")
by_sql("another_run_id", "misfiled_row", "run other", "UPDATE runs SET run_id = 'other' WHERE run_id = 'r-tool'")
by_sql(
    "another_old_run_id", "misfiled_row", "run other", "UPDATE runs SET run_id = 'other' WHERE run_id = 'r-tool'",
    trimmed=True,
)  # fmt: skip
by_sql("another_seq", "misfiled_row", "run r-tool", "UPDATE runs SET seq = 99 WHERE run_id = 'r-tool'")
by_sql("a_misfiled_message", "misfiled_row", "message", "UPDATE messages SET session_id = 'x' WHERE position = 3")
by_sql("a_misfiled_session", "misfiled_row", "session", "UPDATE sessions SET updated_at = 1")
by_sql("a_lost_run", "row_missing", "run r-host", "DELETE FROM runs WHERE run_id = 'r-host'")
by_sql("a_lost_message", "row_missing", "message", "DELETE FROM messages WHERE position = 3")
by_sql("lost_messages", "row_missing", "message", "DELETE FROM messages")
by_sql("a_lost_session", "row_missing", "session", "DELETE FROM sessions")
by_sql("an_old_lost_session", "no_session", "session", "DELETE FROM sessions", trimmed=True)
by_sql("a_lost_workspace", "lost_workspace", "no directory is known", "DELETE FROM workspaces")
by_sql("a_lost_path", "lost_workspace", "no directory is known", "UPDATE workspaces SET path = 'project'")
by_sql("an_event_of_nowhere", "lost_workspace", "no directory", "UPDATE events SET workspace_id = 'x' WHERE seq = 7")
by_sql(
    "messages_of_nowhere",
    "lost_workspace",
    "no directory",
    "UPDATE messages SET workspace_id = '/' || char(0) WHERE position > 9",
)
by_sql(
    "a_session_of_another_id",
    "misfiled_row",
    "session x",
    "UPDATE sessions SET id = 'x' WHERE id = (SELECT max(id) FROM sessions)",
)
by_sql("a_lost_version", "lost_version", "version", "PRAGMA user_version = 0")
by_sql("text_of_nothing", "stale_text", "no such message", "INSERT INTO message_tails VALUES ('m', 0, 0, 'text', 'x')")


@damage("row_differs", "run r-tool differs from the event")
def another_prompt(db: Database) -> None:
    db.edit("runs", "run_id = 'r-tool'", prompt="something else")


@damage("row_differs", "message")
def another_answer(db: Database) -> None:
    answer = db.message("r-tool", "assistant")
    db.edit("messages", f"id = '{answer}'", model="another", created_at=1)


@damage("row_differs", "title")
def another_title(db: Database) -> None:
    db.edit("sessions", f"id = '{db.session('r-tool')}'", title="something else")


@damage("row_differs", "was deleted")
def a_session_that_came_back(db: Database) -> None:
    gone = db.session("r-gone")
    value = db.value("sessions", "1") | {"id": gone, "updated_at": 1}
    db.do("INSERT INTO sessions VALUES ('w', ?, ?, 1, 0)", gone, json.dumps(value).encode())


@damage("row_differs", "its session was deleted")
def a_message_that_came_back(db: Database) -> None:
    db.add_message(db.message("r-tool", "user"), id="revenant", session_id=db.session("r-gone"))


@damage("lost_history", "message stray")
def a_message_that_was_never_logged(db: Database) -> None:
    db.add_message(db.message("r-tool", "assistant"), id="stray")


@damage("message_order", "are not in order")
def messages_in_another_order(db: Database) -> None:
    db.do("UPDATE messages SET position = -1 WHERE id = ?", db.message("r-busy", "assistant"))


@damage("foreign_message", "names run r-tool, which is in another session")
def a_message_of_a_run_elsewhere(db: Database) -> None:
    db.trim()
    db.add_message(db.message("r-other", "user"), id="foreign", run_id="r-tool")


@damage("message_count", "counts 77 messages")
def a_wrong_count(db: Database) -> None:
    db.edit("sessions", f"id = '{db.session('r-tool')}'", message_count=77)


@damage("stale_text", "is still kept apart")
def text_of_a_finished_message(db: Database) -> None:
    db.do("INSERT INTO message_tails VALUES (?, 0, 0, 'text', 'x')", db.message("r-tool", "assistant"))


# ── runs of which the log cannot tell any more ──


@damage("impossible_state", "run r-tool is active, but has ended")
def active_and_ended(db: Database) -> None:
    db.trim()
    db.edit("runs", "run_id = 'r-tool'", state="active")
    db.do("UPDATE runs SET state = 'active' WHERE run_id = 'r-tool'")


@damage("impossible_state", "run r-tool is completed, but has not")
def completed_but_open(db: Database) -> None:
    db.trim()
    db.reopen("r-tool", "completed")


@damage("impossible_state", "run r-folded is folded")
def folded_and_stranded(db: Database) -> None:
    db.trim()
    db.reopen("r-folded", "folded")


@damage("impossible_state", "run r-folded is folded")
def folded_into_nothing(db: Database) -> None:
    db.trim()
    db.reopen("r-folded", "folded")
    db.do("DELETE FROM runs WHERE run_id = 'r-host'")


@damage("two_active", "2 runs")
def two_active_runs(db: Database) -> None:
    db.trim()
    db.reopen("r-tool", "active")
    db.reopen("r-host", "active")
    db.reopen("r-folded", "folded")


@damage("no_session", "there are messages")
def messages_of_the_far_future_without_a_session(db: Database) -> None:
    db.trim()
    db.edit("messages", f"id = '{db.message('r-tool', 'user')}'", created_at=2**70)
    db.do("DELETE FROM sessions")


@damage("no_session", "open runs of session")
def an_open_run_of_no_session(db: Database) -> None:
    db.trim()
    db.reopen("r-gone", "queued")


@damage("no_session", "open runs of session")
def an_open_run_of_a_deleted_session(db: Database) -> None:
    db.reopen("r-gone", "queued")
    db.do("DELETE FROM events WHERE seq <= ?", db.event("run_complete", "r-gone"))


@damage("incomplete_turn", "run r-tool has no prompts")
def a_lost_prompt(db: Database) -> None:
    db.trim()
    db.do("DELETE FROM messages WHERE id = ?", db.message("r-tool", "user"))


@damage("incomplete_turn", "run r-fail has ended, but there is no answer")
def a_lost_answer(db: Database) -> None:
    db.trim()
    db.do("DELETE FROM messages WHERE id = ?", db.message("r-fail", "assistant"))


@damage("incomplete_turn", "run r-folded has no prompts")
def a_lost_turn(db: Database) -> None:
    db.trim()
    db.do("DELETE FROM messages WHERE run_id IN ('r-folded', 'r-cancel', 'r-active')")


@damage("incomplete_turn", "2 prompts")
def two_prompts(db: Database) -> None:
    db.trim()
    db.add_message(db.message("r-tool", "user"), id="twin")


@damage("unfinished_answer", "has no finish reason")
def answers_without_an_end(db: Database) -> None:
    db.trim()
    for run_id in ("r-tool", "r-fail", "r-cancel", "r-other"):
        answer = db.message(run_id, "assistant")
        parts = [part for part in db.value("messages", f"id = '{answer}'")["parts"] if part["type"] != "finish"]
        db.edit("messages", f"id = '{answer}'", parts=parts)
    db.do("INSERT INTO message_tails VALUES (?, 0, 4, 'text', 'll')", db.message("r-cancel", "assistant"))


@damage("stale_text", "does not continue it")
def text_that_does_not_fit(db: Database) -> None:
    answers_without_an_end(db)
    db.do("UPDATE message_tails SET offset = 400")


@damage("untimely_messages", "run r-drop was dropped")
def a_dropped_run_with_messages(db: Database) -> None:
    db.trim()
    db.add_message(db.message("r-tool", "user"), id="stray", run_id="r-drop")


@damage("tool_call", "has no result")
def a_lost_result(db: Database) -> None:
    db.trim()
    db.do("DELETE FROM messages WHERE id = ?", db.message("r-tool", "tool"))


@damage("tool_call", "has no call, or is one too many")
def two_results(db: Database) -> None:
    db.trim()
    db.add_message(db.message("r-tool", "tool"), id="twin")


@damage("tool_call", "has no call")
def a_result_before_its_call(db: Database) -> None:
    db.trim()
    db.do("UPDATE messages SET position = -1 WHERE id = ?", db.message("r-tool", "tool"))
