"""What a transcript costs, counted and not timed: rows 10 to 14 and 16 of what must not fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from covey.lines import markdown as markdown_module
from covey.lines.code import coloured
from covey.protocol.messages import Message
from covey.tui.face.face import Face
from covey.tui.face.state import FaceState
from covey.tui.inputs import FocusChange
from covey.tui.transcript import look, rendering
from covey.tui.transcript.course import KEPT_ENTRIES
from covey.tui.transcript.rendering import KEPT_ROWS
from tests.tui.transcript.support import NOW, Screen, answer, call, grow, message, put, result, user, view_of

PARAGRAPH = "Some **words** of an answer, with `code` and more of them, as long as such a paragraph is.\n\n" * 8
FENCE = "```python\ndef f(x):\n    return x + 1  # more\n```\n\n"


class Counts(Counter[str]):
    """Characters that were made to rows, by what made them."""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    found = Counts()
    add, pieces = markdown_module.MarkdownRows.add, look.piece_rows

    def counted_add(self: markdown_module.MarkdownRows, text: str) -> list:  # type: ignore[type-arg]
        found["markdown"] += len(text)
        return add(self, text)

    def counted_coloured(text: str, language: str):  # type: ignore[no-untyped-def]
        found["coloured"] += 1
        return coloured(text, language)

    def counted_pieces(piece, seen):  # type: ignore[no-untyped-def]
        rows = pieces(piece, seen)
        found["rows"] += len(rows)
        return rows

    monkeypatch.setattr(markdown_module.MarkdownRows, "add", counted_add)
    monkeypatch.setattr(markdown_module, "coloured", counted_coloured)
    monkeypatch.setattr(rendering, "piece_rows", counted_pieces)
    return found


def session(count: int) -> Iterator[Message]:
    """Turns of a question, a call and a long answer: about 400 tokens each."""
    for number in range(count):
        yield user(f"u{number}", f"question {number}")
        yield message(f"c{number}", "assistant", call(f"call{number}"))
        yield result(f"t{number}", f"call{number}", "line\n" * 20)
        yield answer(f"a{number}", PARAGRAPH + FENCE)


def test_row_14_a_million_tokens_open_at_the_cost_of_one_screen(counts: Counts) -> None:
    costs = []
    for count in (10, 2500):
        counts.clear()
        screen = Screen(view_of(session(count)), 120, 50)
        assert "return x + 1" in " ".join(screen.texts())
        costs.append(dict(counts))
        known = screen.transcript._course._known
        assert len(known) < 20
    assert costs[0] == costs[1]
    assert costs[1]["markdown"] < 20_000


def test_row_10_after_ten_thousand_messages_a_frame_costs_the_same(counts: Counts) -> None:
    view = view_of([*session(2500), answer("a", "", is_finished=False)])
    screen = Screen(view, 120, 50)
    screen.rows()
    counts.clear()
    for number in range(100):
        grow(view, "a", "word ", 5 * number)
        screen.rows()
    assert counts["markdown"] == 500 and counts["rows"] <= 1
    counts.clear()
    assert all(one is other for one, other in zip(screen.rows(), screen.rows(), strict=True))
    assert not counts


def test_row_11_what_is_kept_is_bounded_by_what_is_shown() -> None:
    view = view_of(session(400))
    screen = Screen(view, 120, 50)
    screen.rows()
    for _ in range(100):
        screen.transcript.page(-1)
        screen.rows()
    transcript = screen.transcript
    assert transcript._renderings.row_count <= KEPT_ROWS + 200
    assert transcript._renderings.row_count == sum(len(each.rows) for each in transcript._renderings._known.values())
    assert len(transcript._course._known) <= KEPT_ENTRIES + 100
    assert len(transcript._course._cutter._known) <= 256
    assert transcript.search("question 3 nowhere") is False
    screen.rows()
    screen.rows()
    assert len(transcript._course._known) <= KEPT_ENTRIES + 100


@pytest.mark.parametrize("content", ["x" * 1_000_000, "line of output\n" * 100_000, "\n" * 300_000])
def test_row_16_opening_a_huge_result_renders_one_screen_of_it(counts: Counts, content: str) -> None:
    view = view_of([message("a", "assistant", call("c")), result("t", "c", content), answer("b", "done")])
    screen = Screen(view, 100, 40)
    screen.rows()
    counts.clear()
    screen.transcript.toggle("call c")
    screen.rows()
    for _ in range(20):
        screen.transcript.page(-1)
        screen.rows()
    assert counts["rows"] < 3000
    screen.transcript.to_start()
    assert screen.texts()[0].startswith("✓ $ make test")
    assert counts["rows"] < 3500


def test_row_16_so_does_a_huge_diff() -> None:
    lines = "".join(f"+line {number}\n" for number in range(50_000))
    facts = '{"diff":"@@ -0,0 +1,50000 @@\\n' + lines.replace("\n", "\\n") + '","additions":50000,"removals":0}'
    view = view_of([message("a", "assistant", call("c", "write", "{}")), result("t", "c", "ok", facts=facts)])
    screen = Screen(view, 100, 40)
    assert "+50000" in screen.texts()[0] and "many more lines" in " ".join(screen.texts())
    screen.transcript.toggle("call c")
    assert screen.texts()[-1].split() == ["39", "+", "line", "38"]
    screen.transcript.to_end()
    assert screen.texts()[-1].split() == ["50000", "+", "line", "49999"]
    assert screen.transcript._renderings.row_count < 1000


def test_a_delta_costs_what_it_brings_also_in_a_long_open_fence(counts: Counts) -> None:
    view = view_of([answer("a", "", is_finished=False)])
    screen = Screen(view, 100, 40)
    source = "```python\n" + "value = compute(1, 'text')  # why\n" * 1500
    grow(view, "a", source, 0)
    screen.rows()
    counts.clear()
    at = len(source)
    for number in range(200):
        piece = f"x{number} = {number}\n"
        grow(view, "a", piece, at)
        at += len(piece)
        screen.rows()
    assert counts["markdown"] < at - len(source) + 2 * 8192
    assert counts["coloured"] < 200 + 2 * 200  # each line once; a new segment begins now and then


def test_row_12_five_thousand_deltas_are_one_frame(counts: Counts) -> None:
    view = view_of([answer("a", "", is_finished=False)])
    screen = Screen(view)
    screen.rows()
    counts.clear()
    for number in range(5000):
        grow(view, "a", "word ", 5 * number)
    screen.rows()
    assert counts["markdown"] <= 25_000 and counts["rows"] == 0


def test_row_13_nothing_is_laid_out_anew_when_the_focus_comes_or_goes(counts: Counts) -> None:
    face = Face(FaceState(width=100, height=50))
    face.view = view_of(session(2500))
    before = face.frame(NOW).rows
    counts.clear()
    for is_focused in (False, True) * 3:
        assert face.feed(FocusChange(is_focused), NOW) == []
        rows = face.frame(NOW).rows
        conversation = slice(2, 40)
        assert all(one is other for one, other in zip(before[conversation], rows[conversation], strict=True))
    assert not counts


def test_a_resize_wraps_only_what_is_shown(counts: Counts) -> None:
    screen = Screen(view_of(session(500)), 120, 50)
    screen.rows()
    screen.transcript.scroll(-500)
    screen.rows()
    counts.clear()
    screen.columns = 80
    screen.rows()
    assert counts["markdown"] < 20_000


def test_a_table_that_grows_is_held_to_itself(counts: Counts) -> None:
    view = view_of([answer("a", PARAGRAPH * 20, is_finished=False)])
    screen = Screen(view)
    screen.rows()
    counts.clear()
    at = len(PARAGRAPH * 20)
    for number in range(50):
        piece = f"| {number} | cell |\n"
        grow(view, "a", piece, at)
        at += len(piece)
        screen.rows()
    assert counts["markdown"] < 1000
    assert screen.texts()[-1].split() == ["49", "cell"]


def test_a_result_takes_the_place_of_its_running_call(counts: Counts) -> None:
    view = view_of([*session(20), message("b", "assistant", call("new"))])
    screen = Screen(view)
    assert screen.texts()[-1].startswith("● $ make test")
    counts.clear()
    put(view, result("new", "new", "all good\n\nexit code 0"))
    assert screen.texts()[-2:] == ["✓ $ make test", "  │ all good"]
    assert counts["markdown"] < 3000
