"""Variables in strings: replaced once, from the given environment alone, and never executed."""

from __future__ import annotations

from typing import Any

import pytest

from covey.config.expand import expand
from covey.config.schema import ConfigError

ENVIRON = {"A": "one", "B_2": "two", "EMPTY": "", "NESTED": "$A ${A} $$"}


@pytest.mark.parametrize(
    ("text", "expected", "unset"),
    [
        ("plain", "plain", False),
        ("$A", "one", False),
        ("x$A/y", "xone/y", False),
        ("${A}bc", "onebc", False),
        ("$A$B_2", "onetwo", False),
        ("$$A", "$A", False),
        ("$$$A", "$one", False),
        ("$$", "$", False),
        ("$NONE", "", True),
        ("${NONE}", "", True),
        ("$Abc", "", True),
        ("$EMPTY", "", False),
        ("${NONE:-default}", "default", False),
        ("${EMPTY:-default}", "default", False),
        ("${A:-default}", "one", False),
        ("${NONE:-}", "", False),
        ("${NONE:-$A b}", "$A b", False),
        ("$NESTED", "$A ${A} $$", False),
        ("5$ $1 $( $(date) `date` a$", "5$ $1 $( $(date) `date` a$", False),
    ],
)
def test_a_string_is_expanded_once(text: str, expected: str, unset: bool) -> None:
    missing: list[str] = []
    assert expand({"k": text}, ENVIRON, missing) == {"k": expected}
    assert missing == (["k"] if unset else [])


@pytest.mark.parametrize("text", ["${", "${A", "${A-b}", "${1}", "${}", "${A:b}", "a ${A:-b"])
def test_a_broken_brace_is_a_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^a\.b: expected \$\{NAME\}"):
        expand({"a": {"b": [text]}}, ENVIRON, [])


def test_keys_and_other_values_stay_as_they_are() -> None:
    table: dict[str, Any] = {"$A": {"n": 1, "t": True, "f": 1.5, "l": ["$A", 2, {"x": "$NO $NO"}], "s": ["$NO", "$NO"]}}
    missing: list[str] = []
    expected = {"$A": {"n": 1, "t": True, "f": 1.5, "l": ["one", 2, {"x": " "}], "s": ["", ""]}}
    assert expand(table, ENVIRON, missing) == expected
    assert missing == ['"$A".l[2].x', '"$A".s']
