"""What is asked about all workspaces of a server at once. None of them is opened for it, and none is kept open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import structs

from covey.engine.commands.activity import ActivityFeed, ActivityReader, MergedActivity, open_facts
from covey.engine.shared import Shared
from covey.protocol.activity import WorkspaceRun, WorkspaceSession
from covey.protocol.errors import BadRequest
from covey.protocol.events import Event
from covey.protocol.runs import Run
from covey.protocol.search import SearchHit, SearchResult
from covey.protocol.stats import Spending
from covey.store.base import WorkspaceRow
from covey.store.everywhere import PlacedSession
from covey.store.spending import SpendingRow

if TYPE_CHECKING:
    from covey.engine.workspace import Workspace
    from covey.notify.notifier import Notifier

DAY_S = 86_400
OPEN_STATES = frozenset({"accepted", "queued", "active"})
"""A run in one of these is open, and its workspace is too."""


class Everywhere:
    """`rows`: all workspaces that there are. `opened`: those of them that are open, by their id."""

    def __init__(self, shared: Shared, rows: Mapping[str, WorkspaceRow], opened: Mapping[str, Workspace]) -> None:
        self._shared = shared
        self._everywhere = shared.ownership.everywhere
        self._rows = rows
        self._opened = opened
        self._activity = ActivityFeed()
        self._notifier: Notifier | None = None
        """From when on somebody is to be notified."""
        self.on_event: Callable[[str, Event], None] | None = None
        """Who else is told, with the workspace's id, of what was published."""

    async def runs(self, state: str, limit: int, *, is_open: bool = False) -> list[WorkspaceRun]:
        """The newest first, in one state or any (''). `is_open`: only of workspaces that are open here."""
        found = await (self._runs_here if self._everywhere is None else self._runs_of_all)(state, limit, is_open)
        found.sort(key=lambda run: (run.accepted_at, run.seq), reverse=True)
        return found[:limit]

    async def _runs_here(self, state: str, limit: int, is_open: bool) -> list[WorkspaceRun]:
        found: list[WorkspaceRun] = []
        for row in self._rows.values():
            if workspace := self._opened.get(row.id):
                runs = await workspace.runs.newest("", state, limit)
            elif is_open or state in OPEN_STATES:
                continue
            else:
                runs = await self._shared.journal.read(self._shared.store.runs, row.id, "", state, limit)
            found += [_placed(run, row.id, row.path) for run in runs]
        return found

    async def _runs_of_all(self, state: str, limit: int, is_open: bool) -> list[WorkspaceRun]:
        """In a cluster: of all that have ended the store knows, and of what is open here nobody else."""
        assert self._everywhere is not None
        found: dict[tuple[str, str], WorkspaceRun] = {}
        if not is_open and state not in OPEN_STATES:
            for place, path, run in await self._shared.journal.read(self._everywhere.newest_runs, state, limit):
                found[place, run.run_id] = _placed(run, place, path)
        for workspace in self._opened.values():
            runs = (run for run in workspace.runs.open_runs() if state in ("", run.state))
            found |= {(workspace.id, run.run_id): _placed(run, workspace.id, workspace.path) for run in runs}
        return list(found.values())

    async def sessions(self, before: str, limit: int, *, children: bool, archived: bool) -> list[WorkspaceSession]:
        """The last changed first; with `before`, a `workspace/session`, those that follow this one.

        Raises NotFound or BadRequest if that is no session.
        """
        from covey.store.session_order import newest_of_all, place_in

        shared, paths = self._shared, {row.id: row.path for row in self._rows.values()}
        workspace_id, slash, session_id = before.partition("/")
        if before and not (slash and session_id):
            raise BadRequest("before is a session with its workspace, such as <workspace_id>/<id>")

        def read() -> list[PlacedSession]:
            place = place_in(shared.store, workspace_id, session_id)
            if self._everywhere is None:
                return newest_of_all(shared.store, paths, place, limit, children=children, archived=archived)
            return self._everywhere.newest_sessions((*place, workspace_id), limit, children=children, archived=archived)

        found = await shared.journal.read(read)
        return [session for each in found if (session := self._present(each))]

    def _present(self, found: PlacedSession) -> WorkspaceSession | None:
        """With the facts of the moment: what is known of it besides where it is open, and by whom, has its owner."""
        if workspace := self._opened.get(found.workspace_id):
            session = workspace.sessions.present(found.session)
        else:
            session = found.session.as_sent(is_busy=found.is_busy, attached_clients=0)
        if session is None:
            return None
        fields = {name: getattr(session, name) for name in session.__struct_fields__}
        return WorkspaceSession(workspace_id=found.workspace_id, path=found.path, **fields)

    async def search(self, query: str, limit: int) -> SearchResult:
        """Messages and titles with all words of a query, the newest first. Raises BadRequest if it has no word."""
        from covey.engine.commands.searching import check_query, placed, search

        check_query(query)
        if self._everywhere is not None:
            return placed(await self._shared.journal.read(self._everywhere.search_everywhere, query, limit))
        titles: list[SearchHit] = []
        messages: list[SearchHit] = []
        is_complete = True
        for row in self._rows.values():
            found = await self._shared.journal.read(search, row.id, self._shared.store, query, limit)
            place = {"workspace_id": row.id, "path": row.path}
            titles += [structs.replace(hit, **place) for hit in found.titles]
            messages += [structs.replace(hit, **place) for hit in found.messages]
            is_complete = is_complete and found.is_complete
        for hits in (titles, messages):
            hits.sort(key=lambda hit: (hit.at, hit.message_id or ""), reverse=True)
        return SearchResult(titles=tuple(titles[:limit]), messages=tuple(messages[:limit]), is_complete=is_complete)

    async def spending(self, days: int, limit: int) -> list[Spending]:
        """What the turns of the last days used, by day, workspace and model, the newest day first."""
        store, today = self._shared.store, self._shared.world.now_s() // DAY_S
        rows = await self._shared.journal.read(store.spending, today - days + 1, limit)
        paths = {row.id: row.path for row in await self._all_rows()}
        return [_spent(row, paths.get(row.workspace_id, "")) for row in rows]

    async def _all_rows(self) -> list[WorkspaceRow]:
        """In a cluster other nodes add some without our knowledge: they are read from the store."""
        if self._shared.ownership.is_shared:
            return await self._shared.journal.read(self._shared.store.workspaces)
        return list(self._rows.values())

    def note(self, workspace: Workspace, event: Event) -> None:
        """Something was published in a workspace."""
        self._activity.note(workspace.id, workspace.path, event)
        if workspace.settings.notify().is_used:
            self._notify(workspace, event)
        if self.on_event is not None:
            self.on_event(workspace.id, event)

    def _notify(self, workspace: Workspace, event: Event) -> None:
        from covey.notify.notices import NoticeOrigin
        from covey.notify.notifier import Notifier

        if self._notifier is None:
            self._notifier = Notifier(self._shared.environ, self._shared.world.now)
        title = workspace.sessions.known_title(event.session_id)
        origin = NoticeOrigin(workspace.id, workspace.path, title)
        self._notifier.note(event, workspace.settings.notify(), origin)

    def activity(self) -> ActivityReader:
        """Begin to read what goes on: first what is open now."""
        return self._activity.open(
            (workspace.id, workspace.path, open_facts(workspace.runs.open_runs(), workspace.asks.waiting()))
            for workspace in self._opened.values()
        )

    def merged_activity(self) -> MergedActivity:
        """The same, to which is added what other servers of a cluster say."""
        return MergedActivity(self.activity())

    async def aclose(self) -> None:
        self._activity.close()
        if self._notifier:
            await self._notifier.aclose()


def _spent(row: SpendingRow, path: str) -> Spending:
    return Spending(
        day=datetime.fromtimestamp(row.day * DAY_S, UTC).strftime("%Y-%m-%d"),
        workspace_id=row.workspace_id,
        path=path,
        model=row.model,
        runs=row.runs,
        prompt_tokens=row.usage.prompt_tokens,
        completion_tokens=row.usage.completion_tokens,
        cached_tokens=row.usage.cached_tokens,
        cost=row.usage.cost,
    )


def _placed(run: Run, workspace_id: str, path: str) -> WorkspaceRun:
    fields = {name: getattr(run, name) for name in run.__struct_fields__}
    return WorkspaceRun(workspace_id=workspace_id, path=path, **fields)
