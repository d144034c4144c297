"""What each command says with its exit code. Scripts rely on these numbers."""

from __future__ import annotations

OK = 0
FAILED = 1
"""The run failed, or the server refused."""
USAGE = 2
UNREACHABLE = 3
"""No server could be reached, or started."""
CANCELLED = 4
"""Somebody else cancelled the run."""
INTERRUPTED = 5
"""The server was killed while the run was active."""
TIMEOUT = 124
"""As `timeout` of coreutils has it."""
STOPPED = 130
"""Ctrl-C or SIGTERM: 128 + SIGINT."""
BROKEN_PIPE = 141
"""Nobody reads our stdout any more: 128 + SIGPIPE, as if we had died of it."""


class UsageError(Exception):
    """The command cannot be carried out as it was written; the text says what to write instead."""


OF_OUTCOME = {"completed": OK, "failed": FAILED, "cancelled": CANCELLED, "interrupted": INTERRUPTED}
"""How a run ended, as an exit code."""
