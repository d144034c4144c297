"""The same policy as a profile for macOS's `sandbox-exec`. It was **not run** anywhere yet.

Nothing uses it: a profile that is wrong would stop every command. Its text is tested; whoever has a Mac can try it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from covey.sandbox.policy import Kind, Network, Policy, Sockets

PROGRAM = "/usr/bin/sandbox-exec"

_BEGINNING = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork)",
    "(allow process-info* (target same-sandbox))",
    "(allow signal (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
    '(allow mach-lookup (global-name "com.apple.system.logger"))',
    "(allow ipc-posix-sem)",
)
SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt", "/private/etc", "/private/var/db/timezone", "/dev")


def arguments(policy: Policy, command: Iterable[str]) -> tuple[str, ...]:
    """The command inside the profile."""
    return (PROGRAM, "-p", profile(policy), *command)


def profile(policy: Policy) -> str:
    """The text of the profile. Of rules that contradict each other, the last one holds."""
    runnable = (*SYSTEM, *policy.runnable, *(policy.writable if policy.kind is Kind.APPROVED else ()))
    lines = [
        *_BEGINNING,
        _rule("allow", "file-read*", (*runnable, *policy.readable, *policy.writable)),
        _rule("allow", "process-exec*", runnable),
        _rule("allow", "file-write*", policy.writable),
        _rule("deny", "file-write*", policy.protected),
        *(f"(deny file-write-unlink (literal {_quoted(path)}))" for path in policy.pinned),
        _rule("deny", "file-read*", policy.hidden),
        _rule("deny", "file-write*", policy.hidden),
        *_network(policy),
        *_sockets(policy),
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _network(policy: Policy) -> tuple[str, ...]:
    match policy.network:
        case Network.NONE:
            return ()
        case Network.LOOPBACK:
            return (
                '(allow network-bind (local ip "localhost:*"))',
                '(allow network-inbound (local ip "localhost:*"))',
                '(allow network-outbound (remote ip "localhost:*"))',
            )
        case Network.ALLOWED:
            return (
                "(allow network-bind (local ip))",
                "(allow network-inbound (local ip))",
                "(allow network-outbound (remote ip))",
                '(allow mach-lookup (global-name "com.apple.dnssd.service"))',
                '(allow mach-lookup (global-name "com.apple.trustd.agent"))',
                '(allow network-outbound (literal "/private/var/run/mDNSResponder"))',
            )
        case _:
            assert_never(policy.network)


def _sockets(policy: Policy) -> tuple[str, ...]:
    match policy.sockets:
        case Sockets.NONE:
            return ()
        case Sockets.OWN:
            places = " ".join(f"(subpath {_quoted(path)})" for path in policy.writable if not path.startswith("/dev/"))
            return (f"(allow network-bind network-inbound network-outbound {places})",) if places else ()
        case Sockets.ANY:
            return ("(allow network-outbound (remote unix-socket))", "(allow network-bind (local unix-socket))")
        case _:
            assert_never(policy.sockets)


def _rule(verdict: str, action: str, paths: Iterable[str]) -> str:
    places = " ".join(f"(subpath {_quoted(path)})" for path in dict.fromkeys(paths))
    return f"({verdict} {action} {places})" if places else ""


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
