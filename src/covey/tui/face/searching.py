"""Looking for words in the conversation: in what is loaded, and with the help of the server in what is not. Pure.

The server knows which messages have all the words; whether they stand together is seen when a message has come.
"""

from __future__ import annotations

from dataclasses import replace

from covey.tui.face.editor import Editor
from covey.tui.face.effects import FindFurtherUp, LoadBackTo, Search
from covey.tui.face.facts import BackLoaded, FoundFurtherUp
from covey.tui.face.state import SearchBar
from covey.tui.face.step import FaceStep

SHORTEST = 2
"""Letters, before the server is asked: with fewer, everything would be found."""


def typed(step: FaceStep, bar: SearchBar) -> FaceStep:
    """Other words are looked for."""
    words = bar.query.text
    step = step.set(search=replace(bar, further_up=(), is_loading=False)).do(Search(words))
    if len(words.strip()) < SHORTEST or not step.view.conversation.has_older:
        return step
    return step.do(FindFurtherUp(step.view.current, words))


def arrive(step: FaceStep) -> FaceStep:
    """A session was chosen because of these words: it is there now, and they are looked for in it."""
    words = step.state.looked_for
    if not words or not step.view.current or not len(step.view.conversation.messages):
        return step
    step = step.set(looked_for="", focus="transcript")
    return typed(step, SearchBar(query=Editor(words, len(words)), is_typing=False))


def go(step: FaceStep, by: int) -> FaceStep:
    """To the next place, or the one before: beyond the first that is loaded, to what is not."""
    bar = step.state.search
    if bar is None:
        return step
    if by < 0 and bar.number <= 1 and bar.further_up:
        return _load(step, bar)
    return step.do(Search(bar.query.text, by))


def learn(step: FaceStep, fact: FoundFurtherUp | BackLoaded) -> FaceStep:
    bar = step.state.search
    if bar is None:
        return step
    if isinstance(fact, FoundFurtherUp):
        if fact.words != bar.query.text:
            return step
        bar = replace(bar, further_up=_unloaded(step, fact.message_ids))
        return _load(step, bar) if bar.further_up and not bar.total else step.set(search=bar)
    further_up = _unloaded(step, bar.further_up[1:])  # if the first did not come, it is not there any more
    bar = replace(bar, further_up=further_up, is_loading=False)
    return step.set(search=bar).do(Search(bar.query.text, -1 if bar.number else 0))


def found(step: FaceStep, number: int, total: int) -> FaceStep:
    """Where the search is now. Nothing in what is loaded: what is not may have it."""
    bar = step.state.search
    if bar is None:
        return step
    bar = replace(bar, number=number, total=total)
    return _load(step, bar) if bar.further_up and not total and not bar.is_loading else step.set(search=bar)


def _load(step: FaceStep, bar: SearchBar) -> FaceStep:
    if bar.is_loading:
        return step.set(search=bar)
    step = step.set(search=replace(bar, is_loading=True))
    return step.do(LoadBackTo(step.view.current, bar.further_up[0]))


def _unloaded(step: FaceStep, message_ids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in message_ids if each not in step.view.conversation.messages)
