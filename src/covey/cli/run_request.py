"""What the options of `covey run` become on the wire."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from covey.client.prompt import new_run_id
from covey.protocol.paths import debug_file
from covey.protocol.requests import PostPrompt

MODEL_VARIABLE = "COVEY_MODEL"
"""The model of a run that names none."""


def request_of(args: argparse.Namespace) -> PostPrompt:
    """What the options say; the prompt itself, and where it goes, come later."""
    # A prompt that is said to another run has no model of its own.
    model = args.model or ("" if args.steer else os.environ.get(MODEL_VARIABLE, ""))
    return PostPrompt(
        run_id=args.run_id or new_run_id(),
        mode="fold" if args.steer else "interrupt" if args.interrupt else None,
        model=model,
        yolo=args.yolo,
        plan=args.plan,
        max_cost=args.max_cost,
        max_steps=args.max_steps,
        sandbox=args.sandbox,
        allow=tuple(dict.fromkeys(args.allow)),
        accept_edits=args.accept_edits,
        debug=args.debug,
    )


def where_debug_is(data_dir: str, run_id: str) -> str:
    path = debug_file(Path(data_dir), run_id)
    if path.exists():
        return f"what was sent to the model and came back is in {path}"
    return "nothing was sent to a model over HTTP, so there is nothing to look at."
