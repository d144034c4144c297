"""What the commands take that other programs start: `acp` for editors. Nothing heavy."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

ACP_EXAMPLES = """\
examples:
  covey acp                              started by an editor, not by you; it reads JSON from stdin
  covey acp --host tcp://127.0.0.1:8790  a server that somebody else runs

In the settings of your editor, as an agent that speaks ACP:
  Zed        "agent_servers": {"Covey": {"type": "custom", "command": "covey", "args": ["acp"]}}
  JetBrains  ~/.jetbrains/acp.json: {"agent_servers": {"Covey": {"command": "covey", "args": ["acp"]}}}
  acpx       acpx --agent "covey acp" exec "fix the failing test"

It is one client of your server among others: what an editor began goes on when the editor is closed, `covey runs` and
`covey sessions` see it, and another editor, or the same one later, opens it again.

exit codes:
  0 the editor has left     3 no server
"""


def _add_acp(parser: argparse.ArgumentParser) -> None:
    """Where it works is said by the editor, for each session."""


COMMANDS = {
    "acp": Command("let an editor use Covey as its agent (Agent Client Protocol)", ACP_EXAMPLES, _add_acp),
}
