"""What is left of a conversation that is too long to be read: words first, and what tools gave last."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest

from covey.lifecycle.fitting import MATERIAL_CHARACTERS, WORDS_CHARACTERS, clip, fitted, tokens_of
from covey.protocol.messages import Binary, BinaryPart, Message, ShellCommand, ShellCommandPart
from tests.lifecycle.test_history import call, message, result, text

LINES = "".join(f"line {number}\n" for number in range(20_000))


def steps(count: int, content: str = LINES, tool_input: str = "{}") -> list[Message]:
    """A prompt, so many steps with a call each, and an answer."""
    messages = [message("u", "user", text("build it"))]
    for number in range(count):
        call_id = f"c{number}"
        messages.append(message(f"a{number}", "assistant", text(f"step {number}"), call(call_id, tool_input)))
        messages.append(message(f"t{number}", "tool", result(call_id, content)))
    return [*messages, message("end", "assistant", text("it is built"))]


def contents(messages: Sequence[Message]) -> list[str]:
    return [found.content for each in messages for found in each.tool_results]


def test_what_fits_is_not_touched() -> None:
    messages = steps(2)
    found = fitted(messages, tokens_of(messages))
    assert found.messages is messages and not found.left_out


def test_a_text_that_is_clipped_has_its_beginning_its_end_and_how_much_is_missing() -> None:
    clipped = clip("a" * 5_000 + "b" * 5_000, 1_000)
    assert len(clipped) <= 1_000 and clipped.startswith("aaa") and clipped.endswith("bbb")
    kept = len(clipped) - len(clipped.strip("ab"))
    assert kept > 900 and f"[... {10_000 - kept:,} characters are left out here ...]" in clipped
    assert clip("short", 1_000) == "short"


def test_long_results_lose_their_middle_and_nothing_else_is_lost() -> None:
    messages = [*steps(4), message("v", "user", text("and a door"))]
    found = fitted(messages, 10_000)
    assert tokens_of(found.messages) <= 10_000 and not found.left_out
    assert [each.text for each in found.messages] == [each.text for each in messages]
    for content in contents(found.messages):
        assert content.startswith("line 0\n") and content.endswith("line 19999\n") and "are left out here" in content
    assert tokens_of(found.messages) > 9_000, "no more is cut than has to be"


def test_a_short_result_stays_whole_beside_a_long_one() -> None:
    messages = steps(1)
    messages[2] = message("t", "tool", result("c0", "all is well"), result("c1", LINES))
    assert contents(fitted(messages, 5_000).messages)[0] == "all is well"


def test_files_and_outputs_that_came_with_a_prompt_lose_their_middle_too() -> None:
    data = base64.b64encode(LINES.encode()).decode()
    attached = BinaryPart(data=Binary(Path="a.txt", MIMEType="text/plain", Data=data))
    ran = ShellCommandPart(data=ShellCommand(command="ls", output=LINES, exit_code=0, share=True))
    found = fitted([message("u", "user", text("look"), attached, ran)], 3_000)
    assert tokens_of(found.messages) <= 3_000
    words, file, output = found.messages[0].parts
    assert words == text("look")
    assert isinstance(file, BinaryPart) and base64.b64decode(file.data.Data).endswith(b"line 19999\n")
    assert isinstance(output, ShellCommandPart) and output.data.output.startswith("line 0\n")


def test_a_picture_is_never_cut() -> None:
    shown = BinaryPart(data=Binary(Path="a.png", MIMEType="image/png", Data="x" * 100_000))
    assert fitted([message("u", "user", text("word " * 9_000), shown)], 2_000).messages[0].parts[1] == shown


def test_when_results_can_be_no_shorter_the_oldest_calls_go_and_what_was_said_stays() -> None:
    messages = steps(40)
    found = fitted(messages, MATERIAL_CHARACTERS // 4 * 20)
    assert tokens_of(found.messages) <= MATERIAL_CHARACTERS // 4 * 20 and not found.left_out
    said = "".join(each.text for each in found.messages)
    assert all(f"step {number}" in said for number in range(40)) and "it is built" in said
    kept = contents(found.messages)
    assert 10 < len(kept) < 20 and all(len(content) <= MATERIAL_CHARACTERS for content in kept)
    assert "What was done here is left out: view." in said


def test_long_inputs_of_calls_go_before_the_words_around_them() -> None:
    found = fitted(
        [*steps(2, "ok", '{"content": "' + "x" * 100_000 + '"}'), message("v", "user", text("go on"))], 2_000
    )
    assert tokens_of(found.messages) <= 2_000 and not found.left_out
    assert [each.role for each in found.messages] == ["user", "assistant", "user"], "roles still take turns"
    assert "it is built" in found.messages[1].text


@pytest.mark.parametrize("tokens", [*range(50, 2_000, 150), 5_000, 20_000])
def test_every_call_that_is_left_has_its_result_and_answers_never_follow_each_other(tokens: int) -> None:
    found = list(fitted(steps(8, LINES[:6_000]), tokens).messages)
    for number, each in enumerate(found):
        follows = found[number + 1].role if number + 1 < len(found) else ""
        assert follows == "tool" if each.tool_calls else each.role != "assistant" or follows != "assistant"


def test_long_words_lose_their_middle_before_a_message_is_left_out() -> None:
    long = "begin " + "word " * 10_000 + "end"
    messages = [
        message("u", "user", text(long)),
        message("a", "assistant", text("yes")),
        message("v", "user", text("b")),
    ]
    found = fitted(messages, WORDS_CHARACTERS // 4 + 100)
    assert not found.left_out and found.messages[0].text.startswith("begin") and found.messages[0].text.endswith("end")


def test_the_oldest_messages_go_last_of_all_and_that_is_said() -> None:
    messages = [message(str(n), "user" if n % 2 == 0 else "assistant", text(f"{n} " * 300)) for n in range(21)]
    found = fitted(messages, 1_000)
    assert found.left_out and tokens_of(found.messages) <= 1_000
    assert list(found.messages) == messages[len(messages) - len(found.messages) :]


def test_of_a_single_message_that_is_too_long_there_is_a_beginning_and_an_end() -> None:
    found = fitted([message("u", "user", text("begin " + "word " * 10_000 + "end"))], 100)
    assert tokens_of(found.messages) <= 100 and not found.left_out
    assert found.messages[0].text.startswith("begin") and found.messages[0].text.endswith("end")
