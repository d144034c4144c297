"""Which of many texts fit a few letters, and how well. Pure; a list of some thousands is looked through at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def score(query: str, text: str) -> tuple[int, tuple[int, ...]] | None:
    """How well the letters of the query are in the text, in their order (less is better), and where. None: not."""
    lowered, wanted = text.casefold(), query.casefold().replace(" ", "")
    if len(lowered) != len(text):
        lowered = text.lower() if len(text.lower()) == len(text) else text
    if (at := lowered.find(query.casefold())) >= 0 and query:
        is_start = at == 0 or not text[at - 1].isalnum()
        is_all = len(query) == len(text)
        return (-1 if is_all else at if is_start else 100 + at), tuple(range(at, at + len(query)))
    places: list[int] = []
    at = -1
    for letter in wanted:
        at = lowered.find(letter, at + 1)
        if at < 0:
            return None
        places.append(at)
    gaps = places[-1] - places[0] - len(places) if places else 0
    return 1000 + gaps * 4 + (places[0] if places else 0), tuple(places)


def best(query: str, items: Iterable[T], text_of: Callable[[T], str]) -> list[T]:
    """Those that fit, the best first; without a query all, in their order."""
    if not query.strip():
        return list(items)
    found: list[tuple[int, int, T]] = []
    for number, item in enumerate(items):
        if fits := score(query.strip(), text_of(item)):
            found.append((fits[0], number, item))
    return [item for _, _, item in sorted(found, key=lambda each: each[:2])]


def places(query: str, text: str) -> Sequence[int]:
    fits = score(query.strip(), text) if query.strip() else None
    return fits[1] if fits else ()
