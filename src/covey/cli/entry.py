"""`covey`: where the process begins. The terminal UI is asked for most often, and must not wait for other commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from covey.cli import running, tui_options


def main(argv: Sequence[str] | None = None) -> int:
    is_at_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    args = tui_options.alone(running.words(argv)) if is_at_terminal else None
    if args is None:
        from covey.cli.main import main as any_command  # late: what all commands take is a lot

        return any_command(argv)
    return running.flushed(running.run(args))
