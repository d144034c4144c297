"""`covey web`: let a page in a browser come in, say which ones may, and put them out again."""

from __future__ import annotations

import argparse
import os
import sys
import time

from covey.cli import common, exits
from covey.cli.runs import age
from covey.cli.terminal_text import json_text, one_line
from covey.client.client import Client
from covey.client.connect import environment
from covey.protocol.web import PageSession, WebCode


def main(args: argparse.Namespace) -> int:
    return common.run(_web(args))


async def _web(args: argparse.Namespace) -> int:
    is_about_pages = args.sessions or args.revoke
    async with common.connected(args, autostart=not is_about_pages) as client:
        if args.sessions:
            return _list(await client.pages(), args)
        if args.revoke:
            return await _revoke(client, args.revoke)
        workspace = await common.join(client, args.cwd)
        await client.hold_workspace(workspace.path, env=environment(client.address))  # until the page has come
        code = await client.web_code(workspace.id)
    if args.json:
        print(json_text(code))
        return exits.OK
    return _phone(code) if args.phone else _open(code, is_wanted=not args.no_open)


def _link(url: str, code: WebCode) -> str:
    return f"{url}#code={code.code}"


def _open(code: WebCode, *, is_wanted: bool) -> int:
    """The link is always printed: a browser may fail to start without a word."""
    link = _link(code.url, code)
    print(link)
    if os.environ.get("SSH_CONNECTION"):
        port = code.url.rstrip("/").rpartition(":")[2]
        common.complain(f"From your own machine: ssh -L {port}:127.0.0.1:{port} to this one, then open the link there.")
    elif is_wanted and not _browse(link):
        common.complain("No browser could be started: open the link yourself.")
    if sys.stdout.isatty():
        common.complain(f"It works once, within {code.expires_in} s.")
    return exits.OK


def _browse(link: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False


def _phone(code: WebCode) -> int:
    from covey.cli.qr import qr_text

    if not code.other_urls:
        port = code.url.rstrip("/").rpartition(":")[2]
        common.complain(
            "No other device can reach this server yet. Put something that ends TLS in front of it, such as\n"
            f"  tailscale serve --bg {port}\n"
            "and put its name into your configuration (`covey config edit`):\n"
            '  [server]\n  allowed_hosts = ["NAME.ts.net"]\n'
            "It counts from the next start on (`covey stop`)."
        )
        return exits.FAILED
    for url in code.other_urls:
        link = _link(url, code)
        print(qr_text(link))
        print(link)
    common.complain(f"Whoever opens it first is let in; it works once, within {code.expires_in} s.")
    return exits.OK


def _list(pages: tuple[PageSession, ...], args: argparse.Namespace) -> int:
    if args.json:
        print(json_text(list(pages)))
        return exits.OK
    if not pages:
        print("No page may come in; `covey web` lets one in.", file=sys.stderr)
    now = time.time()
    for page in pages:
        used = "open now" if page.is_open else f"used {age(now - page.used_at)} ago"
        print(f"{page.id}  {used:18} {one_line(page.name)}")
    return exits.OK


async def _revoke(client: Client, wanted: str) -> int:
    pages = await client.pages()
    chosen = [page for page in pages if wanted == "all" or page.id.startswith(wanted)]
    if wanted != "all" and len(chosen) != 1:
        what = "more than one page begins" if chosen else "there is no page whose id begins"
        common.complain(f"{what} with {wanted!r}: see `covey web --sessions`")
        return exits.FAILED
    for page in chosen:
        await client.revoke_page(page.id)
        print(f"{page.id} is out: {one_line(page.name)}")
    return exits.OK
