"""The commands of a conversation by lines: those that one cannot do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line, visible
from covey.lines.wrap import wrap
from covey.protocol.runs import Mode

if TYPE_CHECKING:
    from covey.tui.plain.plain import Talk

HELP = {
    "/help": "these lines",
    "/new": "begin a new session with the next prompt",
    "/sessions": "the sessions of this directory, newest first",
    "/open N": "go on with the session of that number",
    "/queue": "the prompts that wait",
    "/queue TEXT": "send the text as a turn of its own, after what runs",
    "/interrupt TEXT": "cancel what runs, and send the text",
    "/drop N": "take back the waiting prompt of that number",
    "/say TEXT": "send the text as a prompt, whatever it looks like and whatever is asked",
    "/skip": "answer none of the questions that are asked",
    "/cancel": "cancel what runs; so does Ctrl-C",
    "/quit": "leave; so does Ctrl-D. What runs goes on",
}
MODES: dict[str, Mode] = {"/queue": "own_turn", "/interrupt": "interrupt"}
"""How a text goes to a session that works, where the command says so."""
HOW_IT_GOES: dict[Mode, str] = {
    "fold": "It joins the turn. /queue TEXT waits for its own, /interrupt TEXT goes first.",
    "own_turn": "It waits for a turn of its own.",
    "interrupt": "What runs is cancelled, and this is next.",
}
SESSIONS_SHOWN = 20


def _help(columns: int) -> list[StyledLine]:
    width = max(map(len, HELP)) + 2
    return [
        row
        for each, about in HELP.items()
        for row in wrap([Span(about)], columns, (Span(each.ljust(width), "key"),), (Span(" " * width),))
    ]


async def run(talk: Talk, text: str) -> bool:
    """Whether the line is no prompt: a command or, as in the terminal UI, what can only be meant as one.

    A path and a command of the workspace, which the server knows, are prompts; so is all that follows a blank.
    """
    if text.startswith("!"):
        _refuse(talk, "! commands are for the terminal UI; put a blank before the ! to send it as text")
        return True
    if not text.startswith("/"):
        return False
    if await _run(talk, text.strip()):
        return True
    name = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    if "/" in name or any(known.name == name for known in await talk.client.commands(talk.follower.workspace_id)):
        return False
    _refuse(talk, f"there is no command /{visible(name)}; put a blank before the / to send it as text")
    return True


def _refuse(talk: Talk, why: str) -> None:
    """The line goes nowhere; out of a pipe, that is a failure."""
    talk.has_refusal = True
    talk.say(why, "warning")
    talk.offer()


async def _run(talk: Talk, words: str) -> bool:
    """Whether it was one of those that are listed."""
    name, _, rest = words.partition(" ")
    number = int(rest) if rest.strip().isdigit() else 0
    if name in ("/sessions", "/open"):
        await talk.loaded()
    if name == "/help":
        talk.write(_help(talk.paper.columns))
        talk.write([line(Span("A line that ends with \\ goes on in the next one.", "dim"))])
    elif name in ("/quit", "/exit"):
        talk.is_leaving = True
    elif f"{name} TEXT" in HELP and rest.strip():
        await talk.post(rest, MODES.get(name))
        return True
    elif name == "/skip":
        talk.say("No question is asked.", "dim")
    elif name == "/cancel":
        talk.follower.cancel()
        talk.say("Cancelling.", "dim")
    elif name == "/new":
        talk.open("")
        talk.say("The next prompt begins a new session.", "dim")
    elif name == "/sessions":
        _sessions(talk)
    elif name == "/open" and number:
        _open(talk, number)
    elif name == "/queue":
        _queue(talk)
    elif name == "/drop" and number:
        await _drop(talk, number)
    elif f"{name} N" in HELP:
        talk.say(f"{name} needs a number.", "warning")
    elif f"{name} TEXT" in HELP:
        talk.say(f"{name} needs a text.", "warning")
    else:
        return False
    talk.offer()
    return True


def _listed(talk: Talk) -> list[tuple[str, str]]:
    """Ids of sessions, and what is said of each, newest first."""
    found = []
    for session, record in talk.follower.view.sessions:
        if session.archived_at or session.parent_session_id:
            continue
        asks = any(ask.session_id == session.id for ask in talk.follower.view.asks.open.values())
        marks = ["waits for you" if asks else "works" if record.is_busy else "", "new" if record.is_unread else ""]
        found.append((session.id, ", ".join([one_line(session.title) or "(without a title)", *filter(None, marks)])))
    return found[:SESSIONS_SHOWN]


def _sessions(talk: Talk) -> None:
    listed = _listed(talk)
    current = talk.follower.view.current
    for number, (session_id, text) in enumerate(listed, 1):
        here = " (this one)" if session_id == current else ""
        talk.write([line(Span(f"{number:3}. ", "key"), text, here)])
    if not listed:
        talk.say("There are none yet.", "dim")


def _open(talk: Talk, number: int) -> None:
    listed = _listed(talk)
    if number > len(listed):
        talk.say("There is no session of that number: /sessions shows them.", "warning")
        return
    talk.open(listed[number - 1][0])


def _queue(talk: Talk) -> None:
    record = talk.follower.view.sessions.get(talk.follower.view.current)
    waiting = record.queue if record else []
    for number, run_ in enumerate(waiting, 1):
        talk.write([line(Span(f"{number:3}. ", "key"), one_line(run_.prompt))])
    if not waiting:
        talk.say("Nothing waits.", "dim")


async def _drop(talk: Talk, number: int) -> None:
    record = talk.follower.view.sessions.get(talk.follower.view.current)
    waiting = record.queue if record else []
    if number > len(waiting):
        talk.say("There is no waiting prompt of that number: /queue shows them.", "warning")
        return
    await talk.client.drop_prompt(talk.follower.workspace_id, talk.follower.view.current, waiting[number - 1].run_id)
    talk.say("Taken back.", "dim")
