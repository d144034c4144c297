"""Search, links, and the item that the keyboard is on."""

from __future__ import annotations

from covey.lines.line import StyledLine
from tests.tui.transcript.support import Screen, answer, call, message, result, text_part, user, view_of


def marked(rows: tuple[StyledLine, ...], style: str) -> list[str]:
    return [span.text for row in rows for span in row.spans if span.style == style]


def test_a_search_goes_back_to_what_is_older_and_round() -> None:
    talk = [user(f"u{number}", f"needle {number}" if number % 10 == 0 else f"hay {number}") for number in range(50)]
    screen = Screen(view_of(talk), height=10)
    screen.rows()
    assert screen.transcript.search("nee") and screen.transcript.search("needle")
    assert "needle 40" in " ".join(screen.texts()) and screen.transcript.match_count == (5, 5)
    for number in (30, 20, 10, 0, 40):
        assert screen.transcript.previous_match()
        assert f"needle {number}" in " ".join(screen.texts())
    assert screen.transcript.next_match() and "needle 0" in " ".join(screen.texts())
    assert screen.transcript.match_count == (1, 5)
    assert marked(screen.rows(), "selected") == ["needle"] and not marked(screen.rows(), "found")
    assert not screen.transcript.search("nothing like this")
    assert screen.transcript.match_count == (0, 0)
    screen.transcript.search("")
    assert not marked(screen.rows(), "found")


def test_a_search_finds_any_case_across_wrapped_rows_and_opens_what_is_folded() -> None:
    output = "\n".join(f"line {number}" for number in range(500)).replace("line 250", "The NEEDLE in it")
    view = view_of([message("a", "assistant", call("c")), result("t", "c", output), answer("b", "tail " * 400)])
    screen = Screen(view, 60, 12)
    assert "NEEDLE" not in " ".join(screen.all_texts())
    assert screen.transcript.search("the needle")
    rows = screen.rows()
    assert marked(rows, "selected") == ["The NEEDLE"]
    assert screen.transcript.search("the needle in it\nline 251")
    assert marked(screen.rows(), "selected") == ["The NEEDLE in it", "line 251"]
    screen.transcript.search("")
    long = view_of([answer("a", "word " * 300 + "needle " + "word " * 300)])
    screen = Screen(long, 40, 5)
    screen.rows()
    assert screen.transcript.search("word needle word")
    assert " ".join(marked(screen.rows(), "selected")).split() == ["word", "needle", "word"]
    assert screen.transcript.search("word") and screen.transcript.next_match()
    assert len(marked(screen.rows(), "selected")) == 1 < len(marked(screen.rows(), "found"))


def test_a_search_finds_what_people_see_whatever_marks_are_in_it() -> None:
    source = "first\n\nwith **some** words and `code` in it\n\n" + "last\n\n" * 50
    screen = Screen(view_of([answer("a", source)]), height=10)
    screen.rows()
    for words in ("some words", "with SOME  words", "and code in", "words "):
        assert screen.transcript.search(words), words
        assert "with some words" in " ".join(screen.texts())
        screen.transcript.to_end()
        screen.transcript.search("")
    assert not screen.transcript.search("some(words") and not screen.transcript.search("  ")


def test_a_search_finds_commands_and_endings_without_opening_them() -> None:
    view = view_of([message("a", "assistant", call("c")), result("t", "c", "out"), user("u", "x " * 3000)])
    screen = Screen(view, 60, 12)
    screen.rows()
    assert screen.transcript.search("make TEST")
    assert marked(screen.rows(), "found") == ["make test"] and "  │ out" in screen.texts()


def test_urls_stay_whole_over_rows_and_places_in_files_lead_there() -> None:
    url = "https://example.org/a/very/long/path/that/is/wrapped?and=has&a=query#part"
    source = (
        f"See {url} and `src/a b.py` or `src/feed.py:12`, lib/x.rs:7. [here](javascript:alert) [mail](mailto:a@b.c)"
    )
    view = view_of([answer("a", source)])
    screen = Screen(view, 40)
    screen.transcript = type(screen.transcript)(root="/home/kim/feed")
    links = [(span.text, span.link) for row in screen.rows() for span in row.spans if span.link]
    assert "".join(text for text, link in links if link == url) == url
    assert ("src/feed.py:12", "file:///home/kim/feed/src/feed.py#12") in links
    assert ("lib/x.rs:7", "file:///home/kim/feed/lib/x.rs#7") in links
    assert {link for _, link in links if "java" in link or " b.py" in link} == set()
    assert any(link == "mailto:a@b.c" for _, link in links)


def test_what_a_program_printed_leads_to_its_places_too() -> None:
    output = "src/a.py:12: error: no\nsee https://example.org/" + "x" * 60 + "\n1:2 a.b:c http://"
    view = view_of([user("u", "look at lib/b.py:3"), message("a", "assistant", call("c")), result("t", "c", output)])
    screen = Screen(view, 50)
    screen.transcript = type(screen.transcript)(root="/w")
    screen.rows()
    screen.transcript.toggle("call c")
    links = [(span.text, span.link) for row in screen.rows() for span in row.spans if span.link]
    assert links[:2] == [("lib/b.py:3", "file:///w/lib/b.py#3"), ("src/a.py:12", "file:///w/src/a.py#12")]
    assert {link for _, link in links[2:]} == {"https://example.org/" + "x" * 60} and len(links) == 4


def test_the_keyboard_goes_from_item_to_item_and_the_screen_with_it() -> None:
    talk = [user("u", "q"), message("a", "assistant", text_part("long\n\n" * 40), call("c")), result("t", "c", "x")]
    screen = Screen(view_of(talk), height=10)
    screen.rows()
    transcript = screen.transcript
    seen = []
    for _ in range(4):
        transcript.step(-1)
        seen.append(transcript.focused)
        screen.rows()
    assert seen == ["call c", "a/0", "u", "u"]
    assert screen.texts()[0].startswith("▎ q")
    transcript.step(1)
    assert transcript.focused == "a/0"
    assert transcript.toggle("call c") and transcript.item_text("call c") == "x"


def test_older_messages_are_wanted_near_the_top_alone() -> None:
    view = view_of([user(f"u{number}", f"q{number}") for number in range(100)], has_older=True)
    screen = Screen(view)
    screen.rows()
    assert not screen.transcript.older_wanted
    screen.transcript.to_start()
    screen.rows()
    assert screen.transcript.older_wanted
    few = Screen(view_of([user("u", "q")], has_older=True))
    few.rows()
    assert few.transcript.older_wanted
    assert not Screen(view_of([user("u", "q")])).transcript.older_wanted


def test_rows_are_selected_by_keyboard() -> None:
    screen = Screen(view_of([user("u", "one\ntwo\nthree"), answer("a", "**four**")]))
    screen.rows()
    transcript = screen.transcript
    transcript.focus("u")
    transcript.extend(1)
    assert transcript.selected_text() == "one"
    transcript.extend(1)
    assert transcript.selected_text() == "one\ntwo"
    transcript.extend(-1)
    transcript.extend(1)
    transcript.extend(3)
    assert transcript.selected_text() == "one\ntwo\nthree\n\n**four**"
    transcript.select(None)
    transcript.focus("")
    transcript.extend(1)
    assert transcript.focused == "a/0" and transcript.selected_text() == "**four**"
    transcript.focus("")
    assert marked(screen.rows(), "selected") == ["  four"]
