"""The oracle itself: it is content with a good store, and finds each kind of damage that is done to one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.oracle import LogEvent, Record, judge, read
from tests.support.server import provider_config, running


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A store with a run that used a tool, one that was queued and dropped, one that failed, and one after it."""
    directory: Path = tmp_path_factory.mktemp("oracle")
    look = Reply(text="", tools=(Call(name="view", input={"file_path": "x"}),), gates={0: "go"})
    with FakeModel() as model, running(directory, provider_config(model.url)) as server:
        failing = Reply(status=400, body="{}")
        model.on(
            lambda r: failing if r.prompt == "bad" else look if r.call_number == 0 and len(r.prompt) < 3 else Reply()
        )
        workspace = server.workspace()
        session = workspace.session()
        for run_id, prompt in (("r1", "hi"), ("r2", "dropped"), ("r3", "bad"), ("r4", "fine")):
            workspace.prompt(session, prompt, run_id=run_id)
        workspace.cancel_run("r2")
        model.release("go")
        workspace.ended("r4")
    (record,) = read(server.data_dir)
    return record


def events(record: Record, kind: str, run_id: str) -> list[LogEvent]:
    return [e for e in record.events if e.type == kind and e.payload.get("run_id") == run_id]


def renumber(record: Record) -> None:
    record.events = [LogEvent(n, e.type, e.change, e.payload) for n, e in enumerate(record.events, 1)]


def repeat_terminal(record: Record) -> None:
    record.events += events(record, "run_complete", "r1")
    renumber(record)


def lose_terminal(record: Record) -> None:
    record.events.remove(events(record, "run_complete", "r1")[0])
    renumber(record)


def lose_event(record: Record) -> None:
    del record.events[5]


def late_message(record: Record) -> None:
    record.events.append(events(record, "message", "r1")[-1])
    renumber(record)


def overlap(record: Record) -> None:
    """The next turn begins before the last one has ended."""
    first, second = events(record, "run_complete", "r3")[0], events(record, "message", "r4")[0]
    record.events.remove(second)
    record.events.insert(record.events.index(first), second)
    renumber(record)


def swap_seq(record: Record) -> None:
    for event in record.events:
        if event.type == "run" and event.payload["run_id"] == "r4":
            event.payload["seq"] = 0


def lose_result(record: Record) -> None:
    tool = next(i for i, m in record.messages.items() if m["role"] == "tool")
    del record.messages[tool]
    record.events = [e for e in record.events if e.payload.get("id") != tool]
    renumber(record)


def unfinish(record: Record) -> None:
    for message in (*record.messages.values(), *(e.payload for e in record.events if e.type == "message")):
        if message.get("run_id") == "r4" and message["role"] == "assistant":
            message["parts"] = [part for part in message["parts"] if part["type"] != "finish"]


def nobody_cancelled(record: Record) -> None:
    for run in (record.runs["r2"], *(e.payload for e in events(record, "run", "r2"))):
        run.pop("cancelled_by", None)


def reopen(record: Record) -> None:
    run = record.runs["r4"]
    del run["ended_at"]
    record.run_columns["r4"] = (run["seq"], run["state"], False)


def other_text(record: Record) -> None:
    events(record, "run_complete", "r4")[0].payload["text"] = "something else"


def success_instead(record: Record) -> None:
    del events(record, "run_complete", "r3")[0].payload["error"]


def wrong_session(record: Record) -> None:
    events(record, "agent_event", "r3")[0].payload["session_id"] = "another"


def anonymous(record: Record) -> None:
    events(record, "agent_event", "r3")[0].payload["run_id"] = ""


def changed_row(record: Record) -> None:
    next(iter(record.messages.values()))["created_at"] += 1


def lost_row(record: Record) -> None:
    del record.runs["r2"]


def miscount(record: Record) -> None:
    next(iter(record.sessions.values()))["message_count"] += 1


def left_over(record: Record) -> None:
    record.growing.add(next(i for i, m in record.messages.items() if m["role"] == "assistant"))


def dropped_but_told(record: Record) -> None:
    stray: dict[str, Any] = copy.deepcopy(events(record, "message", "r1")[0].payload)
    stray.update(id="stray", run_id="r2")
    record.messages["stray"] = stray
    record.events.insert(
        record.events.index(events(record, "run_complete", "r2")[0]), LogEvent(0, "message", "created", stray)
    )
    renumber(record)


DAMAGE = [
    repeat_terminal, lose_terminal, lose_event, late_message, overlap, swap_seq, lose_result, unfinish,
    nobody_cancelled, reopen, other_text, success_instead, wrong_session, anonymous, changed_row, lost_row, miscount,
    left_over, dropped_but_told,
]  # fmt: skip


def test_r8_the_oracle_is_content_with_a_good_store(good: Record) -> None:
    assert judge(good, all_ended=True) == []
    assert {run["state"] for run in good.runs.values()} == {"completed", "cancelled", "failed"}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_r8_the_oracle_finds(good: Record, damage: Callable[[Record], None]) -> None:
    record = copy.deepcopy(good)
    damage(record)
    assert judge(record, all_ended=False)


def test_r8_the_oracle_finds_a_run_that_was_left_open(good: Record) -> None:
    record = copy.deepcopy(good)
    record.events = [e for e in record.events if e.payload.get("run_id") != "r4"]
    record.messages = {i: m for i, m in record.messages.items() if m["run_id"] != "r4"}
    created = events(good, "run", "r4")[0]
    record.events.append(created)
    renumber(record)
    record.runs["r4"] = created.payload
    record.run_columns["r4"] = (created.payload["seq"], "accepted", False)
    next(iter(record.sessions.values()))["message_count"] = len(record.messages)
    assert judge(record, all_ended=False) == []
    assert judge(record, all_ended=True) == [f"{record.workspace_id}: run r4 is still open"]
