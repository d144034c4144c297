"""What an error of a provider says and means, whatever its shape. Pure: texts and bytes in, words for people out."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import msgspec

SNIPPET = 200
"""How much of something strange is shown: enough to recognise it."""
MAX_ERROR_TEXT = 1000
"""Some servers quote the whole request in their errors."""

NOT_AN_API = "answered with a web page: this does not look like the API of a model, so check base_url"
TOO_DEEP = "sent JSON that is nested too deeply: no answer of a model is"
CUT_OFF = "stopped before the end: the answer was cut off"


class Trouble(Enum):
    """What kind of error it is: what can be done about it depends on nothing else."""

    REFUSED = "refused"
    """The same request would fail in the same way."""
    AUTH = "auth"
    OVERFLOW = "overflow"
    BUSY = "busy"
    """Of the moment: it may pass."""
    CUT = "cut"
    """The answer has no end: the connection, or what is before the model, has lost it."""
    SILENT = "silent"
    """Nothing came for so long that it was given up, before the answer or within it."""
    SPENT = "spent"
    """A quota or a credit is used up: waiting does not cure it, another provider may."""


class AnswerBroken(Exception):
    """The answer is an error, has no end, or is no answer. The text goes on where "the server" ends."""

    def __init__(self, text: str, trouble: Trouble = Trouble.REFUSED) -> None:
        super().__init__(text)
        self.trouble = trouble


_OVERFLOW = re.compile(
    rb"""(?ix)
      context_length_exceeded | context_window_exceeded | exceed_context_size_error | model_context_window_exceeded
    | string_above_max_length | request_too_large
    | (maximum|max|available|model(\\?'s)?) \s+ context \s+ (length|window|size)
    | context \s+ (length|window|size) \s+ (of|is) \s+ (only \s+)? [\d,]+ \s+ tokens
    | (exceed\w* | (too \s+ (long|large|big)) \s+ for | overflows?) \s+ (\w+ \W+){0,4} context \s* (length|window|size)
    | context \s+ (length|window|size) \s+ (was \s+ |is \s+ |has \s+ been \s+)? exceeded
    | greater \s+ than \s+ the \s+ context \s+ length
    | (prompt|input) \s+ (is \s+)? too \s+ (long|large)
    | input \s+ (token \s+ count | length) \b [^"]{0,60} exceeds
    | reduce \s+ the \s+ length \s+ of \s+ the \s+ (messages|prompt|input)
    | request \s+ too \s+ large \s+ for \s+ model
    | reached \s+ context \s+ length | max_tokens \s+ must \s+ be \s+ at \s+ least \s+ 1, \s+ got \s+ -
    """
)
"""How OpenAI, Azure, Anthropic, Google, OpenRouter, Groq, DeepSeek, vLLM, llama.cpp, LM Studio and Ollama say it."""
_SPENT = re.compile(
    rb"(?i)insufficient_quota|insufficient[ _](balance|credits?|funds)|credit balance is too low|billing_"
)
_NOT_THE_KEY = re.compile(rb'(?i)"flagged_input"|requires moderation|unsupported_country')


_CODES = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The names of errors that come inside of an answer, and the status that the same trouble has outside of one."""


def judge(status: int, body: bytes) -> Trouble:
    """What an error means; `status` is 0 where it came without one, inside an answer."""
    if status not in (401, 403) and _OVERFLOW.search(body):
        return Trouble.OVERFLOW
    if status == 403 and _NOT_THE_KEY.search(body):
        return Trouble.REFUSED
    if status in (401, 403):
        return Trouble.AUTH
    if status == 402 or _SPENT.search(body):
        return Trouble.SPENT
    if status == 413:
        return Trouble.OVERFLOW
    if status in (408, 429) or status >= 500:
        return Trouble.BUSY
    return Trouble.REFUSED


def reported(error: Any, status: int = 0) -> AnswerBroken:
    """An error that came inside of an answer, decoded. A code in it that looks like a status counts as one."""
    data = msgspec.json.encode(error)
    if not status:
        status = _code_of(error)
    return AnswerBroken(f"reported an error: {error_text(error) or snippet(data)}", judge(status, data))


def _code_of(error: Any) -> int:
    match error:
        case {"error": dict(inner)}:
            return _code_of(inner)
        case dict():
            codes = [str(error.get(key)) for key in ("code", "type", "status")]
            return next((int(c) if re.fullmatch(r"[45]\d\d", c) else _CODES[c] for c in codes if _is_code(c)), 0)
    return 0


def _is_code(code: str) -> bool:
    return code in _CODES or bool(re.fullmatch(r"[45]\d\d", code))


def error_text_of_body(body: bytes) -> str:
    """What the body of an error says, whatever its shape; '' if it says nothing."""
    text = body.strip()
    if re.match(rb"(?i)<(!doctype|html|\?xml|head|body)", text):
        return NOT_AN_API
    try:
        return error_text(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return snippet(text)


def error_text(value: Any) -> str:
    """The sentence for people somewhere in a decoded error; '' if there is none."""
    match value:
        case str():
            return value.strip()[:MAX_ERROR_TEXT]
        case {"message": str(message), "metadata": {"raw": str(raw)}}:
            return f"{message.strip()}: {error_text_of_body(raw.encode())}"[
                :MAX_ERROR_TEXT
            ]  # as OpenRouter received it
        case dict():
            texts = (error_text(value.get(key)) for key in ("error", "message", "detail", "msg", "errors"))
        case list():
            texts = (error_text(item) for item in value)
        case _:
            return ""
    return next((text for text in texts if text), "")


def snippet(data: bytes) -> str:
    text = " ".join(data[: SNIPPET * 4].decode("utf-8", "replace").split())
    return text[:SNIPPET] + ("…" if len(text) > SNIPPET else "")
