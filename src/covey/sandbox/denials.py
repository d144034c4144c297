"""What failed because of the sandbox, recognised by what programs say about it, with words and a way out. Pure.

Programs are not asked: they print what they like. So this can be wrong either way, and nothing depends on it but words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from covey.sandbox.policy import Kind, Network, Policy, Sockets, is_within

TAIL = 16_000
"""Characters at the end of an output that are looked at: an error is mostly the last thing that is said."""


class Remedy(Enum):
    """What a person could allow, so that it would work. Each is a way to make another policy, or none."""

    ASK = "ask"
    """Ask for the command, so that it runs as approved."""
    NETWORK = "network"
    CREDENTIALS = "credentials"
    """Keys, and the sockets of whoever keeps them."""
    WRITE = "write"
    """`Denial.subject` may be changed this time."""
    OUTSIDE = "outside"
    """Without the sandbox."""


@dataclass(frozen=True, slots=True)
class Denial:
    remedy: Remedy
    subject: str
    """The path, or the host, as far as it is known."""
    for_model: str
    for_person: str
    """The way out, as an offer."""


_NETWORK = re.compile(
    r"Network is unreachable|ENETUNREACH|[Cc]ould(?:n't| not) resolve (?:host|proxy)|EAI_AGAIN|getaddrinfo|ENOTFOUND"
    r"|Temporary failure in name resolution|Name or service not known|no such host|failed to lookup address"
    r"|NameResolutionError|UnknownHostException|nodename nor servname|unable to resolve host|dial (?:tcp|udp)"
    r"|Failed to connect to|Couldn't connect to server|Failed to establish a new connection|error sending request"
    r"|network is down|Could not connect to \S+:\d"
)
_HOST = re.compile(r"(?:host|to|lookup|host=|https?://)[ :'\"=]{0,2}((?:[a-z0-9-]+\.)+[a-z]{2,})", re.I)
_REFUSED = r"(?:Permission denied|Read-only file system|Operation not permitted|Device or resource busy)"
_PATH = r"(?P<path>[^\s'\"`‘’:(),]*[/.][^\s'\"`‘’:(),]*|(?<=')[^'\n]+(?='))"
_FILE = (
    re.compile(r"line \d+: (?P<path>[^\s:]+): (?P<why>" + _REFUSED + ")"),  # a shell, of what it was to write to
    re.compile(_PATH + r"['\"`’]?\)?: (?P<why>" + _REFUSED + ")"),
    re.compile(r"(?P<why>" + _REFUSED + r")(?: \(os error \d+\))?: ['\"]?" + _PATH),
    re.compile(r"(?P<why>EACCES|EROFS|EPERM|EBUSY)\b[^'\n]{0,60}'(?P<path>[^'\n]+)'"),
)
_GONE = re.compile(r"(?<![^\s'\"`‘’:(),])(?P<path>/[^\s'\"`‘’:(),]+)['\"’]?: No such file or directory")
_KEYS = re.compile(
    r"Permission denied \((?:publickey|keyboard)|Host key verification failed|authentication agent"
    r"|could not read (?:Username|Password) for|Could not read from remote repository|No such identity"
    r"|gpg failed to sign"
)
_DOCKER = re.compile(r"[Dd]ocker daemon|docker\.sock|podman\.sock|containerd\.sock")
_BROWSER = re.compile(r"No usable sandbox|setuid sandbox|Failed to move to new namespace|zygote_host_impl_linux")
_TRACED = re.compile(r"ptrace(?:\(|: | )|PTRACE_\w+|could not attach to process")
_READ_ONLY = ("Read-only file system", "Device or resource busy", "EROFS", "EBUSY")


def recognised(policy: Policy, exit_code: int | None, output: str, cwd: str) -> Denial | None:
    """What of this the sandbox has caused, if anything. `exit_code` is as the system gives it."""
    if exit_code == 0 and policy.kind is Kind.UNASKED:
        return None  # what it looks at may well be about errors
    tail = output[-TAIL:]
    if exit_code == 126 and "covey: " in tail:
        return _outside("the sandbox", tail[tail.rindex("covey: ") :].strip().partition("\n")[0])
    if exit_code in (-31, 159):  # SIGSYS
        return _outside("a program for another processor", "A program was ended by the sandbox: it is for 32 bits.")
    for found in (_keys, _programs, _files, _network):
        if denial := found(policy, tail, cwd):
            return denial
    return None


def _network(policy: Policy, tail: str, cwd: str) -> Denial | None:
    if policy.network is Network.ALLOWED or not (hit := _NETWORK.search(tail)):
        return None
    line = _line(tail, hit)
    host = found[1] if (found := _HOST.search(line)) else ""
    to = f" to {host}" if host else ""
    if policy.kind is Kind.UNASKED:
        words = "Commands that nobody was asked about have no network."
        return Denial(Remedy.ASK, host, f"{words} This one tried to connect{to}.", "Ask me before it runs")
    words = f"The sandbox has no network for this command, and it tried to connect{to}."
    return Denial(Remedy.NETWORK, host, f"{words} The user can allow it.", "Allow network once")


def _files(policy: Policy, tail: str, cwd: str) -> Denial | None:
    for pattern in _FILE:
        for hit in pattern.finditer(tail):
            if denial := _refused_file(policy, _absolute(hit["path"], cwd), hit["why"]):
                return denial
    for hit in _GONE.finditer(tail):
        path = hit["path"]
        if policy.kind is Kind.APPROVED and not _inside(path, (*policy.readable, *policy.runnable, *policy.writable)):
            if path.startswith(("/tmp/", "/dev/")):  # noqa: S108 - which it has its own of
                continue
            return _outside(path, f"{path} is not part of what this command can see in the sandbox.")
    return None


def _refused_file(policy: Policy, path: str, why: str) -> Denial | None:
    if not path:
        return None
    if policy.kind is Kind.UNASKED:
        if _inside(path, policy.writable):
            return None
        words = f"A command that nobody was asked about can neither change files nor read outside: {path}."
        return Denial(Remedy.ASK, path, words, "Ask me before it runs")
    if guarded := next((p for p in policy.protected if is_within(path.removesuffix(".lock"), p)), ""):
        words = f"{guarded} is protected from commands."
        return Denial(
            Remedy.WRITE, guarded, f"{words} The user can allow the change.", f"Allow to change {guarded} once"
        )
    if _inside(path, policy.writable):
        return None
    if why in _READ_ONLY or _inside(path, (*policy.readable, *policy.runnable)):
        words = f"Commands can change files in the workspace only, and {path} is not in it."
        return Denial(Remedy.WRITE, path, f"{words} The user can allow it.", f"Allow to change {path} once")
    return _outside(path, f"{path} cannot be reached in the sandbox.")


def _keys(policy: Policy, tail: str, cwd: str) -> Denial | None:
    if policy.kind is not Kind.APPROVED or policy.sockets is Sockets.ANY or not _KEYS.search(tail):
        return None
    words = "Keys and passwords of the user are not part of the sandbox."
    return Denial(Remedy.CREDENTIALS, "", f"{words} The user can allow them.", "Allow network and keys once")


def _programs(policy: Policy, tail: str, cwd: str) -> Denial | None:
    if _DOCKER.search(tail):
        return _outside("docker", "The socket of docker cannot be reached in the sandbox: it is as good as being root.")
    if _BROWSER.search(tail):
        words = "A browser cannot make a sandbox of its own inside of ours: start it with --no-sandbox."
        return Denial(Remedy.OUTSIDE, "browser", words, "Run it once without the sandbox")
    if policy.kind is Kind.UNASKED and _TRACED.search(tail):
        return _outside("ptrace", "A command that nobody was asked about cannot look into other processes.")
    return None


def _outside(subject: str, words: str) -> Denial:
    return Denial(Remedy.OUTSIDE, subject, f"{words} The user can run it without.", "Run it once without the sandbox")


def _inside(path: str, trees: tuple[str, ...]) -> bool:
    return any(is_within(path, tree) for tree in trees)


def _absolute(path: str, cwd: str) -> str:
    """Without a look at the disk: `.` and `..` are taken out by name."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{cwd}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _line(text: str, hit: re.Match[str]) -> str:
    begin = text.rfind("\n", 0, hit.start()) + 1
    end = text.find("\n", hit.end())
    return text[begin : end if end >= 0 else len(text)]
