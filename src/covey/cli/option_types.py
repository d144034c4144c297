"""What the values of options must be like. Checked before anything else happens, and explained."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""What the server takes; a test compares the two."""


def seconds(text: str) -> float:
    return _number(text, "a number of seconds", lambda seconds: 0 <= seconds < 1e9)


def timeout(text: str) -> float:
    return _number(text, "a number of seconds above 0", lambda seconds: 0 < seconds < 1e9)


def dollars(text: str) -> float:
    return _number(text, "a number of dollars above 0", lambda dollars: 0 < dollars < 1e6)


def count(text: str) -> int:
    return int(_number(text, "a whole number above 0", lambda count: 0 < count < 1e6 and count.is_integer()))


def count_or_none(text: str) -> int:
    return int(_number(text, "a whole number", lambda count: 0 <= count < 1e6 and count.is_integer()))


def _number(text: str, what: str, is_right: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not is_right(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def run_id(text: str) -> str:
    if not RUN_ID.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a run id: a letter or digit, then also . _ : and -, at most 128 in all"
        )
    return text


def some_id(text: str) -> str:
    """An id, or a part of one. An empty one is mostly a variable that is not set, and would mean something else."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the id is empty")
    return text


def rule(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.+-]+(?::.+)?", text, re.DOTALL):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a rule: write TOOL or TOOL:PATTERN, such as 'bash:make test'"
        )
    return text
