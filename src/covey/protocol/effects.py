"""What a tool does to the world. Each tool says it once; everything that depends on it is derived from it here.

It is no part of the wire: it stands here because tools, permissions and the rules of undo must all know it.
"""

from __future__ import annotations

from enum import Enum, auto

RUN_SIDE_BY_SIDE = frozenset({"agent", "fetch", "glob", "grep", "job_output", "ls", "skill", "view"})
"""The built-in tools whose calls of one step run at the same time, for faces, which cannot ask the tools.

A test compares it with what the tools say themselves.
"""


class Effect(Enum):
    """The most that a call of a tool may do."""

    LOOKS = auto()
    """Reads files of this machine, and does nothing else."""
    CHANGES_FILES = auto()
    """Changes files, and records what it changes. A call that fails has changed nothing, unless it was cut off."""
    RUNS_COMMANDS = auto()
    """Starts or ends processes: anything may have happened. So may it with a tool that nobody knows any more."""
    REACHES_OUT = auto()
    """Reads something from the network, and changes nothing here."""
    TALKS = auto()
    """Talks to people or to the server, about the session's own affairs: a list, a question, a report, a job's output.

    What an agent does in its own session is decided there, call by call.
    """

    @property
    def is_for_reading_agents(self) -> bool:
        """Agents that only report, and runs that only plan, have such a tool at all."""
        return self is Effect.LOOKS

    @property
    def is_left_alone_by_plan(self) -> bool:
        """Plan mode denies nothing of it: whether to ask is decided as ever."""
        return self in (Effect.LOOKS, Effect.REACHES_OUT)

    @property
    def is_parallel(self) -> bool:
        """Calls of one step may run at the same time, since none can change what another one sees."""
        return self in (Effect.LOOKS, Effect.REACHES_OUT)

    @property
    def leaves_nothing_to_undo(self) -> bool:
        """However a call ended, no file and no process is different after it."""
        return self in (Effect.LOOKS, Effect.REACHES_OUT, Effect.TALKS)
