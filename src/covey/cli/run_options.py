"""What `covey run` takes."""

from __future__ import annotations

import argparse

from covey.cli import option_types


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="the prompt; its words are joined by spaces")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-s", "--session", metavar="ID", type=option_types.some_id, help="go on in this session; default: a new one"
    )
    where.add_argument(
        "-c", "-C", "--continue", dest="resume", action="store_true", help="go on in the session of the latest prompt"
    )
    parser.add_argument("-m", "--model", metavar="[PROVIDER/]MODEL", help="for this run only; default: $COVEY_MODEL")
    parser.add_argument("-a", "--attach", metavar="FILE", action="append", default=[], help="send a file along")
    parser.set_defaults(takes_rules=True)
    _add_freedom(parser)
    _add_bounds(parser)
    _add_waiting(parser)
    parser.add_argument("--debug", action="store_true", help="keep what is sent to the model and comes back in a file")
    add_display(parser)
    parser.add_argument(
        "--schema", metavar="FILE|JSON", help="a JSON Schema: print JSON that fits it, and nothing else, or fail"
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object at the end instead of text")
    shape.add_argument("--stream-json", action="store_true", help="one JSON object per line for each event")
    parser.add_argument(
        "--run-id", metavar="ID", type=option_types.run_id, help="an id of your own: the same id twice is the same run"
    )


def add_display(parser: argparse.ArgumentParser) -> None:
    """How a run is shown to whoever watches it."""
    group = parser.add_argument_group("what is shown")
    much = group.add_mutually_exclusive_group()
    much.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but warnings and errors")
    much.add_argument("-v", "--verbose", action="store_true", help="all that tools give, and the model's thoughts")
    group.add_argument("--raw", action="store_true", help="the answer as it is written, also on a terminal")
    group.add_argument("--plain", action="store_true", help="one line for each thing that happens: for screen readers")


def _add_freedom(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it may do")
    group.add_argument(
        "--allow",
        metavar="RULE",
        action="append",
        default=[],
        type=option_types.rule,
        help="allow this run something, such as 'bash:make test', edit, or 'bash+network:npm ci', which has the "
        "network; may be given again",
    )
    group.add_argument("--accept-edits", action="store_true", help="do not ask this run about edits in the workspace")
    group.add_argument(
        "--yolo", action="store_true", help="allow this run whatever it asks for, except what a rule denies"
    )
    group.add_argument("--plan", action="store_true", help="only look and make a plan: nothing is changed")
    group.add_argument(
        "--sandbox",
        choices=("auto", "required", "off"),
        help="what commands of this run run in: as much as the system can, all that matters or nothing, no sandbox",
    )
    group.add_argument("--fail-on-denied", action="store_true", help="exit 1 if the run was denied something")


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how much it may use")
    group.add_argument(
        "--max-cost",
        metavar="DOLLARS",
        type=option_types.dollars,
        default=0.0,
        help="begin no further step once it has cost this",
    )
    group.add_argument(
        "--max-steps",
        metavar="N",
        type=option_types.count,
        default=0,
        help="at most so many steps, and one to say what is left; default: as configured",
    )
    group.add_argument(
        "--timeout", metavar="SECONDS", type=option_types.timeout, help="cancel the run after this long (exit 124)"
    )


def _add_waiting(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it waits").add_mutually_exclusive_group()
    group.add_argument(
        "--steer",
        action="store_true",
        help="say it to the run that is active: it reads it before its next step, or, if it has options of its own, "
        "it is the next",
    )
    group.add_argument("--interrupt", action="store_true", help="cancel the run that is active, and be the next")
    parser.add_argument("--detach", action="store_true", help="print the run's id and leave; see `covey runs`")
