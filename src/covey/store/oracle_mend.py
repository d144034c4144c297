"""What a workspace should hold instead: a record that breaks promises → one near it that keeps them. Touches no file.

The log is believed where it is sound, since it is what clients were told; a row is believed where it knows more than
the log. Then every ended run gets its whole turn. If the log still contradicts the rows, it is forgotten: with a new
epoch clients load everything again, and nobody is told a second story.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import structs

from covey.lifecycle import history
from covey.lifecycle.reply import grown
from covey.protocol.events import ConfigChanged
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Role,
    Session,
    Text,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from covey.protocol.runs import RunComplete
from covey.store.oracle import (
    is_ahead,
    is_finished,
    is_impossible,
    is_waiting,
    judge,
    loose_ends,
    open_runs,
    wrong_orders,
)
from covey.store.oracle_record import LAST_NUMBER, LogEvent, Record, fitting
from covey.store.oracle_story import Story, terminal_against_run

INTERRUPTED = "The store was damaged while this run was open."
_WHY = {"cancelled": history.CANCELLED, "interrupted": history.INTERRUPTED}


def mend(record: Record, now: float) -> Record:
    """The record as it should be. `epoch` is another one if the log had to be forgotten."""
    mending = _Mending(record, now)
    mending.believe_log_and_rows()
    mending.find_sessions()
    mending.end_what_cannot_go_on()
    mending.complete_turns()
    return mending.mended()


class _Mending:
    """`found` stays as it is; `draft` becomes what is written. Values in it are replaced, never changed in place."""

    def __init__(self, found: Record, now: float) -> None:
        self._found = found
        self._now = now
        self._story = Story(found)
        self._ended: list[str] = []
        """Runs that were open until now."""
        self._order: dict[str, list[str]] = defaultdict(list)
        """By session: its messages in their order."""
        self._made: set[str] = set()
        unreadable = [flaw for flaw in found.flaws if flaw.kind == "unreadable_event"]
        self._draft = replace(
            found, runs={}, run_columns={}, messages={}, sessions=dict(found.sessions), flaws=unreadable
        )

    # ── the log and the rows ──

    def believe_log_and_rows(self) -> None:
        """Of each run, message and session the value that knows more; if both know as much, the one that was told."""
        found, story, draft = self._found, self._story, self._draft
        for session_id, session in story.sessions.items():
            known = found.sessions.get(session_id, session)
            draft.sessions[session_id] = {**known, "id": session_id, "title": session["title"]}
        for session_id in story.deleted:
            draft.sessions.pop(session_id, None)
        for run_id in {**found.runs, **story.runs}:
            run = _better(found.runs.get(run_id), story.runs.get(run_id))
            if run_id not in story.runs:
                run = {**run, "run_id": run_id}
            draft.runs[run_id] = run
        self._number_runs()
        for message_id in self._in_order():
            message = _better(found.messages.get(message_id), story.messages.get(message_id))
            if message["session_id"] not in story.deleted:
                draft.messages[message_id] = {**message, "id": message_id}

    def _number_runs(self) -> None:
        """No two runs have the same seq; where two claim one, the later gets a new one."""
        runs = self._draft.runs
        last = max((run["seq"] for run in runs.values()), default=0)
        used = set()
        for run_id, run in sorted(runs.items(), key=lambda item: (item[1]["seq"], item[1]["accepted_at"])):
            if run["seq"] in used:
                last += 1
                runs[run_id] = {**run, "seq": last}
            used.add(runs[run_id]["seq"])

    def _in_order(self) -> list[str]:
        """All messages; where their order is in doubt, in the order in which they were told to begin."""
        found, story = self._found, self._story
        missing = [message_id for message_id in story.messages if message_id not in found.messages]
        if not missing and not wrong_orders(found, story):
            return list(found.messages)
        begun = dict.fromkeys(i for i in story.begun if i in found.messages or i in story.messages)
        if story.is_trimmed:  # the others began before the log does
            return [i for i in (*found.messages, *missing) if i not in begun] + list(begun)
        told = iter(begun)
        places = [*found.messages, *missing]
        return [next(told) if message_id in begun else message_id for message_id in places]

    def find_sessions(self) -> None:
        """Whatever has lost its session gets one that says so."""
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
            draft.sessions[session_id] = _plain(_lost_session(session_id, since))

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
        ended_at = run.get("ended_at", self._now)
        self._draft.runs[run_id] = {**run, "state": "interrupted", "error": INTERRUPTED, "ended_at": ended_at}
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
        for run in sorted(draft.runs.values(), key=lambda run: run["seq"]):
            mine = by_run[run["run_id"]]
            if is_waiting(run):
                for message in mine:
                    self._disown(message)
            elif run["session_id"] in draft.sessions and (mine or not self._story.was_dropped(run)):
                turn = self._whole_turn(run, mine)
                if turn != mine:
                    self._place(run, turn)
        draft.messages = {i: draft.messages[i] for order in self._order.values() for i in order}

    def _whole_turn(self, run: Any, mine: list[Any]) -> list[Any]:
        """The messages of a turn, with what is missing; of one that goes on a server will write the end."""
        is_over = "ended_at" in run
        prompts = [message for message in mine if message["role"] == "user"]
        whole = [message for message in mine if message not in prompts[1:]]
        for extra in prompts[1:]:
            self._disown(extra)
        if not prompts:
            text = (TextPart(data=Text(text=run["prompt"])),) if run["prompt"] else ()
            whole.insert(0, self._new(run, "user", text, "prompt"))
        answers = [message["id"] for message in whole if message["role"] == "assistant"]
        if is_over and not answers and not run.get("folded_into"):
            whole.append(self._new(run, "assistant", (), "answer"))
            answers.append(whole[-1]["id"])
        if is_over and answers and not run.get("message_id"):
            self._draft.runs[run["run_id"]] = {**run, "message_id": answers[-1]}
        for index, message in enumerate(whole):
            is_last = message["id"] in answers[-1:]
            if message["id"] in answers and not is_finished(message) and (is_over or not is_last):
                whole[index] = self._finished(run, message, is_last=is_last)
        return self._with_results(run, whole)

    def _finished(self, run: Any, message: Any, *, is_last: bool) -> Any:
        pieces = fitting(message, self._found.tails.get(message["id"], ()))
        whole = grown(_message(message), ((piece.part, piece.kind, piece.text) for piece in pieces))
        reason = _reason(run["state"] if is_last else "", has_calls=bool(whole.tool_calls))
        finish = whole.finish or Finish(reason=reason, time=int(self._now))
        parts = tuple(_closed(part) for part in whole.parts if not isinstance(part, FinishPart))
        return _plain(structs.replace(whole, parts=(*parts, FinishPart(data=finish))))

    def _with_results(self, run: Any, whole: list[Any]) -> list[Any]:
        loose = loose_ends(whole)
        surplus = set(loose.results)
        unanswered = loose.calls if "ended_at" in run else []
        result = []
        for message in whole:
            parts = [part for n, part in enumerate(message["parts"]) if (message["id"], n) not in surplus]
            if len(parts) == len(message["parts"]):
                result.append(message)
            elif parts:
                result.append({**message, "parts": parts})
            else:
                self._disown(message)
            for message_id, number in unanswered:
                part = _message(message).parts[number] if message_id == message["id"] else None
                if isinstance(part, ToolCallPart):
                    closing = history.closing_result(part.data, _WHY.get(run["state"], history.FAILED))
                    result.append(self._new(run, "tool", (ToolResultPart(data=closing),), "result"))
        return result

    def _disown(self, message: Any) -> None:
        """Keep it in the conversation, but not as part of its run."""
        self._draft.messages[message["id"]] = {key: value for key, value in message.items() if key != "run_id"}

    def _new(self, run: Any, role: Role, parts: tuple[Part, ...], name: str) -> Any:
        """A message with an id that no other has: ids of messages are unique in a store, those of runs are not."""
        message_id = base = f"{self._found.workspace_id}-{run['run_id']}-{name}"
        number = 1
        while message_id in self._draft.messages or message_id in self._made:
            number += 1
            message_id = f"{base}-{number}"
        self._made.add(message_id)
        message = Message(
            id=message_id,
            role=role,
            session_id=run["session_id"],
            parts=parts,
            model="",
            provider="",
            created_at=int(self._now),
            updated_at=int(self._now),
            run_id=run["run_id"],
        )
        return _plain(message)

    def _place(self, run: Any, turn: list[Any]) -> None:
        """Put the messages of a turn back: known ones where they stood, new ones right behind the one before them."""
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

    def mended(self) -> Record:
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
        last = max([0, *(event.seq for event in found.events), *(int(flaw.key) for flaw in draft.flaws)])
        draft.events = found.events + _numbered(last_words, last + 1)
        if judge(draft):
            draft.epoch = found.epoch + 1
            draft.flaws = []
            # A log that begins at 1 claims to tell everything; this one knows that it does not.
            draft.events = _numbered(
                [self._forgotten(), *last_words], max(2, last + 1) if last + 1 < LAST_NUMBER else 2
            )
        return draft

    def _forgotten(self) -> LogEvent:
        """What a new epoch begins with: the log is never empty, since the next number is counted from its last."""
        return LogEvent(0, "config_changed", "updated", _plain(ConfigChanged(workspace_id=self._found.workspace_id)))

    def _last_words(self) -> list[LogEvent]:
        """Of each run that was ended now, or whose end was never told: what says so. Folded runs follow their host."""
        draft, story = self._draft, self._story
        untold = {i for i in story.mentioned if "ended_at" in draft.runs.get(i, ())} | set(self._ended)
        untold -= story.terminals.keys()
        events: list[LogEvent] = []
        for run_id, host in sorted(draft.runs.items(), key=lambda item: item[1]["seq"]):
            if run_id in untold and not host.get("folded_into"):
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
            text=run.get("text") if host["state"] == "completed" else None,
            error=run.get("error"),
            cancelled=host["state"] == "cancelled",
            interrupted=host["state"] == "interrupted",
            folded_into=run.get("folded_into"),
        )
        told = LogEvent(0, "run_complete", "created", _plain(terminal))
        if terminal_against_run(told.payload, run, host):
            return []
        return [LogEvent(0, "run", "updated", run), told] if run_id in self._ended else [told]


def _better(row: Any, told: Any) -> Any:
    if row is None or told is None:
        return row or told
    return row if is_ahead(row, told) else told


def _reason(state: str, *, has_calls: bool) -> FinishReason:
    if state == "cancelled":
        return "canceled"
    if state in ("failed", "interrupted"):
        return "error"
    return "tool_use" if has_calls else "unknown"


def _closed(part: Part) -> Part:
    return ToolCallPart(data=structs.replace(part.data, finished=True)) if isinstance(part, ToolCallPart) else part


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


def _message(value: Any) -> Message:
    return msgspec.convert(value, Message)


def _plain(value: msgspec.Struct) -> Any:
    """As it comes back from the store."""
    return msgspec.json.decode(msgspec.json.encode(value))
