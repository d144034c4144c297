"""What an event log records, and every promise that it breaks. Judges the log alone, not the rows.

A log that does not begin with event 1 was trimmed: for what came before, only the rows are left.
"""

from __future__ import annotations

from typing import Any

from covey.doctor.oracle_findings import Finding
from covey.doctor.oracle_record import LogEvent, Record

OUTCOMES = ("completed", "failed", "cancelled", "interrupted")
SAME_IN_TERMINAL = ("session_id", "message_id", "error", "folded_into")
"""Fields that a run and its terminal event share: absent in both, or equal."""
_OF_A_RUN = ("agent_event", "permission_request", "permission_notification")


class Story:
    """The fold of one workspace's log."""

    def __init__(self, record: Record) -> None:
        self.findings: list[Finding] = []
        self.runs: dict[str, Any] = {}
        """By run: what was logged of it last."""
        self.announced: set[str] = set()
        """Runs whose first event is in the log, and so must all the others be."""
        self.mentioned: set[str] = set()
        """Runs of which any event is in the log: if one has ended, its end comes later."""
        self.states: dict[str, list[str]] = {}
        """By run: the states it went through, in order."""
        self.terminals: dict[str, Any] = {}
        self.messages: dict[str, Any] = {}
        self.begun: list[str] = []
        """Messages in the order in which they began."""
        self.removed: set[str] = set()
        """Messages that were taken back with their turn."""
        self.undone: set[str] = set(record.undone)
        """Runs whose turns were taken back, as the rows or the log know."""
        self.sessions: dict[str, Any] = {}
        self.deleted: set[str] = set()
        self.is_trimmed = not record.events or record.events[0].seq != 1
        self._record = record
        self._first_accepted = float("inf")
        self._last_accepted = 0
        self._last_seq = 0
        self._turn: dict[str, str] = {}
        """By session: the run whose turn is open in the log."""
        self._started: dict[str, int] = {}
        """By session: the seq of the run that became active last."""
        self._queues: dict[str, dict[str, int]] = {}
        """By session: the runs that wait in its queue and are not parked, and their places."""
        self._reordered: set[str] = set()
        """Sessions in which somebody has moved, parked or interrupted a run: there the seqs are not the order."""
        self._last_host: str | None = None
        """The run whose terminal event was the last one; those folded into it must follow at once (R8)."""
        for event in record.events:
            self._take(event)

    def should_know(self, run: Any) -> bool:
        """Whether the log, as far back as it goes, has to mention this run."""
        return not self.is_trimmed or run["seq"] > self._first_accepted

    def was_dropped(self, run: Any) -> bool:
        """It ended while it waited in the queue. For an older one the row shows it: it has no answer."""
        if run["run_id"] in self.announced:
            return self.states[run["run_id"]][-2:] == ["queued", "cancelled"]
        return run["state"] == "cancelled" and not run.get("message_id")

    def _take(self, event: LogEvent) -> None:
        if self._last_seq and event.seq != self._last_seq + 1:
            self._find("lost_history", event, f"it follows {self._last_seq}: the log has a gap")
        self._last_seq = event.seq
        if event.type == "message" and event.change == "deleted":
            self._take_back(event)
            return
        if run_id := event.payload.get("run_id"):
            self._check_owner(event, run_id)
        elif event.type in _OF_A_RUN:
            self._find("wrong_owner", event, "it names no run")
        match event.type:
            case "run":
                self._take_run(event)
            case "run_complete":
                self._take_terminal(event)
            case "message":
                self._take_message(event)
            case "session":
                self._take_session(event)
        if event.type not in ("run", "run_complete"):
            self._last_host = ""

    def _known(self, run_id: str) -> Any:
        """The run as it was logged, or as the row has it if that was before the log begins."""
        return self.runs.get(run_id) or (self._record.runs.get(run_id) if self.is_trimmed else None)

    def _check_owner(self, event: LogEvent, run_id: str) -> None:
        self.mentioned.add(run_id)
        if run_id in self.terminals:
            kind = "two_terminals" if event.type == "run_complete" else "after_terminal"
            self._find(kind, event, f"run {run_id} has ended already")
        known = self._known(run_id)
        if known is None:
            if event.type != "run" or not (self.is_trimmed or event.change == "created"):
                self._find("wrong_order", event, f"run {run_id} was never announced")
        elif event.payload.get("session_id") != known["session_id"]:
            named = event.payload.get("session_id")
            self._find("wrong_owner", event, f"it names session {named}, but run {run_id} is in {known['session_id']}")

    def _take_run(self, event: LogEvent) -> None:
        run = event.payload
        run_id, session_id, state = run["run_id"], run["session_id"], run["state"]
        if event.change == "created":
            if run_id in self.runs or state != "accepted":
                self._find("wrong_order", event, f"run {run_id} is announced twice, or not as accepted")
            if run["seq"] <= self._last_accepted:
                self._find("wrong_order", event, f"seq {run['seq']} was given out after {self._last_accepted}")
            self._last_accepted = run["seq"]
            self._first_accepted = min(self._first_accepted, run["seq"])
            self.announced.add(run_id)
        states = self.states.setdefault(run_id, [])
        if not states or states[-1] != state:
            states.append(state)
            if state == "active":
                self._begin_turn(event, session_id, run_id)
                self._check_place(event, run)
        self._take_place(run)
        self.runs[run_id] = run

    def _take_place(self, run: Any) -> None:
        queue = self._queues.setdefault(run["session_id"], {})
        place = run.get("place") or run["seq"]
        if run["state"] == "queued" and not run.get("parked_by"):
            queue[run["run_id"]] = place
        else:
            queue.pop(run["run_id"], None)
        if run.get("parked_by") or place != run["seq"]:
            self._reordered.add(run["session_id"])

    def _check_place(self, event: LogEvent, run: Any) -> None:
        """A run starts in the order of the queue (R7), which is that of the seqs unless somebody changed it."""
        run_id, session_id, before = run["run_id"], run["session_id"], self._started.get(run["session_id"], 0)
        queue = self._queues.get(session_id, {})
        place = queue.get(run_id, run["seq"])
        if passed_over := [other for other, its_place in queue.items() if its_place < place]:
            self._find("wrong_order", event, f"run {run_id} starts before {passed_over[0]}, which stands before it")
        elif run["seq"] <= before and session_id not in self._reordered:
            self._find("wrong_order", event, f"run {run_id} starts after the run with seq {before}")
        self._started[session_id] = run["seq"]

    def _begin_turn(self, event: LogEvent, session_id: str, run_id: str) -> None:
        other = self._turn.get(session_id, "")
        if other not in ("", run_id):
            self._find("two_turns", event, f"the turn of run {run_id} goes on while that of {other} has not ended")
        self._turn[session_id] = run_id

    def _take_terminal(self, event: LogEvent) -> None:
        terminal = event.payload
        run_id = terminal["run_id"]
        run = self._known(run_id)
        self.terminals[run_id] = terminal
        if run is None:
            return
        if "ended_at" not in run:
            self._find("wrong_order", event, f"run {run_id} has its terminal event before its row says that it ended")
        host = terminal.get("folded_into")
        if host and self._last_host not in (host, None):
            self._find("wrong_order", event, f"the end of run {run_id} does not follow right after that of {host}")
        self._last_host = host or run_id
        if self._turn.get(run["session_id"]) == run_id:
            self._turn[run["session_id"]] = ""
        for wrong in terminal_against_run(terminal, run, self._known(host or run_id) or {}):
            self._find("wrong_terminal", event, wrong)

    def _take_message(self, event: LogEvent) -> None:
        message = event.payload
        self.messages[message["id"]] = message
        if event.change == "created":
            self.begun.append(message["id"])
        if run_id := message.get("run_id"):
            turn = (self._known(run_id) or {}).get("folded_into") or run_id
            self._begin_turn(event, message["session_id"], turn)

    def _take_back(self, event: LogEvent) -> None:
        """A message was undone: may be published after the end of its run, since it is not part of its life."""
        message_id, run_id = event.payload["id"], event.payload.get("run_id")
        self.messages.pop(message_id, None)
        self.removed.add(message_id)
        if run_id:
            self.undone.add(run_id)
            if "ended_at" not in (self._known(run_id) or {"ended_at": 0}):
                self._find("wrong_order", event, f"run {run_id} is undone before it has ended")
        self._last_host = ""

    def _take_session(self, event: LogEvent) -> None:
        session = event.payload
        if event.change == "deleted":
            self.deleted.add(session["id"])
            self.sessions.pop(session["id"], None)
            self.messages = {i: m for i, m in self.messages.items() if m["session_id"] != session["id"]}
        else:
            self.sessions[session["id"]] = session

    def _find(self, kind: str, event: LogEvent, text: str) -> None:
        what = f"event {event.seq} ({event.type}): {text}"
        self.findings.append(Finding(kind, what, self._record.workspace_id, str(event.seq)))


def terminal_against_run(terminal: Any, run: Any, host: Any) -> list[str]:
    """Status and stream must report the same end. A folded run ends as its host did (R8)."""
    run_id, state = run["run_id"], host.get("state")
    wrong = []
    expected = {
        "cancelled": state == "cancelled",
        "interrupted": state == "interrupted",
        "error": state in ("failed", "interrupted"),
    }
    for name, wanted in expected.items():
        if bool(terminal.get(name)) != wanted:
            wrong.append(f"run {run_id} ended as {state}, but its terminal event has {name}={terminal.get(name)}")
    if state == "cancelled" and not host.get("cancelled_by"):
        wrong.append(f"run {run_id} was cancelled, and nobody knows by what")
    logged = terminal.get("text")
    if logged != run.get("text") and (state == "completed" or logged is not None):
        # Of a run that did not complete, older servers did not record the text.
        wrong.append(f"run {run_id} and its terminal event have different texts")
    if state not in OUTCOMES:
        wrong.append(f"run {run_id} has a terminal event, but is {state}")
    for name in SAME_IN_TERMINAL:
        if (terminal.get(name) or None) != (run.get(name) or None):
            wrong.append(f"run {run_id} and its terminal event differ in {name}")
    return wrong
