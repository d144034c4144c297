"""What each command says with its exit code. Scripts rely on these numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from covey.protocol.runs import RunComplete

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
BOUND = 6
"""The run reached a bound: of its steps or its costs, or it went round in circles."""
TIMEOUT = 124
"""As `timeout` of coreutils has it."""
STOPPED = 130
"""Ctrl-C or SIGTERM: 128 + SIGINT."""
BROKEN_PIPE = 141
"""Nobody reads our stdout any more: 128 + SIGPIPE, as if we had died of it."""


class CommandFailed(Exception):
    """The command was not carried out; the text says why. Whoever ran it is told once, with `--json` as an object."""

    def __init__(self, sentence: str, exit_code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
        self.is_written = False
        """The command has an object of its own for `--json`, and this is in it."""


class UsageError(CommandFailed):
    """The command cannot be carried out as it was written; the text says what to write instead."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, USAGE)


_OF_OUTCOME = {"completed": OK, "failed": FAILED, "cancelled": CANCELLED, "interrupted": INTERRUPTED}


def of_end(terminal: RunComplete) -> int:
    """How a run ended, as an exit code."""
    return BOUND if terminal.at_bound else _OF_OUTCOME[terminal.outcome]
