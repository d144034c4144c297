"""A store in the hands of somebody who knows SQL and none of the promises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw


class Database:
    """A store that somebody meddles with."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def do(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)

    def get(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).get

    def value(self, table: str, where: str) -> Any:
        column = "encoded" if table == "events" else "value"
        return json.loads(self.get(f"SELECT {column} FROM {table} WHERE {where} LIMIT 1"))

    def edit(self, table: str, where: str, **fields: Any) -> None:
        """Change fields of a value, and none of its columns; None takes a field out."""
        value = self.value(table, where)
        target = value["payload"]["payload"] if table == "events" else value
        target.update(fields)
        for name in [name for name, new in fields.items() if new is None]:
            del target[name]
        column = "encoded" if table == "events" else "value"
        self.do(f"UPDATE {table} SET {column} = ? WHERE {where}", json.dumps(value).encode())

    def event(self, kind: str, run_id: str, *, first: bool = False) -> int:
        """The number of the run's last event of this type, or of its first."""
        query = f"SELECT {'min' if first else 'max'}(seq) FROM events WHERE CAST(encoded AS TEXT) LIKE ?"
        found = self.get(f"{query} AND CAST(encoded AS TEXT) LIKE ?", f'%"type":"{kind}"%', f'%"run_id":"{run_id}"%')
        assert found is not None, f"no {kind} of {run_id}"
        return int(found)

    def tell(self, source: int, seq: int = 0) -> None:
        """Tell an event once more: as this one, with those behind it moved down, or at the end."""
        encoded = self.get("SELECT encoded FROM events WHERE seq = ?", source)
        seq = seq or self.get("SELECT max(seq) + 1 FROM events")
        self.do("UPDATE events SET seq = -seq WHERE seq >= ?", seq)
        self.do("UPDATE events SET seq = 1 - seq WHERE seq < 0")
        self.do("INSERT INTO events SELECT workspace_id, ?, session_id, ? FROM events LIMIT 1", seq, encoded)

    def forget(self, seq: int) -> None:
        """Take an event out as if it had never been: those behind it move up."""
        self.do("DELETE FROM events WHERE seq = ?", seq)
        self.do("UPDATE events SET seq = -seq WHERE seq > ?", seq)
        self.do("UPDATE events SET seq = -seq - 1 WHERE seq < 0")

    def message(self, run_id: str, role: str) -> str:
        query = "SELECT id FROM messages WHERE run_id = ? AND role = ? ORDER BY position LIMIT 1"
        return str(self.get(query, run_id, role))

    def add_message(self, like: str, **fields: Any) -> None:
        value = self.value("messages", f"id = '{like}'") | fields
        columns = (value["id"], "w", value["session_id"], value["run_id"], value["role"], json.dumps(value).encode())
        names = "id, workspace_id, session_id, run_id, role, value"
        self.do(f"INSERT INTO messages ({names}) VALUES (?, ?, ?, ?, ?, ?)", *columns)

    def reopen(self, run_id: str, state: str) -> None:
        self.edit("runs", f"run_id = '{run_id}'", state=state, ended_at=None)
        self.do("UPDATE runs SET state = ?, ended = 0 WHERE run_id = ?", state, run_id)

    def session(self, run_id: str) -> str:
        return str(self.get("SELECT session_id FROM runs WHERE run_id = ?", run_id))

    def trim(self) -> None:
        """Only the newest event is kept: whatever is wrong now, the log cannot tell."""
        self.do("DELETE FROM events WHERE seq < (SELECT max(seq) FROM events)")


@contextmanager
def meddling(data_dir: Path) -> Iterator[Database]:
    with closing(apsw.Connection(str(data_dir / "covey.db"))) as connection, connection:
        yield Database(connection)
