"""How long a message is for a model, what is left of a conversation that is too long, and which summary is seen."""

from __future__ import annotations

import pytest
from msgspec import structs

from covey.lifecycle import history
from covey.lifecycle.history import CHARACTERS_PER_TOKEN, IMAGE_CHARACTERS, MESSAGE_TOKENS
from covey.protocol.messages import Binary, BinaryPart, Message, Part, Role, ToolResult, ToolResultPart
from tests.lifecycle.test_history import call, in_short, message, result, text


def picture(content: str) -> Part:
    data = ToolResult(
        tool_call_id="c",
        name="view",
        content=content,
        metadata="",
        is_error=False,
        data="x" * 999,
        mime_type="image/png",
    )
    return ToolResultPart(data=data)


def binary(mime_type: str, size: int) -> Part:
    return BinaryPart(data=Binary(Path="a", MIMEType=mime_type, Data="x" * size))


@pytest.mark.parametrize(
    ("parts", "characters"),
    [
        ((), 0),
        ((text("x" * 400),), 400),
        ((text("x" * 403),), 400),  # what does not fill a token is none
        ((text("x" * 402), text("x" * 2)), 404),
        ((call("c", "y" * 600, "n" * 200),), 800),
        ((result("c", "z" * 803),), 800),
        ((picture("z" * 800),), 800 + IMAGE_CHARACTERS),
        ((binary("image/png", 100_000),), IMAGE_CHARACTERS),
        ((binary("text/plain", 4000),), 3000),  # base64 is longer than what it says
        ((text("x" * 400), call("c", "y" * 400, "")), 800),
    ],
)
def test_the_length_of_a_message_is_guessed_from_all_that_it_says(parts: tuple[Part, ...], characters: int) -> None:
    assert history.estimated_tokens(message("m", "user", *parts)) == MESSAGE_TOKENS + characters // CHARACTERS_PER_TOKEN


def sized(role: Role, tokens: int) -> Message:
    """A message that is guessed to be so long."""
    found = message(f"{role}{tokens}", role, text("x" * (tokens - MESSAGE_TOKENS) * CHARACTERS_PER_TOKEN))
    assert history.estimated_tokens(found) == tokens
    return found


ASKED, SAID, AGAIN, SAID_AGAIN, LAST = (
    sized("user", 100),
    sized("assistant", 200),
    sized("user", 300),
    sized("assistant", 400),
    sized("user", 500),
)
LONG = [ASKED, SAID, AGAIN, SAID_AGAIN, LAST]


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        (1_000_000, LONG),
        (1500, LONG),  # they fit exactly
        (1499, [AGAIN, SAID_AGAIN, LAST]),  # an answer without its question is left out as well
        (1400, [AGAIN, SAID_AGAIN, LAST]),
        (1200, [AGAIN, SAID_AGAIN, LAST]),
        (1199, [LAST]),
        (500, [LAST]),
        (499, [LAST]),  # too long even alone: there is nothing shorter to show
        (0, [LAST]),
    ],
)
def test_the_newest_messages_that_fit_are_kept_from_a_prompt_on(tokens: int, kept: list[Message]) -> None:
    assert list(history.shortened(LONG, tokens)) == kept


def test_without_a_prompt_what_fits_is_kept_with_the_calls_of_its_results() -> None:
    work = [
        sized("assistant", 100),
        sized("tool", 200),
        sized("tool", 300),
        sized("assistant", 400),
        sized("tool", 500),
    ]
    assert list(history.shortened(work, 1500)) == work
    assert list(history.shortened(work, 1499)) == work
    assert list(history.shortened(work, 1200)) == work
    assert list(history.shortened(work, 1199)) == work[3:]
    assert list(history.shortened(work, 900)) == work[3:]
    assert list(history.shortened(work, 1)) == work[3:]
    assert list(history.shortened(work[1:4], 1_000)) == work[1:4]  # there is no call to go back to


def test_a_single_message_is_kept_and_of_none_there_is_nothing() -> None:
    assert list(history.shortened([LAST], 1)) == [LAST]
    assert list(history.shortened([LAST], 1_000)) == [LAST]
    assert list(history.shortened([ASKED, LAST], 1)) == [LAST]
    assert list(history.shortened([], 1_000)) == []


def test_the_summary_of_the_session_is_seen_as_the_users_words_and_no_other_is() -> None:
    def summary(message_id: str) -> Message:
        said = message(message_id, "assistant", text(f"summary {message_id}"))
        return structs.replace(said, is_summary_message=True)

    messages = [ASKED, summary("s1"), message("u", "user", text("go on")), summary("s2")]
    marked = [history.SUMMARY_BEGINS, "summary s1", history.SUMMARY_ENDS]
    assert in_short(history.for_model(messages, "s1")) == [("user", marked), ("user", ["go on"])]
    assert in_short(history.for_model([messages[2], messages[3]])) == [("user", ["go on"])]
