"""What the fake model says in the scenarios: text in which code points, bytes and what is seen all differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.fake_model import Call, Recorded, Reply

WORDS = "Grüße 🦜 👩‍👩‍👧 漢字かな e\u0301a\u0308 한글 {n} "
"""Accents as one code point and as two, an emoji of one code point and of five, CJK and Hangul."""
PROMPT = "Bitte prüfe das 漢字 🧪"
SLEEP = Call(name="bash", input={"command": "echo 始まり🚀; sleep 300"})
ECHO = Call(name="bash", input={"command": "touch größe.txt && echo 完了 ✅"})
LOOK = Call(name="view", input={"file_path": "notes.txt"})


def steps(*replies: Reply) -> Callable[[Recorded], Reply]:
    """One reply for each model call of a turn; the last one repeats."""
    return lambda request: replies[min(request.call_number, len(replies) - 1)]


def attempts(*replies: Reply) -> Callable[[Recorded], Reply]:
    """One reply for each request, whatever it is about; the last one repeats."""
    count = 0

    def answer(request: Recorded) -> Reply:
        nonlocal count
        count += 1
        return replies[min(count, len(replies)) - 1]

    return answer


def streamed(chunks: int = 12, gates: dict[int, str] | None = None, tools: Sequence[Call] = ()) -> Reply:
    return Reply(text=WORDS, chunks=chunks, gates=gates or {}, tools=tuple(tools))
