"""What turns have used, added up by day, workspace and model: a report costs its lines, not the runs behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw

from covey.protocol.runs import Usage
from covey.store.spending import AddSpending, SpendingRow


def add(connection: apsw.Connection, workspace_id: str, write: AddSpending) -> None:
    used = write.usage
    connection.execute(
        "INSERT INTO spending VALUES (?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET runs = runs + 1,"
        " prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
        " completion_tokens = completion_tokens + excluded.completion_tokens,"
        " cached_tokens = cached_tokens + excluded.cached_tokens, cost = cost + excluded.cost",
        (
            write.day,
            workspace_id,
            write.model,
            used.prompt_tokens,
            used.completion_tokens,
            used.cached_tokens,
            used.cost,
        ),
    )


def read(reading: Callable[..., Iterator[tuple[Any, ...]]], since_day: int, limit: int) -> list[SpendingRow]:
    query = (
        "SELECT day, workspace_id, model, runs, prompt_tokens, completion_tokens, cached_tokens, cost FROM spending"
        " WHERE day >= ? ORDER BY day DESC, workspace_id DESC, model DESC LIMIT ?"
    )
    return [
        SpendingRow(
            day,
            workspace_id,
            model,
            runs,
            Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, cost=cost),
        )
        for day, workspace_id, model, runs, prompt, completion, cached, cost in reading(query, since_day, limit)
    ]
