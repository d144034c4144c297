"""The text of the profile for macOS. It has not been run: see the module."""

from __future__ import annotations

from dataclasses import replace

from covey.sandbox.policy import approved, unasked
from covey.sandbox.seatbelt import arguments, profile
from tests.sandbox.test_policy import FACTS, GIT


def rules(text: str) -> list[str]:
    return text.splitlines()


def test_every_parenthesis_is_closed() -> None:
    for policy in (unasked(FACTS), approved(FACTS), approved(FACTS, network=True, credentials=True)):
        for line in rules(profile(policy)):
            assert line.count("(") == line.count(")") and line.startswith("(")


def test_all_is_denied_first() -> None:
    assert rules(profile(unasked(FACTS)))[:2] == ["(version 1)", "(deny default)"]


def test_what_nobody_was_asked_about_writes_to_devices_only_and_has_no_network() -> None:
    text = profile(unasked(FACTS))
    assert '(allow file-write* (subpath "/dev/null"))' in rules(text)
    assert "network" not in text
    [run] = [line for line in rules(text) if "process-exec" in line]
    assert '"/home/ann/p"' not in run


def test_what_is_protected_and_hidden_comes_after_what_is_allowed() -> None:
    lines = rules(profile(approved(FACTS)))
    allowed = next(at for at, line in enumerate(lines) if line.startswith("(allow file-write*"))
    denied = [at for at, line in enumerate(lines) if line.startswith("(deny file-")]
    assert min(denied) > allowed
    assert any(f'(subpath "{GIT}/hooks")' in lines[at] for at in denied)
    assert f'(deny file-write-unlink (literal "{GIT}"))' in lines


def test_the_network_is_as_the_answer_said() -> None:
    assert '(allow network-outbound (remote ip "localhost:*"))' in rules(profile(approved(FACTS)))
    assert "(allow network-outbound (remote ip))" not in rules(profile(approved(FACTS)))
    assert "(allow network-outbound (remote ip))" in rules(profile(approved(FACTS, network=True)))


def test_names_cannot_leave_their_quotes() -> None:
    text = profile(unasked(replace(FACTS, workspace='/home/a"b\\c')))
    assert '(subpath "/home/a\\"b\\\\c")' in text


def test_the_command_stands_last() -> None:
    line = arguments(unasked(FACTS), ["bash", "-c", ":"])
    assert line[:2] == ("/usr/bin/sandbox-exec", "-p") and line[3:] == ("bash", "-c", ":")
