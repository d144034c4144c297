"""The head of a Markdown file: what people write there is read, also where it is no YAML."""

from __future__ import annotations

import pytest

from covey.context.front_matter import FrontMatter, Value, read_front_matter


def fields(head: str) -> dict[str, Value]:
    return dict(read_front_matter(f"---\n{head}\n---\nbody\n").fields)


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("a: plain words", "plain words"),
        ("a: words # a comment", "words"),
        ("a: C# is a language", "C# is a language"),
        ('a: "quoted: \\"words\\" \\u00e9\\n"', 'quoted: "words" é\n'),
        ("a: 'it''s' # a comment", "it's"),
        ("a: one\n  two\n  three", "one two three"),
        ("a: |\n  one\n    two\n\n  three", "one\n  two\n\nthree"),
        ("a: >-\n  one\n  two\n\n  three", "one two\nthree"),
        ("a: [x, 'y, z', \"w\"]", ("x", "y, z", "w")),
        ("a: [x,\n  y]", ("x", "y")),
        ("a:\n  - x\n  - 'y: z'\n  # no item\n  - w", ("x", "y: z", "w")),
        ("a:\n- x\n- y", ("x", "y")),
        ("a:\n  b: c\n  d: 'e'", {"b": "c", "d": "e"}),
        ("a:", ""),
        ("a: true", "true"),
        ('"a": b', "b"),
        ("# a: no\na: yes", "yes"),
        ("a: one\na: two", "two"),
    ],
)
def test_values_are_read_as_yaml_would(head: str, value: Value) -> None:
    assert fields(head)["a"] == value


def test_s1_a_head_that_is_no_yaml_is_read_all_the_same() -> None:
    read = fields('name: review\ndescription: Use when: the user says "review": look: then tell\n\tbad\n}}}\nmodel: x')
    assert read["name"] == "review"
    assert read["description"] == 'Use when: the user says "review": look: then tell bad'
    assert read["model"] == "x"


@pytest.mark.parametrize("text", ["", "no head", "---\nname: x\nno end", "a\n---\nb: c\n---\n", "----\na: b\n----\n"])
def test_a_file_without_a_head_is_all_body(text: str) -> None:
    assert read_front_matter(text) == FrontMatter(text.strip())


def test_what_stands_before_the_head_and_how_lines_end_does_not_matter() -> None:
    read = read_front_matter("\ufeff\r\n---\r\na: b\r\n---\r\nbody\r\n---\r\nmore\r\n")
    assert (dict(read.fields), read.body) == ({"a": "b"}, "body\n---\nmore")


def test_lists_may_be_written_as_words() -> None:
    read = read_front_matter("---\ntools: Read, Bash(git add, git commit), Grep\nno: off\nyes: True\n---\n")
    assert read.words("tools") == ("Read", "Bash(git add, git commit)", "Grep")
    assert read.is_unset("no") and read.is_set("yes") and not read.is_set("none") and not read.is_unset("none")
    assert read.text("none") == "" and read.words("none") == ()


def test_a_hostile_head_costs_no_more_than_its_length() -> None:
    for head in (
        "a: " + '"\\' * 30_000,
        "a: " + "[" * 60_000,
        ("a" * 99 + ":") * 600,
        "a:\n" + "- x\n" * 490,
        "'" * 9_999,
    ):
        assert isinstance(fields(head), dict)
