"""What the sandbox can do on this system, as `covey doctor` says it."""

from __future__ import annotations

from covey.sandbox.plan import planned
from covey.sandbox.policy import Kind, Mode, Network, Policy, Sockets
from covey.sandbox.probe import probed, sentences

_APPROVED = Policy(
    Kind.APPROVED, (), ("/usr",), ("/w",), ("/w/.git/hooks",), (), ("/w/x",), Network.LOOPBACK, Sockets.OWN, ""
)
"""A policy with all that an approved command may have: its gaps are those of this system."""


def look() -> str:
    """What holds here, and what does not. Starts up to two short processes."""
    abilities = probed()
    return sentences(abilities, planned(_APPROVED, abilities, Mode.AUTO).gaps)
