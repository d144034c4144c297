"""The commands of a conversation by lines: those that one cannot do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from covey.client.view.view import View
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line, visible
from covey.lines.wrap import wrap
from covey.protocol.runs import Mode
from covey.tui.plain.choices import SKIP, Choices, QuestionChoices

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
    SKIP: "answer none of the questions that are asked",
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
KEPT_OUT = "What runs was started with options of its own, so this waits for a turn of its own."
SESSIONS_SHOWN = 20


def how_it_goes(mode: Mode, view: View) -> str:
    """What becomes of a prompt that was sent to a session that works."""
    record = view.sessions.get(view.current)
    is_kept_out = mode == "fold" and record is not None and not record.can_be_steered
    return KEPT_OUT if is_kept_out else HOW_IT_GOES[mode]


def _help(columns: int) -> list[StyledLine]:
    width = max(map(len, HELP)) + 2
    return [
        row
        for each, about in HELP.items()
        for row in wrap([Span(about)], columns, (Span(each.ljust(width), "key"),), (Span(" " * width),))
    ]


async def run(talk: Talk, text: str, asked: Choices | None) -> bool:
    """Whether the line is no prompt and no answer: a command or, as in the terminal UI, what can only be meant as one.

    A path is no command. One of the workspace, which the server knows, is a prompt, but no answer; an unknown one may
    be an answer in words, such as `/tmp`. All that follows a blank is text.
    """
    if text.startswith("!"):
        talk.refuse(f"! commands are for the terminal UI{_as_text('!', asked)}")
        return True
    is_skip = isinstance(asked, QuestionChoices) and text.strip() == SKIP
    if not text.startswith("/") or is_skip:
        return False
    if await _run(talk, text.strip()):
        return True
    name = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    if "/" in name:
        return False
    is_known = any(known.name == name for known in await talk.client.commands(talk.follower.workspace_id))
    takes_words = asked is not None and asked.takes_words
    if is_known and takes_words:
        talk.refuse(f"/{visible(name)} is a command, which `/say /{visible(name)}` sends{_as_text('/', asked)}")
    elif not is_known and not takes_words:
        talk.refuse(f"there is no command /{visible(name)}{_as_text('/', asked)}")
    return is_known == takes_words


def _as_text(sign: str, asked: Choices | None) -> str:
    """How a line with this sign is text all the same. Where the answer is yes or no, it would be none."""
    if isinstance(asked, QuestionChoices) and not asked.takes_words:
        return f"; {asked.how}"
    use = "answer with it" if asked and asked.takes_words else "send it as text"
    return f"; put a blank before the {sign} to {use}"


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
    elif name == SKIP:
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
        talk.write(_numbered(number, text + here, talk.paper.columns))
    if not listed:
        talk.say("There are none yet.", "dim")


def _numbered(number: int, text: str, columns: int) -> list[StyledLine]:
    return wrap([Span(text)], columns, (Span(f"{number:3}. ", "key"),), (Span("     "),))


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
        talk.write(_numbered(number, one_line(run_.prompt), talk.paper.columns))
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
