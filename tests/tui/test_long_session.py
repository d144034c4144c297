"""A session that is longer than what is loaded, in the whole program."""

from __future__ import annotations

from pathlib import Path

from covey.protocol.messages import Finish, FinishPart, Message, Session, Text, TextPart
from covey.store.base import Change, PutMessage, PutSession, PutWorkspace, WorkspaceRow
from covey.store.sqlite import SqliteStore
from tests.cli.conftest import Home
from tests.tui.program import PtyProgram

LONG = "0000009"
MESSAGES = 700


def _fill(home: Home) -> None:
    """As a server would have left it."""
    home.data_dir.mkdir(parents=True, mode=0o700)
    store = SqliteStore(home.data_dir / "covey.db")
    row = WorkspaceRow("w", str(home.project.resolve()), 1, 1)
    facts = {"prompt_tokens": 0, "completion_tokens": 0, "summary_message_id": "", "cost": 0.0}
    facts |= {"parent_session_id": "", "is_busy": False, "attached_clients": 0}
    session = Session(id=LONG, title="a long one", message_count=MESSAGES, created_at=1, updated_at=1, **facts)  # type: ignore[arg-type]
    messages = tuple(PutMessage(_message(number)) for number in range(MESSAGES))
    store.commit([Change("w", (PutWorkspace(row), PutSession(session)))])
    store.commit([Change("w", messages)])
    store.close()


def _message(number: int) -> Message:
    text = {3: "the very first needle", MESSAGES - 2: "the last needle"}.get(number, f"message {number}")
    return Message(
        id=f"{number:07}",
        role="user" if number % 2 == 0 else "assistant",
        session_id=LONG,
        parts=(TextPart(data=Text(text=text)), FinishPart(data=Finish(reason="end_turn", time=1))),
        model="m",
        provider="p",
        created_at=number + 1,
        updated_at=number + 1,
    )


def test_words_are_found_in_messages_that_were_not_loaded(own_home: Home, tmp_path: Path) -> None:
    _fill(own_home)
    command = own_home.command("-s", LONG)
    with PtyProgram(command, cwd=own_home.project, env=own_home.env, columns=100, lines=30) as program:
        program.wait_for("the last needle")
        program.type("\x06needle")
        program.wait_for("1 of 1 · 1 message further up")
        program.type("\r")
        program.wait_for("N before")
        program.type("N")
        program.wait_for("the very first needle")
        program.wait_for("1 of 2")
        program.type("N")
        program.wait_for("the last needle")
        program.wait_for("2 of 2")
