"""What the server's log says of runs: accepted, started, ended, with their ids. Never what was said."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from covey.protocol.events import Event
from covey.protocol.runs import Run, RunComplete

log = logging.getLogger("covey.runs")

ERROR_SHOWN = 300


class RunLog:
    """Notes what was written and published, once for each change of a run."""

    def __init__(self) -> None:
        self._active: set[str] = set()

    def note(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event.payload, Run):
                self._note_run(event.payload, is_new=event.change == "created")
            elif isinstance(event.payload, RunComplete):
                self._note_end(event.payload)

    def _note_run(self, run: Run, *, is_new: bool) -> None:
        if is_new:
            log.info("run %s accepted: session %s, seq %d", run.run_id, run.session_id, run.seq)
        elif run.state == "active" and run.run_id not in self._active:
            self._active.add(run.run_id)
            log.info("run %s started: session %s", run.run_id, run.session_id)

    def _note_end(self, terminal: RunComplete) -> None:
        self._active.discard(terminal.run_id)
        why = f" ({' '.join(terminal.error.split())[:ERROR_SHOWN]})" if terminal.error else ""
        host = f", folded into {terminal.folded_into}" if terminal.folded_into else ""
        log.info("run %s ended: session %s, %s%s%s", terminal.run_id, terminal.session_id, terminal.outcome, host, why)
