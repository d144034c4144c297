"""`covey sessions --grep TEXT`: finds messages and titles of sessions by their words."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from covey.cli import common, exits
from covey.cli.terminal_text import json_text, one_line, plain
from covey.protocol.search import SearchHit, SearchResult


async def find(args: argparse.Namespace) -> int:
    words = " ".join(args.words) if args.action == "search" else args.grep
    if not any(character.isalnum() for character in words):
        raise exits.UsageError("say what to look for: at least one word")
    async with common.connected(args) as client:
        if args.everywhere:
            found = await client.search_everywhere(words, limit=args.limit)
        else:
            workspace = await common.join(client, args.cwd)
            found = await client.search(workspace.id, words, limit=args.limit)
    if args.json:
        print(json_text(found))
    else:
        _show(found)
    return exits.OK if found.titles or found.messages else exits.FAILED


def _show(found: SearchResult) -> None:
    for hit in (*found.titles, *found.messages):
        print(_text(hit))
    sys.stdout.flush()
    if not (found.titles or found.messages):
        print("Nothing was found.", file=sys.stderr)
    if not found.is_complete:
        print("Older messages are still being taken up: search again in a while.", file=sys.stderr)


def _text(hit: SearchHit) -> str:
    when = datetime.fromtimestamp(hit.at).strftime("%Y-%m-%d %H:%M")
    aside = " (archived)" if hit.archived else ""
    where = f"  {one_line(hit.path)}" if hit.path else ""
    title = one_line(hit.title) or "untitled"
    head = plain(f"{hit.session_id}  {when}  {hit.role or 'title'}  {title}{aside}{where}")
    return f"{head}\n    {_marked(hit)}" if hit.message_id else head


def _marked(hit: SearchHit) -> str:
    """The words that were found stand between brackets: that can be seen everywhere, and piped."""
    shown, past = [], 0
    for start, end in hit.marks:
        shown += [hit.snippet[past:start], "[", hit.snippet[start:end], "]"]
        past = end
    return one_line("".join([*shown, hit.snippet[past:]]))
