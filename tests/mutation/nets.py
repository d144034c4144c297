"""Which tests a mutant of each file must not get through, and the mutants that do, with the reason."""

from __future__ import annotations

_PYTEST = ("pytest", "-x", "-q", "-p", "no:cacheprovider")

NETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "lifecycle/runs.py": (
        (
            *_PYTEST,
            "tests/lifecycle/test_runs.py",
            "tests/lifecycle/test_run_scenarios.py",
            "tests/lifecycle/test_restart.py",
            "tests/lifecycle/test_lane_contract.py",
        ),
        ("tests.sim.hunt", "core"),
    ),
    "lifecycle/claims.py": ((*_PYTEST, "tests/lifecycle/test_claims.py"),),
    "lifecycle/history.py": ((*_PYTEST, "tests/lifecycle/test_history.py", "tests/lifecycle/test_history_details.py"),),
    "lifecycle/reply.py": ((*_PYTEST, "tests/lifecycle/test_reply.py", "tests/lifecycle/test_reply_details.py"),),
    "lifecycle/budget.py": ((*_PYTEST, "tests/lifecycle/test_budget.py", "tests/lifecycle/test_budget_details.py"),),
    "lifecycle/permissions.py": ((*_PYTEST, "tests/lifecycle/test_permissions.py"),),
    "engine/dispatcher.py": (
        ("tests.sim.hunt", "shell"),
        ("tests.sim.hunt", "crash"),
        (*_PYTEST, "tests/engine/test_dispatcher_details.py", "tests/engine/test_dispatcher_cancels.py"),
        (*_PYTEST, "tests/engine"),
    ),
    "store/journal.py": (
        (*_PYTEST, "tests/store/test_journal.py", "tests/store/test_journal_details.py"),
        ("tests.sim.hunt", "shell"),
    ),
}

KNOWN: dict[str, str] = {
    # ── lifecycle/ ──
    "if len(self.pieces) > 1:  →  always": "joining one piece gives that piece",
    "if len(self.pieces) > 1:  →  GtE": "joining one piece gives that piece",
    "LOOP_REPEATS = 5  →  6": "a constant, by one",
    "CHARACTERS_PER_TOKEN = 4  →  5": "a constant, by one",
    "MESSAGE_TOKENS = 8  →  9": "a constant, by one",
    "IMAGE_CHARACTERS = 6_000  →  6001": "a constant, by one",
    # ── store/journal.py ──
    "GROUP_LIMIT = 512  →  513": "a constant, by one",
    "TRIM_EVERY = 1000  →  1001": "a constant, by one",
    "READERS = 2  →  3": "a constant, by one",
    "def publish(self, seq: int, event: Event, encoded: bytes) -> None: ...  →  left out": "the body of a protocol",
    "def grow(self, delta: MessageDelta) -> None: ...  →  left out": "the body of a protocol",
    'self._thread = threading.Thread(target=self._write_loop, name="covey-write", daemon=True)  →  without name': (
        "a name for people who debug"
    ),
    "await WorkspaceJournal(self, change.workspace_id, _Silent(), 0).write(change.writes, patient=False)  →  1": (
        "it has no events, so none are counted"
    ),
    "self._readers.shutdown(wait=True)  →  without wait": "it is the default",
    "item = self._inbox.get(timeout=RETRY_S if self._stalled else None)  →  always the first": (
        "the thread wakes up for nothing four times a second"
    ),
    "self._land(list(zip(group, results, strict=True)))  →  without strict": "a guard against a bug in a store",
    "self._land(list(zip(group, results, strict=True)))  →  False": "a guard against a bug in a store",
    "if self._outbox and self._outbox[0] is pending:  →  never": "removing it finds the first one first",
    "if self._outbox and self._outbox[0] is pending:  →  without self._outbox": "what landed is always in there",
    "for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), result):"
    "  →  without strict": "both come from one sequence",
    "for seq, (event, encoded) in enumerate(zip(change.events, change.encoded, strict=True), result):"
    "  →  False": "both come from one sequence",
    # ── engine/dispatcher.py ──
    "if unrecorded:  # each is recorded or refused by now, and what follows from that is ahead of this:  →  always": (
        "one more empty change to wait for"
    ),
    "if ruling.lane.mark != self.lane.mark:  →  always": "the same mark is written again",
    "entry.row = structs.replace(entry.row, cancelled=True)  →  without cancelled": (
        "in memory the lane knows; the row says it only in the store, where the change below puts it"
    ),
    "entry.row = structs.replace(entry.row, cancelled=True)  →  False": (
        "in memory the lane knows; the row says it only in the store, where the change below puts it"
    ),
    "elif isinstance(decision, StopTurn) and self._turn and self._turn.run_id == decision.run_id:"
    "  →  without isinstance(decision, StopTurn)": "no other decision is about the run that is still active after it",
    "assert turn is not None and turn.run_id == run_id  →  without turn is not None": "an assertion",
    "assert turn is not None and turn.run_id == run_id  →  without turn.run_id == run_id": "an assertion",
    "assert turn is not None and turn.run_id == run_id  →  and/or": "an assertion",
    'driver = asyncio.create_task(self._run_turn(turn, begun), name=f"run {run_id}")  →  without name': (
        "a name for people who debug"
    ),
    "if turn:  →  always": "without a turn there is nothing to let go of",
    "host=run.folded_into or \"\",  →  without ''": "no run has the id None, as none has an empty one",
}
