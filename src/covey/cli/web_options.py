"""What `covey web` takes, and how it teaches it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

WEB_EXAMPLES = """\
examples:
  covey web                      open this directory in the browser
  covey web --no-open            only print the link; it works once, within a minute
  covey web --phone              a link and a QR code for another device
  covey web --sessions           the pages that may come in
  covey web --revoke 3f9a01c2    put one of them out; `all` puts out every one

The link holds a code that buys the page a token of its own; the page stays signed in for 30 days. It may do all that
you may but stop the server, run your own shell commands and let other pages in. The server listens on this machine
only. From elsewhere put a proxy that ends TLS in front (`tailscale serve`, caddy) and its name into
server.allowed_hosts, or use a tunnel: ssh -L PORT:127.0.0.1:PORT.

exit codes:
  0 done     1 no such page, or no way in from other devices     2 wrong usage     3 no server
"""


def _add_web(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--no-open", action="store_true", help="print the link and open nothing")
    how.add_argument("--phone", action="store_true", help="a link and a QR code for another device")
    how.add_argument("--sessions", action="store_true", help="list the pages that may come in")
    how.add_argument("--revoke", metavar="PAGE", help="put a page out, by its id; all: every one")
    parser.add_argument("--json", action="store_true", help="JSON instead of text; opens nothing")
    parser.add_argument("--cwd", metavar="DIR", help="the directory to show; default: the git repository around here")


COMMANDS = {"web": Command("open this directory in the browser", WEB_EXAMPLES, _add_web)}
