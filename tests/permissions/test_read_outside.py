"""What a command sees outside of the workspace once somebody has allowed it to the letter."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, judge
from covey.permissions.links import LINK, Use
from covey.permissions.outside import read_outside

ROOT = "/w/project"


def bash(line: str, cwd: str = "") -> Intent:
    return Intent("bash", "execute", line, cwd=cwd)


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat /x/a.txt", ["/x/a.txt"]),
        ("cat ../a.txt here", [f"{ROOT}/../a.txt"]),
        ("ls ~/other | head -n 3", ["~/other"]),
        ("ls ~", ["~"]),
        ("cat < /x/a.txt", ["/x/a.txt"]),
        ("cat /x/*.txt", ["/x"]),
        ("grep -r word /x src && cat /y", ["/x", "/y"]),
        ("cd /x && ls", ["/x"]),
    ],
)
def test_a_line_that_only_looks_sees_the_places_that_it_names(line: str, paths: list[str]) -> None:
    assert list(read_outside(bash(line), ROOT)) == paths


@pytest.mark.parametrize(
    "line",
    [
        "cat src/a.py",
        "cp /x/a.txt .",
        "cat /x/a.txt > copy",
        "python3 run.py; cat /x/a.txt",
        "cat $HOME/a /x/a.txt",
        "cat /x/a.txt &",
        "cat ~/$(cat list)",
        "cat '",
    ],
)
def test_a_line_that_does_more_or_something_else_sees_nothing_there(line: str) -> None:
    assert read_outside(bash(line), ROOT) == ()


def test_a_directory_outside_to_run_in_is_seen_and_a_link_by_its_own_name() -> None:
    assert read_outside(bash("ls", cwd="/x"), ROOT) == ("/x",)

    def links(base: str, path: str, use: Use, *, pattern: bool) -> str:
        return LINK if path == "link" else ""

    assert read_outside(Intent("bash", "execute", "cat link a", links=links), ROOT) == (f"{ROOT}/link",)
    assert read_outside(Intent("view", "read", "/x/a.txt"), ROOT) == ()


@pytest.mark.parametrize(
    ("rule", "to_the_letter"),
    [("bash:cat /x/a.txt", True), ("bash:cat *", False), ("bash", False), ("bash:cat /x/[a].txt", False)],
)
def test_only_a_rule_without_a_pattern_allows_a_line_to_the_letter(rule: str, to_the_letter: bool) -> None:
    found = judge(bash("cat /x/a.txt"), Rules((rule,), root=ROOT), frozenset(), skip=False)
    assert (found.verdict, found.to_the_letter) == (Verdict.ALLOW, to_the_letter)


def test_an_answer_for_the_session_is_to_the_letter_and_neither_yolo_nor_a_mode_is() -> None:
    intent = bash("cat /x/a.txt")
    granted = frozenset({intent.grant})
    assert judge(intent, Rules(root=ROOT), granted, skip=False).to_the_letter
    assert not judge(intent, Rules(root=ROOT), frozenset(), skip=True).to_the_letter
    assert not judge(intent, Rules(root=ROOT), frozenset(), skip=False, mode="sandboxed").to_the_letter
