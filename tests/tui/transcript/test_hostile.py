"""Whatever others wrote is shown as text, in rows that fit: rows 38 and 39 of what must not fail."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.lines.widths import width
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Finish,
    FinishPart,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    ShellCommand,
    ShellCommandPart,
)
from tests.tui.transcript.support import Screen, answer, call, message, printed, result, text_part, user, view_of

CONTROL = {chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))}
ANY = st.text(max_size=60) | st.sampled_from(
    [
        *("[red]x[/red]", "\x1b[2J\x1b]0;title\x07", "a\x00b", ">" * 400, "`" * 50, "**_~~" * 20, "| " * 40, "\t\t x"),
        *("```", "~~~~py", "- [ ] ", "1. ", "[a](b)", "<https://x>", "@@ -1 +1 @@", "+", "\\ No newline", "\r\n"),
        *(
            "👩‍👩‍👧",
            "שלום עולם",
            "e\u0301\u0302" * 20,
            "漢字" * 30,
            "\u202e",
            "\u200b",
            "\ufe0f",
            "\U0001f1e9\U0001f1ea",
        ),
    ]
)


@st.composite
def anything(draw: st.DrawFn) -> list[Message]:
    text = st.lists(ANY, max_size=5).map("\n".join)
    facts = st.builds(
        lambda diff, code: json.dumps({"diff": diff, "exit_code": code, "additions": 1, "removals": code}),
        text,
        st.integers(),
    )
    parts = st.lists(
        st.one_of(
            text.map(text_part),
            text.map(lambda each: ReasoningPart(data=Reasoning(thinking=each, signature=each))),
            st.builds(lambda name, given, whole: call("c", name, given, is_whole=whole), ANY, text, st.booleans()),
            text.map(lambda each: ShellCommandPart(data=ShellCommand(command=each, output=each, exit_code=1))),
            text.map(lambda each: BinaryPart(data=Binary(Path=each, MIMEType=each, Data=each))),
        ),
        max_size=4,
    )
    reasons = st.sampled_from(["end_turn", "error", "canceled", "max_tokens"])
    made: Sequence[Part] = draw(parts)
    end = Finish(reason=draw(reasons), time=1, message=draw(ANY), details=draw(ANY))  # type: ignore[arg-type]
    return [
        message("u", "user", *draw(parts)),
        message("a", "assistant", *made, FinishPart(data=end)),
        result("t", "c", draw(text), name=draw(ANY), facts=draw(facts | ANY), is_error=draw(st.booleans())),
    ]


@settings(max_examples=120, deadline=None)
@given(anything(), st.integers(1, 130), st.booleans(), st.text(max_size=3))
def test_row_39_any_content_in_any_field_is_shown_as_text(
    messages: list[Message], columns: int, is_open: bool, words: str
) -> None:
    screen = Screen(view_of(messages), columns, 30)
    screen.transcript.fold_all(is_open=is_open)
    screen.transcript.sync(screen.view, screen.now)
    screen.transcript.search(words)
    rows = [*screen.rows()]
    transcript = screen.transcript
    transcript.select(transcript.hit(0, 0), transcript.hit(len(rows) - 1, columns))
    for row in screen.rows():
        assert not CONTROL & set(row.text), ascii(row.text)
        assert width(row.text) <= columns
        assert not any(set(span.link) & CONTROL for span in row.spans)
    transcript.selected_text()
    assert "".join(text for text in screen.all_texts()) is not None


@pytest.mark.parametrize("columns", [40, 41, 79, 300])
def test_row_38_wide_and_combining_characters_stay_whole_and_borders_straight(columns: int) -> None:
    cells = "| 名前 | 値 |\n|---|---|\n| 漢字かな | 👩‍👩‍👧 emoji |\n| e\u0301a\u0308 | x |\n"
    sample = "漢字かな交じり文👩‍👩‍👧🇩🇪e\u0301a\u0308 한글 שלום עולם ไทย\t|tab\n" * 3 + "\n" + cells
    screen = Screen(view_of([user("u", sample), answer("a", sample), answer("b", f"```\n{sample}\n```")]), columns, 90)
    rows = screen.rows()
    assert all(width(row.text) <= columns for row in rows)
    whole = "".join(row.text for row in rows)
    assert whole.count("👩‍👩‍👧") == 12 and whole.count("e\u0301") == 12 and whole.count("🇩🇪") == 9
    assert not any(row.text.lstrip(" ┃").startswith(("\u0301", "\u200d", "\u0308")) for row in rows)
    table = [row.text for row in rows if "漢字かな " in row.text and "emoji" in row.text and "|" not in row.text]
    head = next(row.text for row in rows if "名前" in row.text and "|" not in row.text)
    assert width(head[: head.index("値")]) == width(table[0][: table[0].index("👩")])


def test_row_39_markup_and_escapes_of_a_running_command_are_text() -> None:
    view = view_of([message("a", "assistant", call("c", "bash", '{"command":"echo [red]\\u001b[2J"}'))])
    printed(view, "c", "\x1b[31m[bold]red\x1b[0m\x07\n\x00nul\r\n")
    rows = Screen(view, 60).texts()
    assert rows[:3] == ["● $ echo [red][2J", "  │ [bold]red", "  │ nul"]


@pytest.mark.parametrize(
    "text", [">" * 4000, "> " * 4000, "- " * 4000, "*" * 4000, "`" * 4000, "[" * 4000, "| " * 4000]
)
def test_row_16_marks_without_end_cost_little(text: str) -> None:
    screen = Screen(view_of([answer("a", text)]), 80, 24)
    rows = screen.rows()
    assert all(width(row.text) <= 80 for row in rows)
    assert screen.transcript._renderings.row_count < 20_000
