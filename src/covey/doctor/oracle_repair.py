"""What a workspace should hold instead: a record that breaks promises → one near it that keeps them. Touches no file.

The log is believed where it is sound, since it is what clients have seen; a row is believed where it knows more than
the log. Then every ended run gets its whole turn. If the log still contradicts the rows, it is forgotten: with a new
epoch clients load everything again, and nobody gets two versions of the past.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

from covey.doctor.oracle import (
    is_ahead,
    is_finished,
    is_foreign,
    is_impossible,
    is_waiting,
    judge,
    open_runs,
    wrong_orders,
)
from covey.doctor.oracle_record import LAST_NUMBER, LogEvent, Record, fitting
from covey.doctor.oracle_story import Story, terminal_against_run
from covey.doctor.oracle_turns import Turns, Whole, plain, without_run
from covey.protocol.events import ConfigChanged
from covey.protocol.messages import Session
from covey.protocol.runs import RunComplete

INTERRUPTED = "The store was damaged while this run was open."


def repaired_record(record: Record, now: float) -> Record:
    """The record as it should be. `epoch` is another one if the log had to be forgotten."""
    correction = _Correction(_refiled(record), now)
    correction.believe_log_and_rows()
    correction.find_sessions()
    correction.end_what_cannot_go_on()
    correction.complete_turns()
    return correction.record()


class _Correction:
    """`found` stays as it is; `draft` becomes what is written. Values in it are replaced, never changed in place."""

    def __init__(self, found: Record, now: float) -> None:
        self._found = found
        self._now = now
        self._story = Story(found)
        self._ended: list[str] = []
        """Runs that were open until now."""
        self._order: dict[str, list[str]] = defaultdict(list)
        """By session: its messages in their order."""
        unreadable = [flaw for flaw in found.flaws if flaw.kind == "unreadable_event"]
        self._draft = replace(
            found,
            runs={},
            run_columns={},
            messages={},
            sessions=dict(found.sessions),
            undone=set(self._story.undone),
            flaws=unreadable,
        )

    # ── the log and the rows ──

    def believe_log_and_rows(self) -> None:
        """Of each run, message and session the value that knows more; if both know as much, the logged one."""
        found, story, draft = self._found, self._story, self._draft
        for session_id, session in story.sessions.items():
            known = found.sessions.get(session_id, session)
            draft.sessions[session_id] = {**known, "title": session["title"]}
        for session_id in story.deleted:
            draft.sessions.pop(session_id, None)
        for run_id in {**found.runs, **story.runs}:
            run = _better(found.runs.get(run_id), story.runs.get(run_id))
            if run_id not in story.runs and 0 < (seq := found.run_columns[run_id][0]) < LAST_NUMBER:
                run = {**run, "seq": seq}  # what the index has kept unique
            draft.runs[run_id] = run
        self._number_runs()
        for message_id in self._in_order():
            message = _better(found.messages.get(message_id), story.messages.get(message_id))
            if message["session_id"] not in story.deleted and message_id not in story.removed:
                draft.messages[message_id] = without_run(message) if is_foreign(message, draft.runs) else message

    def _number_runs(self) -> None:
        """No two runs have the same seq; where two claim one, the run that has it in the log keeps it."""
        runs, logged = self._draft.runs, self._story.runs
        last = max((run["seq"] for run in runs.values()), default=0)
        used = set()
        for run_id, run in sorted(runs.items(), key=lambda item: (item[1]["seq"], item[0] not in logged, item[0])):
            if run["seq"] in used:
                last += 1
                runs[run_id] = {**run, "seq": last}
            used.add(runs[run_id]["seq"])

    def _in_order(self) -> list[str]:
        """All messages; where their order is in doubt, in the order in which they begin in the log."""
        found, story = self._found, self._story
        missing = [message_id for message_id in story.messages if message_id not in found.messages]
        if not missing and not wrong_orders(found, story):
            return list(found.messages)
        begun = dict.fromkeys(i for i in story.begun if i in found.messages or i in story.messages)
        if story.is_trimmed:  # the others began before the log does
            return [i for i in (*found.messages, *missing) if i not in begun] + list(begun)
        logged = iter(begun)
        places = [*found.messages, *missing]
        return [next(logged) if message_id in begun else message_id for message_id in places]

    def find_sessions(self) -> None:
        """Whatever has lost its session gets a new one, with a title that says so."""
        draft = self._draft
        homeless = [message for message in draft.messages.values() if message["session_id"] not in draft.sessions]
        wanted = {message["session_id"]: message["created_at"] for message in reversed(homeless)}
        for run in open_runs(draft):
            if run["session_id"] not in draft.sessions and run["session_id"] not in self._story.deleted:
                wanted.setdefault(run["session_id"], int(run["accepted_at"]))
        unreadable = {flaw.key for flaw in self._found.flaws if flaw[:2] == ("unreadable_row", "sessions")}
        for session_id in unreadable - draft.sessions.keys() - self._story.deleted:
            wanted.setdefault(session_id, int(self._now))
        for session_id, since in wanted.items():
            draft.sessions[session_id] = plain(_lost_session(session_id, max(0, min(since, int(self._now)))))

    # ── runs ──

    def end_what_cannot_go_on(self) -> None:
        """A server could not take these up. Each is ended with those that were folded into its turn."""
        draft = self._draft
        active = Counter(run["session_id"] for run in open_runs(draft) if run["state"] == "active")
        for run_id, run in draft.runs.items():
            is_rival = run["state"] == "active" and "ended_at" not in run and active[run["session_id"]] > 1
            is_homeless = "ended_at" not in run and run["session_id"] not in draft.sessions
            if run["state"] != "folded" and (is_rival or is_homeless or is_impossible(run, draft.runs)):
                self._interrupt(run_id)
        for run_id, run in draft.runs.items():
            if run["state"] == "folded" and is_impossible(run, draft.runs):
                self._end_folded(run_id)

    def _interrupt(self, run_id: str) -> None:
        run = self._draft.runs[run_id]
        end = {"state": "interrupted", "error": INTERRUPTED}
        if "cancelled_by" in run:  # then that is how it would have ended
            end = {"state": "cancelled"}
        self._draft.runs[run_id] = {**run, **end, "ended_at": run.get("ended_at", self._now)}
        self._ended.append(run_id)

    def _end_folded(self, run_id: str) -> None:
        run = self._draft.runs[run_id]
        host = self._draft.runs.get(run.get("folded_into", ""))
        if host is None:  # it has nothing to end with: it becomes a turn of its own
            self._draft.runs[run_id] = {key: value for key, value in run.items() if key != "folded_into"}
            self._interrupt(run_id)
            return
        shared = {name: host[name] for name in ("text", "error") if name in host}
        self._draft.runs[run_id] = {**run, **shared, "ended_at": self._now}
        self._ended.append(run_id)

    def complete_turns(self) -> None:
        """Every turn has its prompt and, once it has ended, finished answers and a result for each tool call (R6)."""
        draft = self._draft
        by_run: dict[str, list[Any]] = defaultdict(list)
        for message_id, message in draft.messages.items():
            by_run[message.get("run_id", "")].append(message)
            self._order[message["session_id"]].append(message_id)
        turns = Turns(self._found, self._now)
        for run in sorted(draft.runs.values(), key=lambda run: run["seq"]):
            mine = by_run[run["run_id"]]
            whole = Whole(mine, [])
            if is_waiting(run):
                whole = Whole([], [without_run(message) for message in mine])
            elif run["session_id"] in draft.sessions and (mine or not self._left_nothing(run)):
                whole = turns.whole(run, mine)
                self._note_answer(run, whole.messages)
            draft.messages.update((message["id"], message) for message in whole.disowned)
            if whole.messages != mine:
                self._place(run, whole.messages)
        draft.messages = {i: draft.messages[i] for order in self._order.values() for i in order}

    def _left_nothing(self, run: Any) -> bool:
        """It may have no messages: it never began, or was undone."""
        return run["run_id"] in self._story.undone or self._story.was_dropped(run)

    def _note_answer(self, run: Any, turn: list[Any]) -> None:
        answers = [message["id"] for message in turn if message["role"] == "assistant"]
        if "ended_at" in run and answers and not run.get("message_id"):
            self._draft.runs[run["run_id"]] = {**run, "message_id": answers[-1]}

    def _place(self, run: Any, turn: list[Any]) -> None:
        """Put the messages of a turn back: known ones where they stood, new ones right after the one before them."""
        known, order = self._draft.messages, self._order[run["session_id"]]
        first = next((message["id"] for message in turn if message["id"] in known), None)
        older = [place for place, message_id in enumerate(order, 1) if self._is_older(known[message_id], run)]
        place = order.index(first) if first is not None else max(older, default=0)
        for message in turn:
            if message["id"] in known:
                place = order.index(message["id"])
            else:
                order.insert(place, message["id"])
            known[message["id"]] = message
            place += 1

    def _is_older(self, message: Any, run: Any) -> bool:
        other = self._draft.runs.get(message.get("run_id", ""))
        return other is not None and other["seq"] < run["seq"]

    # ── the end ──

    def record(self) -> Record:
        found, draft = self._found, self._draft
        counts = Counter(message["session_id"] for message in draft.messages.values())
        for session_id, session in draft.sessions.items():
            if session["message_count"] != counts[session_id]:
                draft.sessions[session_id] = {**session, "message_count": counts[session_id]}
        growing = {i: draft.messages[i] for i in found.tails if i in draft.messages}
        fit = {i: fitting(message, found.tails[i]) for i, message in growing.items() if not is_finished(message)}
        draft.tails = {message_id: pieces for message_id, pieces in fit.items() if pieces}
        draft.growing = set(draft.tails)
        last_words = self._last_words()
        draft.run_columns = {i: (run["seq"], run["state"], "ended_at" in run) for i, run in draft.runs.items()}
        last = found.events[-1].seq if found.events else 0
        draft.events = found.events + _numbered(last_words, last + 1)
        if judge(draft):
            draft.epoch = max(found.epoch + 1, int(self._now))
            draft.flaws = []
            # A log that begins at 1 claims to be complete, which this one is not.
            draft.events = _numbered([self._forgotten(), *last_words], 2)
        return draft

    def _forgotten(self) -> LogEvent:
        """What a new epoch begins with: the log is never empty, since the next number is counted from its last."""
        return LogEvent(0, "config_changed", "updated", plain(ConfigChanged(workspace_id=self._found.workspace_id)))

    def _last_words(self) -> list[LogEvent]:
        """Events for each run that was ended now, or whose end was never published. Folded runs follow their host."""
        draft, story = self._draft, self._story
        unpublished = {i for i in story.mentioned if "ended_at" in draft.runs.get(i, ())} | set(self._ended)
        unpublished -= story.terminals.keys()
        events: list[LogEvent] = []
        for run_id, host in sorted(draft.runs.items(), key=lambda item: item[1]["seq"]):
            if run_id in unpublished and not host.get("folded_into"):
                events += self._end(run_id, host)
                for folded in self._ended:
                    if draft.runs[folded].get("folded_into") == run_id:
                        draft.runs[folded] = {**draft.runs[folded], "message_id": host.get("message_id", "")}
                        events += self._end(folded, host)
        return events

    def _end(self, run_id: str, host: Any) -> list[LogEvent]:
        run = self._draft.runs[run_id]
        terminal = RunComplete(
            session_id=run["session_id"],
            run_id=run_id,
            message_id=run.get("message_id", ""),
            text=run.get("text"),
            error=run.get("error"),
            cancelled=host["state"] == "cancelled",
            interrupted=host["state"] == "interrupted",
            folded_into=run.get("folded_into"),
            output=run.get("output"),
        )
        logged = LogEvent(0, "run_complete", "created", plain(terminal))
        if terminal_against_run(logged.payload, run, host):
            return []
        return [LogEvent(0, "run", "updated", run), logged] if run_id in self._ended else [logged]


def _refiled(record: Record) -> Record:
    """With every row under the id that it gives itself, unless another row has that already."""
    runs = _under_own_ids(record.runs, "run_id")
    columns = {new: record.run_columns[old] for old, new in zip(record.run_columns, runs, strict=True)}
    messages, sessions = _under_own_ids(record.messages, "id"), _under_own_ids(record.sessions, "id")
    return replace(record, runs=runs, run_columns=columns, messages=messages, sessions=sessions)


def _under_own_ids(values: dict[str, Any], name: str) -> dict[str, Any]:
    refiled: dict[str, Any] = {}
    for key, value in values.items():
        own = value[name] if value[name] not in values and value[name] not in refiled else key
        refiled[own] = value if value[name] == own else {**value, name: own}
    return refiled


def _better(row: Any, logged: Any) -> Any:
    if row is None or logged is None:
        return row or logged
    return row if is_ahead(row, logged) else logged


def _lost_session(session_id: str, since: int) -> Session:
    return Session(
        id=session_id,
        parent_session_id="",
        title="Recovered session",
        message_count=0,
        prompt_tokens=0,
        completion_tokens=0,
        summary_message_id="",
        cost=0.0,
        created_at=since,
        updated_at=since,
        is_busy=False,
        attached_clients=0,
    )


def _numbered(events: list[LogEvent], first: int) -> list[LogEvent]:
    return [replace(event, seq=seq) for seq, event in enumerate(events, first)]
