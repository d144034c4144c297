"""What must be true of a store, whatever has happened to its server. Reads rows and event log; judges, never repairs.

The log is read from its first event to its last, and every promise that it can break is looked at on the way; then what
it tells is compared with what the rows say. All that is wrong is reported at once.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

OUTCOMES = ("completed", "failed", "cancelled", "interrupted")
SAME_IN_TERMINAL = ("session_id", "message_id", "error", "folded_into")
"""Fields that a run and its terminal event share: absent in both, or equal."""


def check(data_dir: Path, *, all_ended: bool) -> None:
    """Fail with everything that is wrong. `all_ended`: the server has stopped in order, so no run may be open."""
    faults = [fault for record in read(data_dir) for fault in judge(record, all_ended=all_ended)]
    assert not faults, "the store breaks promises:\n" + "\n".join(faults)


@dataclass(frozen=True)
class LogEvent:
    seq: int
    type: str
    change: str
    payload: Any


@dataclass
class Record:
    """All that a store holds of one workspace, as of one moment."""

    workspace_id: str
    events: list[LogEvent] = field(default_factory=list)
    runs: dict[str, Any] = field(default_factory=dict)
    run_columns: dict[str, tuple[int, str, bool]] = field(default_factory=dict)
    """By run: its seq, state and whether it has ended, as the columns say beside the value."""
    messages: dict[str, Any] = field(default_factory=dict)
    sessions: dict[str, Any] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)
    """Messages with text that was saved apart from them."""


def read(data_dir: Path) -> list[Record]:
    path = data_dir / "covey.db"
    if not path.exists():
        return []
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5000)
    try:
        connection.execute("BEGIN")  # all tables as of the same moment
        return [_read_workspace(connection, row[0]) for row in connection.execute("SELECT id FROM workspaces")]
    finally:
        connection.close()


def _read_workspace(connection: apsw.Connection, workspace_id: str) -> Record:
    def rows(query: str) -> Any:
        return connection.execute(query, (workspace_id,))

    record = Record(workspace_id)
    for seq, encoded in rows("SELECT seq, encoded FROM events WHERE workspace_id = ? ORDER BY seq"):
        value = json.loads(encoded)
        inner = value["payload"]
        record.events.append(LogEvent(seq, value["type"], inner["type"], inner["payload"]))
    for run_id, value, *columns in rows("SELECT run_id, value, seq, state, ended FROM runs WHERE workspace_id = ?"):
        record.runs[run_id] = json.loads(value)
        record.run_columns[run_id] = (columns[0], columns[1], bool(columns[2]))
    for message_id, value in rows("SELECT id, value FROM messages WHERE workspace_id = ? ORDER BY position"):
        record.messages[message_id] = json.loads(value)
    for session_id, value in rows("SELECT id, value FROM sessions WHERE workspace_id = ?"):
        record.sessions[session_id] = json.loads(value)
    record.growing = {message_id for (message_id,) in connection.execute("SELECT message_id FROM message_tails")}
    return record


def judge(record: Record, *, all_ended: bool) -> list[str]:
    """All that is wrong with one workspace."""
    story = Story(trimmed=bool(record.events) and record.events[0].seq != 1)
    for event in record.events:
        story.take(event)
    faults = story.faults + _rows_against_story(record, story) + _messages_of_runs(record, story)
    faults += _tool_calls(record, story) + _sessions(record, story)
    if all_ended:
        faults += [f"run {run_id} is still open" for run_id, run in record.runs.items() if "ended_at" not in run]
    return [f"{record.workspace_id}: {fault}" for fault in faults]


class Story:
    """What the event log tells, and every promise that it breaks while telling it."""

    def __init__(self, *, trimmed: bool) -> None:
        self.faults: list[str] = []
        self.runs: dict[str, Any] = {}
        self.states: dict[str, list[str]] = {}
        """By run: the states it went through, in order."""
        self.terminals: dict[str, Any] = {}
        self.messages: dict[str, Any] = {}
        self.titles: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._trimmed = trimmed
        self._last_seq = 0
        self._last_accepted = 0
        self._turn: dict[str, str] = {}
        """By session: the run whose turn is being told."""
        self._started: dict[str, int] = {}
        """By session: the seq of the run that became active last."""
        self._last_host = ""
        """The run whose terminal event was just told; those folded into it must follow at once (R8)."""

    def take(self, event: LogEvent) -> None:
        if self._last_seq and event.seq != self._last_seq + 1:
            self._fault(event, f"it follows {self._last_seq}: the log has a gap")
        self._last_seq = event.seq
        if run_id := event.payload.get("run_id"):
            self._check_attribution(event, run_id)
        match event.type:
            case "run":
                self._take_run(event)
            case "run_complete":
                self._take_terminal(event)
            case "message":
                self._take_message(event)
            case "session":
                self._take_session(event)
            case "agent_event" | "permission_request" | "permission_notification" if not run_id:
                self._fault(event, "it names no run (R11)")
        if event.type not in ("run", "run_complete"):
            self._last_host = ""

    def turn_of(self, run_id: str) -> str:
        """The run in whose turn this one's messages stand."""
        return str(self.runs.get(run_id, {}).get("folded_into") or run_id)

    def was_dropped(self, run_id: str) -> bool:
        """It ended while it waited in the queue."""
        return self.states[run_id][-2:] == ["queued", "cancelled"]

    def _check_attribution(self, event: LogEvent, run_id: str) -> None:
        payload = event.payload
        if run_id in self.terminals:
            self._fault(event, f"run {run_id} has ended already (R8, R9)")
        known = self.runs.get(run_id)
        if known is None:
            if not self._trimmed and (event.type, event.change) != ("run", "created"):
                self._fault(event, f"run {run_id} was never announced")
        elif payload.get("session_id") != known["session_id"]:
            self._fault(event, f"it names session {payload.get('session_id')}, not {known['session_id']} (R11)")

    def _take_run(self, event: LogEvent) -> None:
        run = event.payload
        run_id, session_id, state = run["run_id"], run["session_id"], run["state"]
        if event.change == "created":
            if run_id in self.runs or state != "accepted":
                self._fault(event, "a run is announced twice, or not as accepted")
            if run["seq"] <= self._last_accepted:
                self._fault(event, f"seq {run['seq']} was given out after {self._last_accepted} (R1)")
            self._last_accepted = run["seq"]
        states = self.states.setdefault(run_id, [])
        if not states or states[-1] != state:
            states.append(state)
            if state == "active":
                self._begin_turn(event, session_id, run_id)
                if run["seq"] <= self._started.get(session_id, 0):
                    self._fault(event, f"it starts after the run with seq {self._started[session_id]} (R3)")
                self._started[session_id] = run["seq"]
        self.runs[run_id] = run

    def _begin_turn(self, event: LogEvent, session_id: str, run_id: str) -> None:
        other = self._turn.get(session_id, "")
        if other not in ("", run_id):
            self._fault(event, f"the turn of {other} has not ended: two turns at once (R9)")
        self._turn[session_id] = run_id

    def _take_terminal(self, event: LogEvent) -> None:
        terminal = event.payload
        run_id = terminal["run_id"]
        run = self.runs.get(run_id)
        self.terminals[run_id] = terminal
        if run is None:
            return
        if "ended_at" not in run:
            self._fault(event, f"run {run_id} is told to end before its row says so")
        host = terminal.get("folded_into")
        if host and self._last_host != host:
            self._fault(event, f"it does not follow right after that of {host} (R8)")
        self._last_host = host or run_id
        if self._turn.get(run["session_id"]) == run_id:
            self._turn[run["session_id"]] = ""
        self.faults += _terminal_against_run(terminal, run, self.runs.get(host or run_id, {}))

    def _take_message(self, event: LogEvent) -> None:
        message = event.payload
        self.messages[message["id"]] = message
        if run_id := message.get("run_id"):
            self._begin_turn(event, message["session_id"], self.turn_of(run_id))

    def _take_session(self, event: LogEvent) -> None:
        session = event.payload
        if event.change == "deleted":
            self.deleted.add(session["id"])
            self.titles.pop(session["id"], None)
            self.messages = {i: m for i, m in self.messages.items() if m["session_id"] != session["id"]}
        else:
            self.titles[session["id"]] = session["title"]

    def _fault(self, event: LogEvent, text: str) -> None:
        self.faults.append(f"event {event.seq} ({event.type}): {text}")


