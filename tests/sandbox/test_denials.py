"""What programs really say when the sandbox is in their way, and what is made of it."""

from __future__ import annotations

import pytest

from covey.sandbox.denials import Remedy, recognised
from covey.sandbox.policy import approved, unasked
from tests.sandbox.conftest import WAYS, Place, needs_landlock, use
from tests.sandbox.test_policy import FACTS, GIT

UNASKED, APPROVED = unasked(FACTS), approved(FACTS)
CWD = FACTS.workspace


@pytest.mark.parametrize(
    ("output", "remedy", "subject"),
    [
        ("curl: (6) Could not resolve host: example.org", Remedy.NETWORK, "example.org"),
        (
            "fatal: unable to access 'https://a.example/x/': Could not resolve host: a.example",
            Remedy.NETWORK,
            "a.example",
        ),
        ("npm error code EAI_AGAIN\nnpm error request to https://registry.example.org/x failed", Remedy.NETWORK, ""),
        ("OSError: [Errno 101] Network is unreachable", Remedy.NETWORK, ""),
        ("dial tcp: lookup proxy.example.org: no such host", Remedy.NETWORK, "proxy.example.org"),
        ("NewConnectionError: Failed to establish a new connection: [Errno -3] Temporary failure", Remedy.NETWORK, ""),
        ("touch: cannot touch '/home/ann/x': Read-only file system", Remedy.WRITE, "/home/ann/x"),
        ("bash: /home/ann/.bashrc: Read-only file system", Remedy.WRITE, "/home/ann/.bashrc"),
        ("PermissionError: [Errno 13] Permission denied: '/usr/lib/x.py'", Remedy.WRITE, "/usr/lib/x.py"),
        ("OSError: [Errno 30] Read-only file system: '/home/ann/.config/x'", Remedy.WRITE, "/home/ann/.config/x"),
        ("Error: EROFS: read-only file system, mkdir '/home/ann/.yarn'", Remedy.WRITE, "/home/ann/.yarn"),
        ("error: could not write config file .git/config: Device or resource busy", Remedy.WRITE, f"{GIT}/config"),
        ("error: could not lock config file .git/config: Read-only file system", Remedy.WRITE, f"{GIT}/config"),
        ("bash: .git/hooks/pre-commit: Read-only file system", Remedy.WRITE, "/home/ann/p/.git/hooks"),
        ("cat: /home/ann/.ssh/id_rsa: No such file or directory", Remedy.OUTSIDE, "/home/ann/.ssh/id_rsa"),
        ("cat: /srv/x: Permission denied", Remedy.OUTSIDE, "/srv/x"),
        ("git@example.org: Permission denied (publickey).\nfatal: Could not read from remote", Remedy.CREDENTIALS, ""),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", Remedy.OUTSIDE, "docker"),
        ("[1:1:FATAL:zygote_host_impl_linux.cc] No usable sandbox!", Remedy.OUTSIDE, "browser"),
    ],
)
def test_what_failed_because_of_the_sandbox_is_recognised(output: str, remedy: Remedy, subject: str) -> None:
    denial = recognised(APPROVED, 1, f"some words before\n{output}\n", CWD)
    assert denial is not None
    assert (denial.remedy, denial.subject) == (remedy, subject)
    assert denial.for_model and denial.for_person


@pytest.mark.parametrize(
    "output",
    [
        "AssertionError: 1 != 2",
        "cat: missing.txt: No such file or directory",
        "make: *** No rule to make target 'x'.  Stop.",
        "bash: ./script.sh: Permission denied",
        "ls: cannot access '/usr/nothing': No such file or directory",
        "cat: /tmp/gone: No such file or directory",
        "",
    ],
)
def test_an_ordinary_failure_is_not_taken_for_one(output: str) -> None:
    assert recognised(APPROVED, 1, output, CWD) is None


def test_with_the_network_a_host_that_is_not_found_is_just_that() -> None:
    policy = approved(FACTS, network=True)
    assert recognised(policy, 6, "curl: (6) Could not resolve host: nowhere.example", CWD) is None


def test_what_nobody_was_asked_about_is_to_be_asked() -> None:
    denial = recognised(UNASKED, 1, "touch: cannot touch 'x.txt': Permission denied", CWD)
    assert denial and denial.remedy is Remedy.ASK and denial.subject == "/home/ann/p/x.txt"
    assert recognised(UNASKED, 0, "a log with: Network is unreachable", CWD) is None


def test_a_command_that_was_not_started_says_why() -> None:
    denial = recognised(APPROVED, 126, "covey: the sandbox could not be set up: no\n", CWD)
    assert denial and "could not be set up" in denial.for_model


@needs_landlock
@pytest.mark.anyio
@pytest.mark.parametrize("way", ["view", "landlock"])
@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("git config a.b c", Remedy.WRITE),
        ("mkdir /usr/made-by-a-test", Remedy.WRITE),
        ('python3 -c \'open("/usr/made-by-a-test", "w")\'', Remedy.WRITE),
        ("git fetch https://example.invalid/x.git", Remedy.NETWORK),
        ("python3 -c 'import urllib.request as u; u.urlopen(\"http://192.0.2.1/\", timeout=5)'", Remedy.NETWORK),
    ],
)
async def test_real_programs_are_understood(
    place: Place, monkeypatch: pytest.MonkeyPatch, way: str, command: str, remedy: Remedy
) -> None:
    use(monkeypatch, WAYS[way])
    if way == "landlock" and command.startswith("git config"):
        pytest.skip("without a view it is changed, and put back")
    policy = approved(place.facts())
    completed = await place.run(command, policy)
    denial = recognised(policy, completed.exit_code, completed.output, str(place.root))
    assert denial and denial.remedy is remedy, completed.output
