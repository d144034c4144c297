"""What can go wrong between client and server. What the server itself answers is in `protocol.errors`.

ServerUnreachable       nobody listens there, or nobody may be reached
├── ConnectionLost      no answer came: the request may have been carried out
├── BadAnswer           something answered, but it does not speak our protocol
└── SocketGone          it runs, and cannot be reached: its socket was removed
RunTimedOut             the caller's own bound on a run
Closed                  a server in this very process that has ended
"""

from __future__ import annotations

from covey.protocol.errors import CoveyError, Unavailable


class ServerUnreachable(CoveyError):
    """The text is for people, and says what to do."""

    code = "unreachable"


class ConnectionLost(ServerUnreachable):
    """Asking again is safe for whatever is idempotent: a prompt with a run id, a cancel, everything that only reads."""

    code = "connection_lost"


class BadAnswer(ServerUnreachable):
    """A success that cannot be read: another program on that port, or a server of another age."""

    code = "bad_answer"


class SocketGone(ServerUnreachable):
    """A server runs, and the file by which it is found was removed and does not come back."""

    code = "socket_gone"


class RunTimedOut(CoveyError, TimeoutError):
    """A run took longer than the program that posted it was ready to wait. It was cancelled."""

    code = "timed_out"


class Closed(CoveyError):
    """What `covey.open` gave was used after its block had ended, or after it was shut down."""

    code = "closed"


def is_passing(error: CoveyError) -> bool:
    """Whether the same request may well succeed a little later: the server, its store or the workspace is away."""
    is_away = isinstance(error, ServerUnreachable | Unavailable)
    return is_away or error.code in ("workspace_not_found", "workspace_closing")
