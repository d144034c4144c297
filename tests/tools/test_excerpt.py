"""What an edit shows of the file after it, and what a wrong argument is told."""

from __future__ import annotations

import pytest

from covey.tools.base import ToolContext, ToolFailed
from covey.tools.diffs import unified
from covey.tools.excerpt import LINE_CHARACTERS, LINES_LIMIT, around
from covey.tools.registry import make_tools

pytestmark = pytest.mark.anyio

TEN = "".join(f"line {n}\n" for n in range(1, 11))


def shown(before: str, after: str) -> list[str]:
    return around(after, unified(before, after, "a").spans).split("\n")


def test_the_lines_around_a_change_are_shown_with_their_numbers() -> None:
    assert shown(TEN, TEN.replace("line 5", "five\nand a half")) == [
        f"{n:6}\t{text}"
        for n, text in enumerate(["line 2", "line 3", "line 4", "five", "and a half", "line 6", "line 7", "line 8"], 2)
    ]


def test_where_lines_are_gone_their_neighbours_are_shown() -> None:
    assert shown(TEN, TEN.replace("line 10\n", "")) == ["     7\tline 7", "     8\tline 8", "     9\tline 9"]
    assert shown(TEN, "") == [""]


def test_places_that_are_far_apart_are_shown_apart_and_near_ones_together() -> None:
    text = "".join(f"{n}\n" for n in range(100))
    far = shown(text, text.replace("\n10\n", "\nten\n").replace("\n90\n", "\nninety\n"))
    assert far.count("   ...") == 1 and len(far) == 15
    assert "   ..." not in shown(text, text.replace("\n10\n", "\nten\n").replace("\n14\n", "\nfourteen\n"))


def test_what_is_shown_is_bounded() -> None:
    text = "".join(f"{n}\n" for n in range(1000))
    everywhere = shown(text, text.replace("0\n", "0 changed\n"))
    assert len(everywhere) < 2 * LINES_LIMIT
    assert everywhere[-1] == "[... more places were changed]"
    block = shown("", text)
    assert len(block) == LINES_LIMIT + 1 and block[-1] == f"[... {1000 - LINES_LIMIT} more lines]"
    (line,) = shown("", "x" * 10_000)
    assert len(line) < LINE_CHARACTERS + 50


async def test_an_edit_shows_what_is_there_now(context: ToolContext) -> None:
    tools = make_tools()
    (context.root / "a.txt").write_text(TEN)
    await tools["view"].run(tools["view"].decode('{"file_path": "a.txt"}'), context)
    call = '{"file_path": "a.txt", "old_string": "line 2", "new_string": "two"}'
    output = await tools["edit"].run(tools["edit"].decode(call), context)
    assert output.content.startswith("Edited a.txt in 1 place (line 2).\nNow there is:\n     1\tline 1\n     2\ttwo\n")
    written = await tools["write"].run(tools["write"].decode('{"file_path": "b", "content": "b"}'), context)
    assert "Now there is" not in written.content, "the model has just written all of it"


@pytest.mark.parametrize(
    ("tool", "text", "advice"),
    [
        (
            "view",
            '{"file_nam": "a"}',
            "unknown field `file_nam`; did you mean `file_path`? The fields are: `file_path`,",
        ),
        ("view", "{}", "missing required field `file_path`. The fields are: `file_path`, `offset` (optional)"),
        (
            "question",
            '{"questions": [{"question": "?", "type": "text"}]}',
            '`$.questions[0].type`; it is one of "free_text", "multi_choice", "single_choice", "yes_no". The fields',
        ),
        ("view", '{"zzz": 1}', "unknown field `zzz`. The fields are: `file_path`"),
        (
            "multiedit",
            '{"file_path": "a", "edits": [{"old_txt": "a", "new_string": "b"}]}',
            "unknown field `old_txt` - at `$.edits[0]`; did you mean `old_string`? The fields there are: `old_",
        ),
        ("view", '{"file_path": 7}', "Expected `str`, got `int` - at `$.file_path`. The fields there are: `file_path`"),
    ],
)
def test_a_wrong_argument_names_the_right_ones(tool: str, text: str, advice: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        make_tools()[tool].decode(text)
    assert advice in str(failed.value)
