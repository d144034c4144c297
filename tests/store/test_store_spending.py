"""What was spent is added up by day, workspace and model, in every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.protocol.runs import Usage
from covey.store.base import DropSession, PutSession, Store
from covey.store.spending import AddSpending, SpendingRow
from tests.store.test_store_conformance import MAKERS, STORES, change, session


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def used(prompt: int, cost: float = 0.0) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=2, cached_tokens=1, cost=cost)


def test_turns_of_a_day_and_a_model_are_added_up_and_outlive_their_session(store: Store) -> None:
    store.commit([change(PutSession(session("s")), AddSpending(5, "p/m", used(10, 0.25)))])
    store.commit([change(AddSpending(5, "p/m", used(20, 0.5))), change(AddSpending(5, "p/n", used(1)))])
    store.commit([change(AddSpending(6, "p/m", used(7)), workspace="x"), change(DropSession("s"))])
    both = Usage(prompt_tokens=30, completion_tokens=4, cached_tokens=2, cost=0.75)
    assert store.spending(0, 9) == [
        SpendingRow(6, "x", "p/m", 1, used(7)),
        SpendingRow(5, "w", "p/n", 1, used(1)),
        SpendingRow(5, "w", "p/m", 2, both),
    ]
    assert [row.day for row in store.spending(6, 9)] == [6]
    assert [row.day for row in store.spending(0, 1)] == [6], "the newest days, if there are too many"
