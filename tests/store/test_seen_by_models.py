"""What a model sees follows from its last summary on: reading less than the whole session changes no byte of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec import structs

from covey.lifecycle import history
from covey.protocol.messages import Message
from covey.store.base import Change, PutMessage, Store
from covey.store.sqlite import SqliteStore
from tests.lifecycle.test_conversation import stored
from tests.support.memory_store import MemoryStore

MAKERS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda directory: SqliteStore(directory / "covey.db"),
    "memory": lambda directory: MemoryStore(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_session_is_seen_the_same_from_its_summary_on_and_as_a_whole(tmp_path: Path, name: str) -> None:
    store, sessions, ids = MAKERS[name](tmp_path), count(), count()

    @given(st.lists(stored(), max_size=12), st.integers(-1, 11))
    @settings(derandomize=True, database=None, deadline=None, max_examples=300)
    def holds(messages: list[Message], place: int) -> None:
        session_id = f"s{next(sessions)}"
        published = [structs.replace(one, id=f"m{next(ids)}", session_id=session_id) for one in messages]
        store.commit([Change("w", tuple(map(PutMessage, published)), durable=False)])
        is_there = 0 <= place < len(published) and not published[place].is_command  # which no summary is
        summary = published[place].id if is_there else ""
        whole = store.messages("w", session_id, "", 0)
        assert whole == published
        since = store.messages_since("w", session_id, summary)
        assert history.for_model(since, summary) == history.for_model(whole, summary)

    holds()
    store.close()
