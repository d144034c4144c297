"""`python -m bench [part ...]`: measure, and print one line for each figure, with its target and how well it is met."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import cast

from bench.processes import COVEY
from bench.report import Figure, core_share, header, line
from bench.rig import Options

PARTS = (
    *("latency", "fanout", "sessions", "turns", "long_answer", "tool_calls", "tool_output", "view", "growth"),
    *(
        "transcript",
        "memory",
        "startup",
        "sandbox",
        "providers",
        "files",
        "changes",
        "terminal",
        "page",
        "cluster",
        "peers",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    parser.add_argument("--quick", action="store_true", help="fewer samples: for a look, not for a claim")
    parser.add_argument("--server", default="", metavar="COMMAND", help="what starts the server; default: this Covey")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    # What is installed has its bytecode. A clone must not be compiled again at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A benchmark that is stopped stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = Options(quick=args.quick, server=shlex.split(args.server) or (*COVEY, "serve"))
    figures = list(_measured(args.parts or PARTS, options))
    if args.json:
        args.json.write_text(json.dumps([figure.as_dict() for figure in figures], indent=2) + "\n")
    missed = [figure for figure in figures if figure.ratio is not None and figure.ratio < 1]
    print(f"\n{len(figures)} figures, {len(missed)} below target")
    return 0


def _measured(parts: list[str] | tuple[str, ...], options: Options) -> Iterator[Figure]:
    print(header())
    for part in parts:
        print(f"\n{part}", flush=True)
        quiet = Figure(f"machine: share of a core a process gets before {part}", core_share() * 100, "%")
        print(line(quiet), flush=True)
        yield quiet
        measure = cast("Callable[[Options], Iterator[Figure]]", import_module(f"bench.{part}").measure)
        for figure in measure(options):
            print(line(figure), flush=True)
            yield figure


if __name__ == "__main__":
    sys.exit(main())
