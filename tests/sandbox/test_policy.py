"""What a policy is made of, as a table of facts and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from covey.sandbox.plan import Abilities, Views, planned
from covey.sandbox.policy import Facts, GitPlaces, Kind, Mode, Network, Policy, Sockets, approved, is_within, unasked

GIT = "/home/ann/p/.git"
FACTS = Facts(
    workspace="/home/ann/p",
    temp="/tmp/covey-1/p",
    system=("/usr", "/usr/bin", "/home/ann/.cargo/bin"),
    settings=("/etc/passwd",),
    etc=("/etc",),
    devices=("/dev/null",),
    terminals=("/dev/shm",),
    kernel=("/proc",),
    git_settings=("/home/ann/.gitconfig",),
    tool_settings=("/home/ann/.npmrc",),
    resolver=("/run/resolv.conf",),
    caches=("/home/ann/.npm",),
    credentials=("/home/ann/.ssh",),
    secrets=("/etc/shadow",),
    covey=("/home/ann/.local/share/covey",),
    guarded=("/home/ann/p/covey.toml",),
    repository=GitPlaces((GIT,), (f"{GIT}/config", f"{GIT}/hooks")),
)
HOME = replace(FACTS, workspace="/home/ann")
ABLE = Abilities("x86_64", 7, True, Views.OWN)


def test_what_nobody_was_asked_about_writes_to_devices_only() -> None:
    policy = unasked(FACTS)
    assert policy.writable == ("/dev/null",)
    assert policy.network is Network.NONE and policy.sockets is Sockets.NONE
    assert policy.temp == ""


def test_what_nobody_was_asked_about_reads_the_workspace_and_the_system() -> None:
    policy = unasked(FACTS)
    assert policy.readable == ("/home/ann/p", "/home/ann/.gitconfig", "/etc/passwd")
    assert policy.runnable == ("/usr", "/home/ann/.cargo/bin", "/proc")
    assert policy.hidden == ()


def test_what_was_allowed_to_be_looked_at_is_readable() -> None:
    assert "/srv/data" in unasked(FACTS, also_readable=["/srv/data"]).readable


@pytest.mark.parametrize("policy", [unasked(HOME), approved(HOME)])
def test_in_a_workspace_that_is_the_home_secrets_are_hidden(policy: Policy) -> None:
    assert {"/home/ann/.ssh", "/home/ann/.local/share/covey"} <= set(policy.hidden)


def test_a_workspace_inside_of_what_is_hidden_is_seen() -> None:
    inside = replace(FACTS, workspace="/home/ann/.local/share/covey/p", covey=("/home/ann/.local/share/covey",))
    assert unasked(inside).hidden == ()
    assert approved(inside).hidden == ("/etc/shadow",)


def test_what_was_approved_writes_in_the_workspace_the_temporary_directory_and_caches() -> None:
    policy = approved(FACTS)
    assert policy.writable == ("/home/ann/p", "/tmp/covey-1/p", "/home/ann/.npm", "/dev/null", "/dev/shm")
    assert policy.kind is Kind.APPROVED and policy.temp == "/tmp/covey-1/p"


def test_what_was_approved_leaves_alone_what_makes_others_run_code() -> None:
    policy = approved(FACTS)
    assert policy.protected == (f"{GIT}/config", f"{GIT}/hooks", "/home/ann/p/covey.toml")
    assert policy.pinned == (GIT,)


def test_the_repository_above_a_workspace_is_written_and_protected() -> None:
    policy = approved(replace(FACTS, workspace="/home/ann/p/sub"))
    assert GIT in policy.writable
    assert f"{GIT}/config" in policy.protected
    assert policy.pinned == ()


@pytest.mark.parametrize(
    ("network", "credentials", "expected", "sockets"),
    [
        (False, False, Network.LOOPBACK, Sockets.OWN),
        (True, False, Network.ALLOWED, Sockets.OWN),
        (True, True, Network.ALLOWED, Sockets.ANY),
    ],
)
def test_the_network_is_as_the_answer_said(
    network: bool, credentials: bool, expected: Network, sockets: Sockets
) -> None:
    policy = approved(FACTS, network=network, credentials=credentials)
    assert (policy.network, policy.sockets) == (expected, sockets)
    assert ("/run/resolv.conf" in policy.runnable) == network
    assert ("/home/ann/.ssh" in policy.runnable) == credentials


def test_one_protected_path_can_be_freed() -> None:
    assert approved(FACTS, unprotected=[f"{GIT}/config"]).protected == (f"{GIT}/hooks", "/home/ann/p/covey.toml")


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/", "/a", False), ("/a", "/", True)],
)
def test_within(path: str, root: str, expected: bool) -> None:
    assert is_within(path, root) is expected


# ── what a system makes of it ──


def test_a_system_that_can_do_everything_has_no_gaps() -> None:
    for policy in (unasked(FACTS), approved(FACTS)):
        assert planned(policy, ABLE, Mode.REQUIRED).gaps == ()


def test_switched_off_nothing_is_done() -> None:
    assert planned(approved(FACTS), ABLE, Mode.OFF).steps == ()


@pytest.mark.parametrize(
    ("abilities", "refused"),
    [
        (replace(ABLE, landlock=0), {Kind.UNASKED, Kind.APPROVED}),
        (replace(ABLE, seccomp=False), {Kind.UNASKED, Kind.APPROVED}),
        (replace(ABLE, views=Views.NONE), {Kind.APPROVED}),
        (replace(ABLE, landlock=1), set()),
    ],
)
def test_where_it_is_required_what_matters_must_hold(abilities: Abilities, refused: set[Kind]) -> None:
    for policy in (unasked(FACTS), approved(FACTS)):
        strict, lenient = (planned(policy, abilities, mode) for mode in (Mode.REQUIRED, Mode.AUTO))
        assert (strict.steps[0] == "refuse") == (policy.kind in refused)
        assert lenient.steps[0] != "refuse" and strict.gaps == lenient.gaps
        assert all(gap.text.endswith(".") for gap in strict.gaps)


def test_a_gap_is_always_reported() -> None:
    assert [gap.matters for gap in planned(unasked(FACTS), replace(ABLE, landlock=5), Mode.AUTO).gaps] == [False]
    with_keys = planned(approved(FACTS, credentials=True), replace(ABLE, views=Views.NONE), Mode.AUTO)
    assert any("sockets" in gap.text and gap.matters for gap in with_keys.gaps)
    assert len(planned(approved(FACTS), replace(ABLE, views=Views.NONE), Mode.AUTO).gaps) == 4
