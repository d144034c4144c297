"""`covey init`: let the agent look at a project and write down, in AGENTS.md, what an agent has to know about it."""

from __future__ import annotations

import argparse
import os
from importlib import resources

from covey.cli import common, exits, run
from covey.cli.main import build_parser

FILE = "AGENTS.md"
UPDATE = (
    f"There is an {FILE} already. View it first. Keep what is still true, in the words in which it stands, correct "
    "what is not true any more, and add what is missing.\n\n"
)


def main(args: argparse.Namespace) -> int:
    path = os.path.join(common.working_directory(args.cwd), FILE)
    exists = os.path.lexists(path)
    if exists and not args.force:
        raise exits.UsageError(f"there is an {FILE} here already; --force lets the agent bring it up to date")
    code = run.main(_as_run(args, update=exists))
    if code == exits.OK and _is_here(args) and not os.path.exists(path):
        why = "its answer is all there is." if args.yolo else "was it not allowed to write? See --yolo."
        common.complain(f"the agent has ended, but there is no {FILE}: {why}")
        return exits.FAILED
    return code


def _as_run(args: argparse.Namespace, *, update: bool) -> argparse.Namespace:
    """The same as a call of `covey run`: all that it can do, and whatever it learns to do later, holds here too."""
    options = ["--quiet"] * args.quiet + ["--yolo"] * args.yolo
    for name in ("model", "timeout", "cwd", "host", "data_dir", "token_file"):
        value = getattr(args, name)
        if value is not None:
            options += [f"--{name.replace('_', '-')}={value}"]
    return build_parser().parse_args(["run", *options, "--", instruction(update=update)])


def instruction(*, update: bool) -> str:
    """What the agent is asked to do."""
    text = resources.files("covey.context").joinpath("init.md").read_text("utf-8").strip()
    return (UPDATE if update else "") + text


def _is_here(args: argparse.Namespace) -> bool:
    """Whether the file would have to be on this machine: not if the server is on another one."""
    return not (args.host or "").startswith("tcp://")
