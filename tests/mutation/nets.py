"""Which tests a mutant of each file must not get through, as `python -m` runs them. The fastest come first."""

from __future__ import annotations

Net = tuple[str, ...]

_PYTEST = ("pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Hypothesis is loaded before pytest begins, which it would complain about."""
QUICK = "tests.mutation.quick"
_SHELL: tuple[Net, ...] = (
    (
        QUICK,
        "tests.permissions.test_shell_details",
        "tests.permissions.test_permissions_details",
        "tests.permissions.test_permissions_table",
        "tests.permissions.test_permissions",
    ),
)
"""What decides about command lines is one thing in many files: a table of command lines, with what becomes of them."""

_ENGINE: Net = (*_PYTEST, "tests/engine")
_REFUSED: Net = (*_PYTEST, "tests/engine/test_refused_rulings.py", "tests/engine/test_turn.py")

NETS: dict[str, tuple[Net, ...]] = {
    "lifecycle/runs.py": (
        (
            *_PYTEST,
            "tests/lifecycle/test_runs.py",
            "tests/lifecycle/test_run_scenarios.py",
            "tests/lifecycle/test_restart.py",
            "tests/lifecycle/test_run_facts.py",
            "tests/lifecycle/test_queue.py",
            "tests/lifecycle/test_lane_contract.py",
        ),
        ("tests.sim.hunt", "core"),
    ),
    "lifecycle/run_tree.py": (
        (
            *_PYTEST,
            "tests/lifecycle/test_queue_cost.py",
            "tests/lifecycle/test_runs.py",
            "tests/lifecycle/test_queue.py",
        ),
        ("tests.sim.hunt", "core"),
    ),
    "lifecycle/int_tree.py": ((*_PYTEST, "tests/lifecycle/test_queue_cost.py"),),
    "lifecycle/claims.py": ((QUICK, "tests.lifecycle.test_claims"),),
    "lifecycle/history.py": (
        (
            QUICK,
            "tests.lifecycle.test_history",
            "tests.lifecycle.test_history_details",
            "tests.lifecycle.test_r18_history",
            "tests.lifecycle.test_conversation",
        ),
    ),
    "lifecycle/reply.py": (
        (
            QUICK,
            "tests.lifecycle.test_reply",
            "tests.lifecycle.test_reply_details",
            "tests.lifecycle.test_reply_times",
        ),
        (*_PYTEST, "tests/lifecycle/test_reply_bounds.py"),
    ),
    "protocol/growth.py": (
        (QUICK, "tests.protocol.test_growth", "tests.lifecycle.test_reply_details"),
        (*_PYTEST, "tests/client/test_transcript.py", "tests/lifecycle/test_reply.py"),
    ),
    "lifecycle/budget.py": ((QUICK, "tests.lifecycle.test_budget", "tests.lifecycle.test_budget_details"),),
    "permissions/judge.py": _SHELL,
    "permissions/rules.py": _SHELL,
    "permissions/lines.py": _SHELL,
    "permissions/safe_commands.py": _SHELL,
    "permissions/safe_git.py": _SHELL,
    "permissions/safe_options.py": _SHELL,
    "permissions/safe_paths.py": _SHELL,
    "permissions/safe_scripts.py": _SHELL,
    "permissions/shell.py": _SHELL,
    "permissions/shell_commands.py": _SHELL,
    "permissions/shell_grammar.py": _SHELL,
    "permissions/shell_redirects.py": _SHELL,
    "permissions/shell_words.py": _SHELL,
    "permissions/shell_wrappers.py": _SHELL,
    "lifecycle/undo.py": ((QUICK, "tests.lifecycle.test_undo_rules", "tests.lifecycle.test_undo_details"),),
    "engine/turns/last_words.py": ((QUICK, "tests.engine.test_last_words_details"), _REFUSED, _ENGINE),
    "engine/turns/answer_writer.py": (
        (*_PYTEST, "tests/engine/test_answer_writer.py", "tests/engine/test_answer_bounds.py"),
    ),
    "engine/lanes/dispatcher.py": (
        ("tests.sim.hunt", "shell"),
        ("tests.sim.hunt", "crash"),
        (*_PYTEST, "tests/engine/test_dispatcher_details.py", "tests/engine/test_dispatcher_cancels.py"),
        _ENGINE,
    ),
    "engine/lanes/lane_writer.py": (_REFUSED, _ENGINE),
    "engine/lanes/open_runs.py": (("tests.sim.hunt", "shell"), _ENGINE),
    "engine/lanes/lanes.py": (
        (*_PYTEST, "tests/engine/test_lanes.py", "tests/engine/test_dispatcher_details.py"),
        _ENGINE,
    ),
    "store/journal.py": (
        (*_PYTEST, "tests/store/test_journal.py", "tests/store/test_journal_details.py"),
        ("tests.sim.hunt", "shell"),
    ),
}
