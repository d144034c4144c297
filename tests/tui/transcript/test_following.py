"""Following the end, and staying where the user is: rows 3 to 6 of what must not fail."""

from __future__ import annotations

import random

import pytest

from covey.client.view.inputs import MessagesLoaded, OlderWanted
from covey.protocol.events import deleted
from tests.tui.transcript.support import Screen, answer, call, grow, message, put, result, text_part, user, view_of


def conversation(count: int, first: int = 0) -> list:  # type: ignore[type-arg]
    found = []
    for number in range(first, first + count):
        found += [user(f"u{number}", f"question {number}"), answer(f"a{number}", f"line one of {number}\n\nline two")]
    return found


def test_row_03_streaming_does_not_move_a_view_that_was_scrolled_up() -> None:
    view = view_of([*conversation(30), answer("a", "", is_finished=False)])
    screen = Screen(view)
    screen.rows()
    screen.transcript.scroll(-20)
    before = screen.rows()
    at = 0
    for number in range(500):
        piece = f"word{number} " + ("\n" if number % 7 == 0 else "")
        grow(view, "a", piece, at)
        at += len(piece)
        if number % 10 == 0:
            assert all(one is other for one, other in zip(before, screen.rows(), strict=True))
    assert screen.rows() == before
    assert not screen.transcript.is_following and screen.transcript.new_below > 50
    screen.transcript.to_end()
    assert "word499" in screen.texts()[-1] and screen.transcript.new_below == 0


def test_row_03_and_neither_do_results_folds_and_older_messages() -> None:
    view = view_of([*conversation(20), message("b", "assistant", call("c1"))], has_older=True)
    screen = Screen(view)
    screen.rows()
    screen.transcript.scroll(-15)
    before = screen.texts()
    put(view, result("t", "c1", "\n".join(map(str, range(50)))))
    assert screen.texts() == before
    screen.transcript.fold_all(is_open=True)
    assert screen.texts()[0] == before[0]
    screen.transcript.fold_all(is_open=False)
    (load,) = view.apply(OlderWanted()).commands
    view.apply(MessagesLoaded(load.load, tuple(conversation(10, 100)), False))  # type: ignore[union-attr]
    assert screen.texts() == before
    screen.transcript.to_start()
    assert "question 100" in screen.texts()[0]


def test_row_04_it_follows_from_the_first_line_that_overflows() -> None:
    view = view_of([answer("a", "", is_finished=False)])
    screen = Screen(view, height=10)
    at = 0
    for number in range(40):
        piece = f"line {number}\n\n"
        grow(view, "a", piece, at)
        at += len(piece)
        shown = [text for text in screen.texts() if text]
        assert shown[-1] == f"  line {number}" and screen.transcript.is_following
        if number < 4:
            assert shown[0] == "  line 0"


def test_who_scrolls_back_to_the_end_follows_again() -> None:
    screen = Screen(view_of(conversation(30)))
    screen.rows()
    screen.transcript.scroll(-1)
    screen.rows()
    assert not screen.transcript.is_following
    screen.transcript.scroll(5)
    assert screen.transcript.is_following
    screen.transcript.page(-1)
    screen.rows()
    screen.transcript.page(1)
    assert screen.transcript.is_following


def test_a_row_is_a_row_in_both_directions() -> None:
    screen = Screen(view_of([*conversation(8), user("u", "long " * 60)]), 60, 7)
    whole = screen.all_texts()
    for top in range(len(whole) - 7, -1, -1):
        assert screen.texts() == whole[top : top + 7]
        screen.transcript.scroll(-1)
    for top in range(len(whole) - 6):
        assert screen.texts() == whole[top : top + 7]
        screen.transcript.scroll(1)
    assert screen.transcript.is_following


def test_keys_and_clicks_may_come_when_what_is_shown_has_just_gone() -> None:
    view = view_of([*conversation(30), message("b", "assistant", call("c1"))])
    screen = Screen(view)
    screen.rows()
    for number in range(10, 30):
        for each in (f"u{number}", f"a{number}"):
            view.event(deleted(view.conversation.messages.get(each)), "1.1")  # type: ignore[arg-type]
    transcript = screen.transcript
    point = transcript.hit(3, 3)
    transcript.select(point, transcript.hit(20, 1))
    for act in (lambda: transcript.scroll(-30), lambda: transcript.step(-1), lambda: transcript.search("question 20")):
        act()
    assert transcript.selected_text() is not None
    assert "question 9" in " ".join(screen.all_texts())
    transcript.sync(view, screen.now)
    assert transcript.hit(3, 3) and transcript.toggle("call c1") is False
    view.conversation.show("other")
    transcript.scroll(-5)
    transcript.page(1)
    assert not any(screen.texts())