def _terminal_against_run(terminal: Any, run: Any, host: Any) -> list[str]:
    """Status and stream must tell the same end. A folded run ends as its host did (R8)."""
    run_id, state = run["run_id"], host.get("state")
    faults = []
    expected = {
        "cancelled": state == "cancelled",
        "interrupted": state == "interrupted",
        "error": state in ("failed", "interrupted"),
    }
    for name, wanted in expected.items():
        if bool(terminal.get(name)) != wanted:
            faults.append(f"run {run_id} ended as {state}, but its terminal event has {name}={terminal.get(name)}")
    if state == "cancelled" and not host.get("cancelled_by"):
        faults.append(f"run {run_id} was cancelled, and nobody knows by what")
    if state == "completed" and terminal.get("text") != run.get("text"):
        faults.append(f"run {run_id} and its terminal event have different texts")
    if state not in OUTCOMES:
        faults.append(f"run {run_id} has a terminal event but is {state}")
    for name in SAME_IN_TERMINAL:
        if (terminal.get(name) or None) != (run.get(name) or None):
            faults.append(f"run {run_id} and its terminal event differ in {name}")
    return faults


def _rows_against_story(record: Record, story: Story) -> list[str]:
    faults = []
    for run_id, run in record.runs.items():
        ended = "ended_at" in run
        if record.run_columns[run_id] != (run["seq"], run["state"], ended):
            faults.append(f"run {run_id}: its columns {record.run_columns[run_id]} are not those of {run}")
        if run_id in story.runs and story.runs[run_id] != run:
            faults.append(f"run {run_id}: the row {run} is not what was told last, {story.runs[run_id]}")
        if ended != (run_id in story.terminals) and run_id in story.runs:
            faults.append(f"run {run_id}: ended is {ended}, its terminal event is {story.terminals.get(run_id)}")
    for run_id in story.runs.keys() - record.runs.keys():
        faults.append(f"run {run_id} was told of, but has no row")
    for message_id, message in record.messages.items():
        if story.messages.get(message_id) != message:
            faults.append(f"message {message_id}: the row {message} is not what was told last")
    for message_id in story.messages.keys() - record.messages.keys():
        faults.append(f"message {message_id} was told of, but has no row")
    return faults


