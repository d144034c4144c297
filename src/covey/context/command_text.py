"""What a command or a skill says when a person types `/name arguments`. Text in, text out: there is no shell (S9)."""

from __future__ import annotations

import re
import shlex

COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_][\w.:-]{0,255})(?:\s+(?P<arguments>.*))?", re.DOTALL)
"""A prompt that begins so asks for a command, if there is one of that name. A path goes on with another slash."""
MAX_ARGUMENTS = 20_000
MAX_TEXT = 200_000
"""Characters of a command with its arguments filled in: one that repeats them must not become endless."""

_PLACE = re.compile(r"\$(?:(?P<all>ARGUMENTS)(?:\[(?P<index>\d{1,2})\])?(?![A-Za-z0-9_])|(?P<number>[1-9])(?!\d))")
_SHELL = re.compile(r"(?<![\w`])!`([^`\n]{1,2000})`")
WISH = "(This asks for the output of the command `{command}`: call bash for it, if it is needed.)"


def parse_command(prompt: str) -> tuple[str, str] | None:
    """The name and the arguments of a prompt that may ask for a command. One that begins with a blank never does."""
    match = COMMAND.fullmatch(prompt)
    return (match["name"], (match["arguments"] or "").strip()[:MAX_ARGUMENTS]) if match else None


def expand_command(body: str, arguments: str) -> str:
    """The text of a command with its arguments in the places for them; without any place, after it (S10).

    Arguments are put in once and never looked at again: a place in them is only text.
    """
    words = _words(arguments)
    is_used = bool(_PLACE.search(body)) or not arguments

    def filled(match: re.Match[str]) -> str:
        if match["all"] and match["index"] is None:
            return arguments
        index = int(match["index"]) if match["all"] else int(match["number"]) - 1
        return words[index] if index < len(words) else ""

    # A wish is found in what the author wrote, before anything of the arguments is there.
    wished = _SHELL.sub(lambda match: WISH.format(command=match[1]), body)
    text = _PLACE.sub(filled, wished)
    return (text if is_used else f"{text}\n\n{arguments}")[:MAX_TEXT]


def _words(arguments: str) -> list[str]:
    """The arguments one by one. Quotes keep several words together; a quote that is never closed is a letter."""
    lexer = shlex.shlex(arguments, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        return list(lexer)
    except ValueError:
        return arguments.split()