def test_what_is_opened_stays_under_the_hand_and_the_end_is_followed_again_when_it_is_closed() -> None:
    view = view_of([*conversation(9), message("b", "assistant", call("c1")), result("t", "c1", "line\n" * 50)])
    screen = Screen(view)
    before = screen.texts()
    assert screen.transcript.toggle("call c1")
    head = next(number for number, text in enumerate(before) if text.startswith("✓"))
    assert screen.texts()[: head + 1] == before[: head + 1] and not screen.transcript.is_following
    assert screen.transcript.toggle("call c1")
    assert screen.texts() == before and screen.transcript.is_following


SIZES = [(columns, height) for columns in (40, 57, 80, 111, 200) for height in (5, 11, 24, 50)]


def test_row_05_at_each_of_twenty_sizes_every_line_is_there_once_and_the_top_item_stays() -> None:
    lines = [f"numbered line {number:03} " + "and more words " * (number % 9) for number in range(200)]
    view = view_of([user("u", "go"), answer("a", "\n".join(lines[:100])), answer("b", "\n".join(lines[100:]))])
    screen = Screen(view)
    screen.rows()
    screen.transcript.scroll(-120)
    top = screen.texts()[0]
    number = next(text for text in screen.texts() if "numbered" in text).split()[2]
    for columns, height in SIZES:
        screen.columns, screen.height = columns, height
        assert any(f"line {number}" in text for text in screen.texts()[:2]), (columns, height, top)
        whole = " ".join(Screen(view, columns, height).all_texts())
        assert [whole.count(f"line {each:03} ") + whole.endswith(f"line {each:03}") for each in range(200)] == [1] * 200


@pytest.mark.parametrize("seed", range(3))
def test_row_06_resizes_in_a_stream_leave_nothing_out(seed: int) -> None:
    chance = random.Random(seed)
    source = "".join(
        chance.choice(
            [
                "# head\n",
                "word ",
                "**bold** ",
                "\n",
                "\n\n",
                "- item\n",
                "```py\nx = 1\n",
                "```\n",
                "> q\n",
                "x" * 90 + " ",
                "| a | b |\n",
                "漢字 ",
            ]
        )
        for _ in range(800)
    )
    view = view_of([user("u", "go"), message("a", "assistant", text_part(""))])
    screen = Screen(view)
    at = 0
    while at < len(source):
        piece = source[at : at + chance.randint(1, 40)]
        grow(view, "a", piece, at)
        at += len(piece)
        if chance.random() < 0.2:
            screen.columns, screen.height = chance.randint(40, 200), chance.randint(5, 60)
        if chance.random() < 0.1:
            screen.transcript.scroll(chance.randint(-50, 60))
        screen.rows()
    fresh = Screen(view, screen.columns, screen.height).all_rows()
    assert screen.all_rows() == fresh
    assert [row.source for row in screen.all_rows()] == [row.source for row in fresh]


@pytest.mark.parametrize("columns", [20, 40, 120])
def test_another_width_is_no_news(columns: int) -> None:
    screen = Screen(view_of([*conversation(20), answer("z", "a long paragraph of words " * 40)]))
    screen.rows()
    screen.transcript.scroll(-20)
    screen.columns = columns
    screen.rows()
    assert not screen.transcript.is_following and screen.transcript.new_below == 0


def test_when_all_is_folded_and_fits_nothing_is_below_any_more() -> None:
    output = "\n".join(map(str, range(50)))
    view = view_of([user("u", "why?"), message("a", "assistant", call("c")), result("t", "c", output)])
    screen = Screen(view)
    screen.transcript.fold_all(is_open=True)
    screen.rows()
    screen.transcript.to_start()
    assert not screen.transcript.is_following
    screen.transcript.fold_all(is_open=False)
    assert screen.transcript.is_following and "why?" in screen.texts()[0]
