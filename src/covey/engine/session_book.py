"""The sessions of one workspace that were asked for since it was opened, as they are now.

The store has all of them, and of these the same, one change later: see `WorkspaceParts.session`, which reads one.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from covey.engine.world import World
from covey.protocol.errors import NotFound
from covey.protocol.messages import Message, Session, ShellCommandPart
from covey.protocol.runs import Usage

NO_TITLES = frozenset({"", "New Session", "non-interactive"})
"""What v1 clients call a session that nobody has named yet counts as no title."""
TITLE_LENGTH = 60
"""How much of the first prompt becomes the title of a session that has none."""


class SessionBook:
    """Sessions by id. Changing one here changes nothing else: the caller writes what it gets back."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_id: dict[str, Session] = {}
        self._removed: set[str] = set()
        """Deleted since the workspace was opened: a reading that began before must not bring one back."""
        self._leaving: dict[str, Session] = {}
        """Sessions that nobody can use any more, while the last words of their runs are still being written."""
        self._named_by_prompt: dict[str, str] = {}
        """Sessions whose title is the beginning of their first prompt: a better one may replace it."""
        self._commands: dict[str, list[Message]] = {}
        """By session: commands of people that no prompt has followed yet."""

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._by_id

    def find(self, session_id: str) -> Session | None:
        return self._by_id.get(session_id)

    def get(self, session_id: str) -> Session:
        session = self._by_id.get(session_id)
        if session is None:
            raise NotFound(f"there is no session {session_id!r} in this workspace", "session_not_found")
        return session

    def take_in(self, stored: Session) -> bool:
        """It was read from the store. What is known of it already is newer; False: it was deleted meanwhile."""
        if stored.id in self._removed:
            return False
        self._by_id.setdefault(stored.id, stored)
        return True

    def present(self, stored: Session) -> Session | None:
        """A session of the store as it is now; None if it was deleted. It is not taken in for that."""
        return None if stored.id in self._removed else self._by_id.get(stored.id, stored)

    def create(self, title: str, parent_session_id: str = "", model: str | None = None) -> Session:
        now = self._world.now_s()
        session = Session(
            id=self._world.new_id(),
            parent_session_id=parent_session_id,
            title=title,
            message_count=0,
            prompt_tokens=0,
            completion_tokens=0,
            summary_message_id="",
            cost=0.0,
            created_at=now,
            updated_at=now,
            is_busy=False,
            attached_clients=0,
            model=model,
        )
        self._by_id[session.id] = session
        return session

    def remove(self, session_id: str) -> Session:
        """From now on nobody can use it. What is still written about it counts, until it is forgotten."""
        session = self._leaving[session_id] = self.get(session_id)
        del self._by_id[session_id]
        self._removed.add(session_id)
        self._commands.pop(session_id, None)
        self._named_by_prompt.pop(session_id, None)
        return session

    def forget(self, session_id: str) -> None:
        self._leaving.pop(session_id, None)

    def is_child(self, session_id: str) -> bool:
        """Whether an agent works in it for another session."""
        session = self._by_id.get(session_id)
        return session is not None and bool(session.parent_session_id)

    def family(self, session_id: str) -> list[str]:
        """A session, and those in which agents worked for it or for each other, from the oldest generation on.

        Those that are known, that is.
        """
        family = [self.get(session_id).id]
        for parent in family:
            family += [session.id for session in self._by_id.values() if session.parent_session_id == parent]
        return family

    def change(self, session_id: str, *, added_messages: int = 0, **fields: Any) -> Session | None:
        """The changed session; None if it was deleted meanwhile."""
        book = self._by_id if session_id in self._by_id else self._leaving
        session = book.get(session_id)
        if session is None:
            return None
        count = session.message_count + added_messages
        book[session_id] = structs.replace(session, message_count=count, updated_at=self._world.now_s(), **fields)
        return book[session_id]

    def spend(self, session_id: str, last: Usage, total: Usage) -> Session | None:
        """A turn ended: tokens are those of its last step (what the context holds now), cost adds up."""
        session = self._by_id.get(session_id)
        if session is None:
            return None
        fields: dict[str, Any] = {"cost": session.cost + total.cost}
        if last.prompt_tokens or last.completion_tokens:  # not every provider counts
            fields |= {"prompt_tokens": last.prompt_tokens, "completion_tokens": last.completion_tokens}
        return self.change(session_id, **fields)

    def name(self, session_id: str, prompt: str) -> Session | None:
        """Give a session without a title one, from its first prompt; None if there is nothing to change."""
        session = self._by_id.get(session_id)
        first_line = prompt.strip().partition("\n")[0]
        if session is None or session.title not in NO_TITLES or not first_line:
            return None
        title = self._named_by_prompt[session_id] = _cut(first_line)
        return self.change(session_id, title=title)

    def add_command(self, command: Message) -> None:
        """A person ran a command: if it is shared, the model sees it with the next prompt."""
        if any(isinstance(part, ShellCommandPart) and part.data.share for part in command.parts):
            self._commands.setdefault(command.session_id, []).append(command)

    def take_commands(self, session_id: str) -> list[Message]:
        """The commands that belong to the prompt which is written now."""
        return self._commands.pop(session_id, [])

    def wants_title(self, session_id: str) -> bool:
        """Whether nobody has chosen the title that it has."""
        session = self._by_id.get(session_id)
        return session is not None and self._named_by_prompt.get(session_id) == session.title

    def retitle(self, session_id: str, title: str) -> Session | None:
        """Give it a better title, unless somebody has chosen one meanwhile."""
        if not self.wants_title(session_id):
            return None
        del self._named_by_prompt[session_id]
        return self.change(session_id, title=_cut(title))


def _cut(title: str) -> str:
    return title[:TITLE_LENGTH].rstrip() + ("…" if len(title) > TITLE_LENGTH else "")
