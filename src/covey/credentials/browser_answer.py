"""The page to which a browser comes back after a login: one request, one sentence. On this machine only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HEAD_S = 10.0
"""How long a browser may take to say what it wants."""
MAX_HEAD = 16 * 1024

_PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>Covey</title>
<p style="font: 1.2em sans-serif; margin: 3em">{}</p>
"""


async def answer_browser(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, take: Callable[[str], tuple[str, str]]
) -> None:
    """`take` gets the target of a GET ('' for anything else), and gives the status and what the browser shows."""
    try:
        async with asyncio.timeout(HEAD_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, _, rest = head.partition(" ")
            status, text = take(rest.partition(" ")[0] if method == "GET" else "")
            page = _PAGE.format(text).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(page)}\r\n"
                "referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n".encode()
                + page
            )
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # a timeout is an OSError too
    finally:
        writer.close()
