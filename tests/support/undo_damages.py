"""Further ways to damage a store, in what undo and fork have left in it. They are added to those of `damages`."""

from __future__ import annotations

import json

from tests.support.damages import DAMAGES, by_sql, damage
from tests.support.meddling import Database

__all__ = ["DAMAGES"]


@damage("row_differs", "although it was undone")
def an_undone_message_that_came_back(db: Database) -> None:
    value = json.loads(db.get("SELECT encoded FROM events WHERE seq = ?", db.event("message", "r-undone")))
    message = value["payload"]["payload"]
    columns = (message["id"], "w", message["session_id"], message["run_id"], message["role"])
    names = "id, workspace_id, session_id, run_id, role, value"
    db.do(f"INSERT INTO messages ({names}) VALUES (?, ?, ?, ?, ?, ?)", *columns, json.dumps(message).encode())
    where = f"id = '{message['session_id']}'"
    db.edit("sessions", where, message_count=db.value("sessions", where)["message_count"] + 1)


@damage("incomplete_turn", "run r-undone")
def an_undo_that_nobody_knows_of(db: Database) -> None:
    db.do("DELETE FROM undos")
    db.trim()


@damage("lost_history", "the log does not mention message")
def a_copy_that_was_not_logged(db: Database) -> None:
    query = "SELECT max(seq) FROM events WHERE CAST(encoded AS TEXT) LIKE ? AND session_id ="
    session = '(SELECT id FROM sessions WHERE CAST(value AS TEXT) LIKE \'%"title":"fork"%\')'
    db.forget(db.get(f"{query} {session}", '%"type":"message"%'))


by_sql("a_broken_undo", "unreadable_row", "undo", "UPDATE undos SET value = x'7bff'")
by_sql("an_undo_of_another_session", "misfiled_row", "undo", "UPDATE undos SET session_id = 'x'")
by_sql("another_content", "wrong_content", "something else", "UPDATE blobs SET content = x'00' WHERE digest >= '8'")
