"""What `covey mcp` takes, and how it teaches it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

ACTIONS = ("list", "add", "remove", "approve", "import", "login", "logs", "serve")

MCP_EXAMPLES = """\
examples:
  covey mcp                    which there are, their states and their tools
  covey mcp add git -- uvx mcp-server-git==2026.10.19 --repository .
  covey mcp add docs --url https://mcp.example/mcp --header "X-Team=blue"
  covey mcp add gh --env 'GITHUB_TOKEN=$GITHUB_TOKEN' -- npx -y some-server@1.2.3
  covey mcp approve git        look at its tools, and let the model have them
  covey mcp import .mcp.json   what another agent has; says what was not taken over
  covey mcp login docs         log in with your browser, where a server wants that
  covey mcp logs git           the end of what it wrote to stderr
  covey mcp remove git

They are written into your own config.toml; with --here they hold in this directory alone. A server is started by the
first call to one of its tools. Its tools are offered once you have approved them, and withheld as soon as one changes.
Secrets belong in variables: a quoted '$NAME' is looked up when the server is started.

Covey as an MCP server, for another agent:
  covey mcp serve              started by another agent; it reads JSON from stdin
  covey mcp serve --cwd ~/app    for this directory, unless a call names another
  covey mcp serve --http       at http://127.0.0.1:8791/mcp, with the token of your data directory

In the settings of another agent, many of which read this file:
  .mcp.json  {"mcpServers": {"covey": {"command": "covey", "args": ["mcp", "serve"]}}}

It gets the tools prompt, wait, cancel, answer, list_sessions and read_session, and sessions as resources. What it began
goes on when it leaves; `covey runs` and every other client see it.

exit codes:
  0 done, or the agent has left     1 it failed, or cannot listen there     2 wrong usage     3 no server
"""


def _add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="default: list")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="of the server; for `import`, a file; for `add`, then --"
    )
    parser.set_defaults(command_line=[])
    parser.add_argument("--url", metavar="URL", help="for `add`: a server that is reached by HTTP")
    parser.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for its process")
    parser.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="a header for its URL")
    parser.add_argument("--reads", metavar="TOOL", action="append", default=[], help="a tool that changes nothing")
    parser.add_argument("--here", action="store_true", help="only for this directory")
    parser.add_argument("-y", "--yes", action="store_true", help="for `approve`: do not ask")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    parser.add_argument(
        "--http",
        metavar="ADDR:PORT",
        nargs="?",
        const="127.0.0.1:8791",
        help="for `serve`: on HTTP instead of stdin, on this machine alone; default: 127.0.0.1:8791",
    )


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--`, and the command of another program after it: options in that are not ours."""
    if words[:1] != ["mcp"] or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


COMMANDS = {"mcp": Command("tools from MCP servers; and Covey as one for other agents", MCP_EXAMPLES, _add_mcp)}
