"""Looking for words also in messages that are not loaded."""

from __future__ import annotations

from covey.client.view.inputs import MessagesLoaded, OlderWanted, SessionOpened
from covey.protocol.search import SearchHit
from covey.tui.face.effects import FindFurtherUp, GoToSession, LoadBackTo
from covey.tui.face.facts import BackLoaded, FoundFurtherUp, TextFound
from tests.tui.face.desk import Desk, a_prompt


def _desk() -> Desk:
    """Of a session whose last message is loaded, and no other."""
    desk = Desk(session="")
    desk.view.apply(SessionOpened("s1"))
    load = next(each for each in desk.view.loads if type(each).__name__ == "LoadMessages")
    desk.view.apply(MessagesLoaded(load.load, (a_prompt("m9", "r9", "a needle at the end"),), True))
    desk.look()
    return desk


def _load_older(desk: Desk, *texts: str) -> None:
    [load] = desk.view.apply(OlderWanted()).commands
    messages = tuple(a_prompt(f"m{n}", f"r{n}", text) for n, text in enumerate(texts, 1))
    desk.view.apply(MessagesLoaded(load.load, messages, False))
    desk.feed(BackLoaded())


def test_before_the_first_hit_that_is_loaded_comes_one_that_is_not() -> None:
    desk = _desk()
    desk.keys("ctrl+f")
    desk.write("needle")
    assert desk.did(FindFurtherUp)[-1] == FindFurtherUp("s1", "needle")
    desk.feed(FoundFurtherUp("needle", ("m9", "m1")))
    assert "1 of 1 · 1 message further up" in desk.text
    desk.keys("enter", "N")
    assert desk.did(LoadBackTo) == [LoadBackTo("s1", "m1")]
    assert "looking further up" in desk.text
    desk.keys("N")
    assert len(desk.did(LoadBackTo)) == 1, "one is on its way"
    _load_older(desk, "the first needle", "nothing here")
    assert "1 of 2 " in desk.text
    assert "further up" not in desk.text


def test_what_is_not_loaded_is_loaded_if_nothing_else_has_the_words() -> None:
    desk = _desk()
    desk.keys("ctrl+f")
    desk.write("haystack")
    assert "not found" in desk.text
    desk.feed(FoundFurtherUp("hay", ("m1",)))
    assert not desk.did(LoadBackTo), "these words are not looked for any more"
    desk.feed(FoundFurtherUp("haystack", ("m1",)))
    assert desk.did(LoadBackTo) == [LoadBackTo("s1", "m1")]
    _load_older(desk, "a haystack", "more")
    assert "1 of 1 " in desk.text


def test_words_that_do_not_stand_together_are_not_found_in_the_end() -> None:
    desk = _desk()
    desk.keys("ctrl+f")
    desk.write("two words")
    desk.feed(FoundFurtherUp("two words", ("m1",)))
    _load_older(desk, "words, two", "more")
    assert "not found" in desk.text
    assert len(desk.did(LoadBackTo)) == 1


def test_a_letter_or_a_session_that_is_loaded_asks_the_server_nothing() -> None:
    desk = _desk()
    desk.keys("ctrl+f")
    desk.write("n")
    assert desk.did(FindFurtherUp) == []
    loaded = Desk()
    loaded.keys("ctrl+f")
    loaded.write("needle")
    assert loaded.did(FindFurtherUp) == []


def test_who_chooses_a_hit_of_all_sessions_comes_to_the_place() -> None:
    desk = Desk(session="")
    hit = SearchHit(
        session_id="s1", title="a title", snippet="… the needle …", marks=((6, 12),), at=900, message_id="m1"
    )
    desk.feed(TextFound("the needle", (hit,)))
    assert desk.keys("enter") == [GoToSession("s1")]
    desk.view.apply(SessionOpened("s1"))
    desk.look()
    assert desk.state.search is None
    load = next(each for each in desk.view.loads if type(each).__name__ == "LoadMessages")
    messages = (a_prompt("m1", "r1", "here is the needle"), a_prompt("m2", "r2", "more"))
    desk.view.apply(MessagesLoaded(load.load, messages, False))
    desk.look()
    assert "search: the needle" in desk.text
    assert "1 of 1 " in desk.text
    desk.keys("escape")
    assert desk.state.search is None
