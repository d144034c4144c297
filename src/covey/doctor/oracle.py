"""What must be true of a store, whatever has happened to its server. Reads rows and event log; judges, never repairs.

The log is read from its first event to its last (`oracle_story`), and what it records is compared with the rows.
All that is wrong is reported at once, so that somebody who sees one finding also sees what it came with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from covey.doctor.oracle_file import complaints, lost_version, snapshot
from covey.doctor.oracle_findings import Finding
from covey.doctor.oracle_record import Record, read_records
from covey.doctor.oracle_story import OUTCOMES, Story


@dataclass
class Examination:
    """A store as of one moment, and all that is wrong with it."""

    findings: list[Finding] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    """Empty if the file itself is damaged: then its rows prove nothing."""

    @property
    def is_damaged(self) -> bool:
        return any(finding.kind == "damaged_file" for finding in self.findings)


def examine(data_dir: Path) -> Examination:
    """Look at everything. Raises NoStore if there is nothing to look at. A server may be running."""
    with snapshot(data_dir) as connection:
        try:
            if wrong := complaints(connection):
                return Examination([Finding("damaged_file", f"the file is damaged: {text}") for text in wrong])
            return examine_rows(connection)
        except (apsw.Error, MemoryError, ValueError) as error:
            return Examination([Finding("damaged_file", f"the file is damaged: {error}")])


def examine_rows(connection: apsw.Connection) -> Examination:
    """The same, of a file that is known to be sound."""
    records, stray, wrong_contents = read_records(connection)
    findings = [
        Finding("stale_text", f"text of message {message_id} is kept, but there is no such message", "", message_id)
        for message_id in stray
    ]
    findings += [
        Finding("wrong_content", f"what is kept under {digest[:12]} is something else", "", digest)
        for digest in wrong_contents
    ]
    if lost_version(connection):
        findings.append(Finding("lost_version", "the tables are all there, but their version is not"))
    return Examination(findings + [finding for record in records for finding in judge(record)], records)


def judge(record: Record) -> list[Finding]:
    """All that is wrong with one workspace. Open runs are none of it."""
    story = Story(record)
    found = [*_flaws(record), *_lost_log(record), *story.findings, *_runs(record, story), *_messages(record, story)]
    found += [*_lanes(record), *_turns(record, story), *_sessions(record, story)]
    return [Finding(f.kind, f.what, record.workspace_id, f.subject) for f in found]


def open_runs(record: Record) -> list[Any]:
    """The runs that a server is working on, or will take up."""
    return [run for run in record.runs.values() if "ended_at" not in run]


def is_finished(message: Any) -> bool:
    calls = [part["data"] for part in message["parts"] if part["type"] == "tool_call"]
    has_reason = bool(message["parts"]) and message["parts"][-1]["type"] == "finish"
    return has_reason and all(call["finished"] for call in calls)


_PROGRESS = {"accepted": 0, "queued": 1, "active": 2, "folded": 2}


def is_ahead(row: Any, logged: Any) -> bool:
    """The row knows more than the log: it is the log that has lost something."""
    return _progress(row) > _progress(logged)


def _progress(value: Any) -> tuple[float, ...]:
    """How far a run, or a message, has come."""
    if "seq" in value:
        return (_PROGRESS.get(value["state"], 3) if "ended_at" not in value else 4,)
    return is_finished(value), value["updated_at"], len(value["parts"])


def is_impossible(run: Any, runs: dict[str, Any]) -> bool:
    """Neither open nor ended; or folded into a turn that ended without it."""
    if "ended_at" in run:
        return run["state"] not in (*OUTCOMES, "folded")
    if run["state"] == "folded":
        host = runs.get(run.get("folded_into", ""))
        return host is None or "ended_at" in host
    return run["state"] in OUTCOMES


def is_foreign(message: Any, runs: dict[str, Any]) -> bool:
    """It names a run of another session."""
    run = runs.get(message.get("run_id", ""))
    return run is not None and run["session_id"] != message["session_id"]


class Loose(NamedTuple):
    """Tool calls and results that do not belong together, each as (message id, number of the part)."""

    calls: list[tuple[str, int]]
    results: list[tuple[str, int]]


def loose_ends(messages: Iterable[Any]) -> Loose:
    """A result belongs to a call before it. Some models use the same ids again in each step."""
    open_calls: dict[str, list[tuple[str, int]]] = defaultdict(list)
    results = []
    for message in messages:
        for number, part in enumerate(message["parts"]):
            if part["type"] == "tool_call":
                open_calls[part["data"]["id"]].append((message["id"], number))
            elif part["type"] == "tool_result":
                if calls := open_calls[part["data"]["tool_call_id"]]:
                    calls.pop()
                else:
                    results.append((message["id"], number))
    return Loose([call for calls in open_calls.values() for call in calls], results)


_FLAWS = {
    "lost_workspace": "there are rows of it, but no directory is known for it",
    "unreadable_row": "{table} {key} cannot be read",
    "unreadable_event": "event {key} cannot be read",
    "misfiled_row": "{table} {key} is filed under something that it does not say",
    "stale_text": "text that was saved for message {key} does not continue it",
}
_NAMES = {
    "runs": "run",
    "messages": "message",
    "sessions": "session",
    "attachments": "attachments of run",
    "undos": "undo",
}


def _flaws(record: Record) -> Iterator[Finding]:
    for kind, table, key in record.flaws:
        yield Finding(kind, _FLAWS[kind].format(table=_NAMES.get(table, "event"), key=key), subject=key)


def _lost_log(record: Record) -> Iterator[Finding]:
    unreadable = any(flaw.kind == "unreadable_event" for flaw in record.flaws)
    if not record.events and not unreadable and (record.sessions or record.runs or record.messages):
        yield Finding("lost_history", "its event log is empty, although the newest event is always kept")


def _runs(record: Record, story: Story) -> Iterator[Finding]:
    for run_id, run in record.runs.items():
        logged = story.runs.get(run_id)
        if record.run_columns[run_id] != (run["seq"], run["state"], "ended_at" in run):
            yield Finding("misfiled_row", f"the columns of run {run_id} are not what it says", subject=run_id)
        if logged is None:
            if story.should_know(run):
                yield Finding("lost_history", f"the log does not mention run {run_id}", subject=run_id)
        elif is_ahead(run, logged):
            yield Finding(
                "lost_history", f"the log does not record that run {run_id} is {run['state']}", subject=run_id
            )
        elif logged != run:
            yield Finding("row_differs", f"run {run_id} differs from the event that recorded it last", subject=run_id)
        if logged in (None, run) and is_impossible(run, record.runs):
            state = f"{run['state']}, {'but has ended' if 'ended_at' in run else 'but has not ended with it'}"
            yield Finding("impossible_state", f"run {run_id} is {state}", subject=run_id)
    for run_id in story.runs.keys() - record.runs.keys():
        yield Finding("row_missing", f"run {run_id} is in the log, but has no row", subject=run_id)
    for run_id in sorted(story.mentioned - story.terminals.keys()):
        if "ended_at" in (record.runs.get(run_id) or story.runs.get(run_id, {})):
            yield Finding("missing_terminal", f"run {run_id} has ended without a terminal event", subject=run_id)


def _messages(record: Record, story: Story) -> Iterator[Finding]:
    for message_id, message in record.messages.items():
        logged = story.messages.get(message_id)
        if message["session_id"] in story.deleted:
            what = f"message {message_id} is still there, although its session was deleted"
            yield Finding("row_differs", what, subject=message_id)
        elif message_id in story.removed:
            what = f"message {message_id} is still there, although it was undone"
            yield Finding("row_differs", what, subject=message_id)
        elif logged is None:
            if not story.is_trimmed or message.get("run_id") in story.announced:
                yield Finding("lost_history", f"the log does not mention message {message_id}", subject=message_id)
        elif is_ahead(message, logged):
            yield Finding("lost_history", f"the log does not record all of message {message_id}", subject=message_id)
        elif logged != message:
            yield Finding(
                "row_differs", f"message {message_id} differs from the event that recorded it last", subject=message_id
            )
        if is_foreign(message, record.runs):
            what = f"message {message_id} names run {message['run_id']}, which is in another session"
            yield Finding("foreign_message", what, subject=message_id)
        if message_id in record.growing and is_finished(message):
            what = f"message {message_id} is finished, but text of it is still kept apart"
            yield Finding("stale_text", what, subject=message_id)
    for message_id in story.messages.keys() - record.messages.keys():
        yield Finding("row_missing", f"message {message_id} is in the log, but has no row", subject=message_id)
    for session_id in sorted(wrong_orders(record, story)):
        yield Finding("message_order", f"the messages of session {session_id} are not in order", subject=session_id)


def wrong_orders(record: Record, story: Story) -> set[str]:
    """Sessions whose messages stand in another order than the one in which they began."""
    logged: dict[str, list[str]] = defaultdict(list)
    kept: dict[str, list[str]] = defaultdict(list)
    begun = dict.fromkeys(message_id for message_id in story.begun if message_id in record.messages)
    for message_id in begun:
        logged[record.messages[message_id]["session_id"]].append(message_id)
    for message_id, message in record.messages.items():
        if message_id in begun:
            kept[message["session_id"]].append(message_id)
    return {session_id for session_id in logged if logged[session_id] != kept[session_id]}


def _lanes(record: Record) -> Iterator[Finding]:
    active = Counter(run["session_id"] for run in open_runs(record) if run["state"] == "active")
    for session_id, count in active.items():
        if count > 1:
            yield Finding("two_active", f"{count} runs of session {session_id} are active at once", subject=session_id)


def _turns(record: Record, story: Story) -> Iterator[Finding]:
    """Every turn leaves its prompt, and in the end answers that are finished; a dropped prompt leaves nothing (R6)."""
    by_run: dict[str, list[Any]] = defaultdict(list)
    for message in record.messages.values():
        if not is_foreign(message, record.runs):
            by_run[message.get("run_id", "")].append(message)
    for run_id, run in record.runs.items():
        if run["session_id"] in record.sessions:
            mine = by_run[run_id]
            if run_id in story.undone and not mine:
                continue
            if not is_waiting(run) and not ("ended_at" in run and story.was_dropped(run)):
                found = _turn(run, mine)
            else:
                found = _no_turn(run, mine)
            yield from (Finding(kind, what, subject=run_id) for kind, what in found)


def is_waiting(run: Any) -> bool:
    """Its turn has not begun."""
    return "ended_at" not in run and run["state"] in ("accepted", "queued")


def _no_turn(run: Any, mine: list[Any]) -> Iterator[tuple[str, str]]:
    if mine:
        why = "has not begun" if is_waiting(run) else "was dropped from the queue"
        yield "untimely_messages", f"run {run['run_id']} {why}, but has {len(mine)} messages"


def _turn(run: Any, mine: list[Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a turn that has ended, or, while it goes on, with what can be judged of it already."""
    run_id, is_over = run["run_id"], "ended_at" in run
    answers = [message for message in mine if message["role"] == "assistant"]
    prompts = sum(message["role"] == "user" for message in mine)
    if prompts != 1:
        yield "incomplete_turn", f"run {run_id} has {prompts or 'no'} prompts among its messages, not one"
    if is_over and not answers and not run.get("folded_into"):
        yield "incomplete_turn", f"run {run_id} has ended, but there is no answer"
    for message in answers if is_over else answers[:-1]:
        if not is_finished(message):
            yield "unfinished_answer", f"the answer {message['id']} of run {run_id} has no finish reason"
    loose = loose_ends(mine)
    for message_id, _ in loose.calls if is_over else ():
        yield "tool_call", f"a tool call of run {run_id}, in message {message_id}, has no result"
    for message_id, _ in loose.results:
        yield "tool_call", f"a tool result of run {run_id}, in message {message_id}, has no call, or is one too many"


def _sessions(record: Record, story: Story) -> Iterator[Finding]:
    counts = Counter(message["session_id"] for message in record.messages.values())
    for session_id, session in record.sessions.items():
        logged = story.sessions.get(session_id)
        if session["message_count"] != counts[session_id]:
            what = f"session {session_id} counts {session['message_count']} messages, but has {counts[session_id]}"
            yield Finding("message_count", what, subject=session_id)
        if session_id in story.deleted:
            yield Finding("row_differs", f"session {session_id} is still there, but was deleted", subject=session_id)
        elif logged is None and not story.is_trimmed:
            yield Finding("lost_history", f"the log does not mention session {session_id}", subject=session_id)
        elif logged and logged["title"] != session["title"]:
            yield Finding(
                "row_differs", f"session {session_id} has a title that was never published", subject=session_id
            )
    for session_id in story.sessions.keys() - record.sessions.keys():
        yield Finding("row_missing", f"session {session_id} is in the log, but has no row", subject=session_id)
    wanted = {run["session_id"] for run in open_runs(record)} | (counts.keys() - story.deleted)
    for session_id in sorted(wanted - record.sessions.keys() - story.sessions.keys()):
        yield Finding("no_session", f"there are messages or open runs of session {session_id}, which is not there")
