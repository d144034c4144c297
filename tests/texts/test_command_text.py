"""What a command says with its arguments: text, and no shell."""

from __future__ import annotations

import pytest

from covey.context.command_text import MAX_TEXT, expand_command, parse_command


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("/review", ("review", "")),
        ("/git:commit  all of it ", ("git:commit", "all of it")),
        ("/review two\nlines", ("review", "two\nlines")),
        (" /review", None),
        ("/usr/bin is a path", None),
        ("/ review", None),
        ("review /now", None),
        ("", None),
        ("//", None),
    ],
)
def test_a_prompt_that_begins_with_a_slash_and_a_name_asks_for_a_command(
    prompt: str, asked: tuple[str, str] | None
) -> None:
    assert parse_command(prompt) == asked


@pytest.mark.parametrize(
    "hostile", ["$(rm -rf /)", "`id`", "a'b\"c", "!`id`", "$ARGUMENTS $1", "{command}", "\\1 \\g<0>"]
)
def test_s9_arguments_arrive_as_text(hostile: str) -> None:
    assert expand_command("Say: $ARGUMENTS.", hostile) == f"Say: {hostile}."
    assert expand_command("Do it.", hostile) == f"Do it.\n\n{hostile}"


def test_s9_a_shell_command_in_a_file_is_a_wish_to_call_bash() -> None:
    text = expand_command("Changes:\n!`git diff $1`\nUse `code!` and !`ls`.", "HEAD; rm x")
    assert text.count("call bash for it") == 2
    assert "`git diff HEAD;`" in text and "Use `code!` and (" in text


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("$1-$2-$3", "a b", "a-b-"),
        ("$1|$2", "'two words' b", "two words|b"),
        ("$1", "it's", "it's"),
        ("costs $10 or $1", "x", "costs $10 or x"),
        ("$ARGUMENTS[1]", "a b", "b"),
        ("$ARGUMENTS_X", "a", "$ARGUMENTS_X\n\na"),
        ("no place", "", "no place"),
        ("no place", "a b", "no place\n\na b"),
        ("$ARGUMENTS", "", ""),
    ],
)
def test_s10_places_are_filled_and_without_any_the_arguments_follow(body: str, arguments: str, text: str) -> None:
    assert expand_command(body, arguments) == text


def test_a_command_that_repeats_its_arguments_has_an_end() -> None:
    assert len(expand_command("$ARGUMENTS" * 1000, "x" * 20_000)) == MAX_TEXT
