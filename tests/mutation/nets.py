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
    "lifecycle/history.py": ((*_PYTEST, "tests/lifecycle/test_history.py"),),
    "lifecycle/reply.py": ((*_PYTEST, "tests/lifecycle/test_reply.py"),),
    "lifecycle/budget.py": ((*_PYTEST, "tests/lifecycle/test_budget.py"),),
    "lifecycle/permissions.py": ((*_PYTEST, "tests/lifecycle/test_permissions.py"),),
    "engine/dispatcher.py": (
        ("tests.sim.hunt", "shell"),
        ("tests.sim.hunt", "crash"),
        (*_PYTEST, "tests/engine/test_dispatcher_details.py"),
        (*_PYTEST, "tests/engine"),
    ),
    "store/journal.py": (
        (*_PYTEST, "tests/store/test_journal.py", "tests/store/test_journal_details.py"),
        ("tests.sim.hunt", "shell"),
    ),
}

KNOWN: dict[str, str] = {}
