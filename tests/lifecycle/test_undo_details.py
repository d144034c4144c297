"""Cuts and undos of conversations that are not as they should be."""

from __future__ import annotations

import pytest

from covey.lifecycle.undo import turns_from, whole_until
from covey.protocol.messages import Message
from tests.lifecycle.test_undo_rules import asks, finish, ids, message, result

ASKED = message("b", "assistant", "r", asks("1"), finish("tool_use"))


def test_an_empty_id_is_no_run() -> None:
    assert turns_from([message("a", run_id="")], {}, "") == ()


@pytest.mark.parametrize(
    ("talk", "at", "kept"),
    [
        # a result that somebody's words part from its call is not worth taking them along
        ([message("a"), ASKED, message("c"), message("d", "tool", "r", result("1"))], "b", "a"),
        # a second result of the same call belongs to nothing
        (
            [message("a"), ASKED, message("c", "tool", "r", result("1")), message("d", "tool", "r", result("1"))],
            "c",
            "abc",
        ),
    ],
)
def test_a_cut_takes_only_the_results_that_are_missing_along(talk: list[Message], at: str, kept: str) -> None:
    assert ids(whole_until(talk, at)) == kept