def _messages_of_runs(record: Record, story: Story) -> list[str]:
    """Every turn leaves its prompt and an answer with a finish reason; a dropped prompt leaves nothing (R6)."""
    faults = []
    for run_id in story.terminals:
        run = record.runs.get(run_id)
        if run is None or run["session_id"] in story.deleted:
            continue
        mine = [message for message in record.messages.values() if message.get("run_id") == run_id]
        roles = Counter(message["role"] for message in mine)
        if story.was_dropped(run_id):
            if mine:
                faults.append(f"run {run_id} was dropped from the queue but left {dict(roles)}")
            continue
        if roles["user"] != 1 or (roles["assistant"] == 0 and not run.get("folded_into")):
            faults.append(f"run {run_id} left {dict(roles)}, not its prompt and an answer")
        for message in mine:
            if message["role"] == "assistant" and not _is_finished(message):
                faults.append(f"run {run_id} has ended, but its answer {message['id']} has no finish reason")
    faults += [
        f"message {message_id} is finished, but text of it is still kept apart"
        for message_id, message in record.messages.items()
        if message_id in record.growing and _is_finished(message)
    ]
    return faults


def _is_finished(message: Any) -> bool:
    calls = [part["data"] for part in message["parts"] if part["type"] == "tool_call"]
    has_reason = bool(message["parts"]) and message["parts"][-1]["type"] == "finish"
    return has_reason and all(call["finished"] for call in calls)


def _tool_calls(record: Record, story: Story) -> list[str]:
    """Of every run that has ended, each tool call has exactly one result, and no result is without its call."""
    calls: Counter[tuple[str, str]] = Counter()
    results: Counter[tuple[str, str]] = Counter()
    for message in record.messages.values():
        if message.get("run_id") not in story.terminals:
            continue
        for part in message["parts"]:
            if part["type"] == "tool_call":
                calls[message["run_id"], part["data"]["id"]] += 1
            elif part["type"] == "tool_result":
                results[message["run_id"], part["data"]["tool_call_id"]] += 1
    return [
        f"tool call {call}: {calls[call]} calls, {results[call]} results"
        for call in calls.keys() | results.keys()
        if (calls[call], results[call]) != (1, 1)
    ]


def _sessions(record: Record, story: Story) -> list[str]:
    faults = []
    counts = Counter(message["session_id"] for message in record.messages.values())
    for session_id, session in record.sessions.items():
        if session["message_count"] != counts[session_id]:
            faults.append(
                f"session {session_id} counts {session['message_count']} messages, it has {counts[session_id]}"
            )
        if story.titles.get(session_id, session["title"]) != session["title"]:
            faults.append(f"session {session_id}: its title {session['title']!r} was never told")
    faults += [
        f"messages of session {session_id} have no session" for session_id in counts.keys() - record.sessions.keys()
    ]
    return faults
