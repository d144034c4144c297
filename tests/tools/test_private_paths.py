"""Which paths of a command line lie where the sandbox has put a directory of its own."""

from __future__ import annotations

import pytest

from covey.sandbox.plan import Abilities, Views, planned
from covey.sandbox.policy import Mode, approved, unasked
from covey.tools.private_paths import LONGEST, SHOWN, private_paths
from tests.sandbox.test_policy import FACTS

POLICY = approved(FACTS)
PRIVATE = ("/tmp", "/dev/shm")


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("echo result > /tmp/report.txt && ls -la /tmp/report.txt", "/tmp/report.txt"),
        ("make >> /tmp/a.log 2> /tmp/b.log", "/tmp/a.log /tmp/b.log"),
        ("cp a.txt /tmp/", "/tmp"),
        ("cd /tmp && touch x", "/tmp"),
        ("dd if=a of=/tmp/b", "/tmp/b"),
        ("build --output=/tmp/out/x", "/tmp/out/x"),
        ("sh -c 'echo x > /tmp/y'", "/tmp/y"),
        ("echo x > /tmp/$NAME.txt", "/tmp/$NAME.txt"),
        ("log=/tmp/log; make > $log", "/tmp/log"),
        ("echo x > /dev/shm/y", "/dev/shm/y"),
    ],
)
def test_what_may_be_written_to_a_private_place_is_named(command: str, paths: str) -> None:
    assert " ".join(private_paths(command, POLICY, PRIVATE)) == paths


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "echo x > report.txt",
        "echo x > /tmpx/y",
        "echo x > /tmp/../srv/y",
        "cat /tmp/x; grep -rn /tmp/ src; ls /tmp",
        "make < /tmp/in",
        "make > /dev/null",
        "cat > notes.md <<END\n/tmp/x\nEND",
        f"touch /tmp/{'x' * LONGEST}",
        "echo 'never closed > /tmp/x",
    ],
)
def test_nothing_is_said_of_other_places_nor_of_what_only_looks(command: str) -> None:
    assert private_paths(command, POLICY, PRIVATE) == ()


def test_a_workspace_in_such_a_place_is_everybodys() -> None:
    policy = approved(FACTS, also_writable=("/tmp/project",), also_readable=("/tmp/given",))
    assert private_paths("cp /tmp/given/a /tmp/project/b", policy, PRIVATE) == ()
    assert private_paths("cp /tmp/given/a /tmp/projects", policy, PRIVATE) == ("/tmp/projects",)


def test_some_stand_for_all() -> None:
    assert private_paths("touch /tmp/a /tmp/b /tmp/c /tmp/d /tmp/e", POLICY, PRIVATE) == ("/tmp/a", "/tmp/b", "/tmp/c")
    assert SHOWN == 3


def test_nothing_is_private_where_there_is_no_view_of_its_own() -> None:
    able = Abilities("x86_64", 7, True, Views.OWN)
    assert planned(POLICY, able, Mode.AUTO).private == PRIVATE
    assert planned(unasked(FACTS), able, Mode.AUTO).private == ()
    assert planned(POLICY, able, Mode.OFF).private == ()
    assert planned(POLICY, Abilities("x86_64", 7, True, Views.NONE), Mode.AUTO).private == ()
    assert private_paths("touch /tmp/x", POLICY, ()) == private_paths("touch /tmp/x", None, ()) == ()
