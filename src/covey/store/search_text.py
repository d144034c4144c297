"""What is searched of a message, what a query means, and which lines of a text are shown for it. Pure.

A query is words, never syntax: every phrase must be in the text, and the last one may be the beginning of a word. Texts
are cut into tokens by whoever holds the index, so that what is shown is what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from covey.protocol.messages import Message, ShellCommandPart, TextPart

TEXT_CHARS = 65_536
"""Of one message. Longer ones are pasted logs or whole files: their beginning says what they are about."""
QUERY_CHARS = 1_000
QUERY_PHRASES = 16
"""More of a query is left out: nobody types so much, and each phrase costs."""
SNIPPET_CHARS = 160
"""What fits on a line or two of a list."""
BEFORE_CHARS = 40
"""How much of a snippet stands before the first place that was found."""
PREFIX_CHARS = 2
"""One letter begins so many words that it would find everything."""


class Token(NamedTuple):
    """A word of a text as it is compared, and where it stands, in code points."""

    start: int
    end: int
    word: str


Tokenize = Callable[[str], Sequence[Token]]


class Phrase(NamedTuple):
    """Words that stand next to each other, such as both of `foo-bar`. `is_prefix`: the last may be a beginning."""

    words: tuple[str, ...]
    is_prefix: bool

    def matches(self, tokens: Sequence[Token], place: int) -> bool:
        if place + len(self.words) > len(tokens):
            return False
        *whole, last = self.words
        if any(tokens[place + number].word != word for number, word in enumerate(whole)):
            return False
        found = tokens[place + len(whole)].word
        return found.startswith(last) if self.is_prefix else found == last


class Snippet(NamedTuple):
    text: str
    places: tuple[tuple[int, int], ...]
    """Where the words of the query stand in it: start and end, in code points."""


class Hit(NamedTuple):
    """Something that a search found: a message, or the title of a session (then `message_id` and `role` are empty)."""

    session_id: str
    message_id: str
    role: str
    snippet: str
    """A part of the text, on one line."""
    places: tuple[tuple[int, int], ...]
    """Where in the snippet the words of the query stand: start and end, in code points."""
    at: int
    """When the message was made, or the session last changed."""


class Hits(NamedTuple):
    """The newest first."""

    titles: tuple[Hit, ...]
    messages: tuple[Hit, ...]
    is_complete: bool
    """False: messages that an older version has written are still being taken up."""


def searched_text(message: Message) -> str:
    """What people and models said; '' for a message of which nothing is searched.

    Neither thoughts nor results of tools: those repeat files of the project, which have a search of their own.
    """
    if message.role not in ("user", "assistant"):
        return ""
    said: list[str] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            said.append(part.data.text)
        elif isinstance(part, ShellCommandPart):
            said.append(part.data.command)
    return "\n".join(said)[:TEXT_CHARS]


def is_searchable(message: Message) -> bool:
    """Nothing is added to it any more. A message in progress would be taken up again with each piece of it."""
    return message.role == "user" or message.finish is not None


def phrases(query: str, tokenize: Tokenize) -> tuple[Phrase, ...]:
    """What to look for. Empty: the query has no word in it."""
    query = query[:QUERY_CHARS]
    found = [words for part in query.split() if (words := tuple(token.word for token in tokenize(part)))]
    found = found[:QUERY_PHRASES]
    is_typing = not query[-1:].isspace()
    return tuple(
        Phrase(words, is_typing and place == len(found) and len(words[-1]) >= PREFIX_CHARS)
        for place, words in enumerate(found, 1)
    )


def snippet(text: str, wanted: Sequence[Phrase], tokenize: Tokenize) -> Snippet:
    """The part of a text around the first place that was found, on one line."""
    tokens = tokenize(text)
    first = next(_places(tokens, wanted), None)
    start = max(0, first[0] - BEFORE_CHARS) if first else 0
    end = start + SNIPPET_CHARS
    places = []
    for begin, stop in _places(tokens, wanted):
        if stop > end:
            break
        places.append((begin - start, stop - start))
    shown = "".join(" " if character.isspace() else character for character in text[start:end])
    return Snippet(shown, tuple(places))


def _places(tokens: Sequence[Token], wanted: Sequence[Phrase]) -> Iterator[tuple[int, int]]:
    """Every place, in order and without overlap."""
    past = 0
    for place in range(len(tokens)):
        if place < past:
            continue
        length = max((len(phrase.words) for phrase in wanted if phrase.matches(tokens, place)), default=0)
        if length:
            past = place + length
            yield tokens[place].start, tokens[past - 1].end
