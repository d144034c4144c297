"""A journal on a disk with moods. A module that needs other moods brings a `disk` of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from covey.store import journal as journal_module
from covey.store.journal import Journal, WorkspaceJournal
from tests.store.publishing import Published
from tests.support.disk import BOUND_S, Disk


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(journal_module, "RETRY_S", 0.01)
    return Disk()


@pytest.fixture
async def journal(disk: Disk) -> AsyncIterator[Journal]:
    made = Journal(disk)
    yield made
    if not disk.closed:
        disk.full = False
        disk.release()
        await made.aclose(BOUND_S)


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
async def book(journal: Journal, published: Published) -> WorkspaceJournal:
    return journal.for_workspace("w", published, keep_events=1000)
