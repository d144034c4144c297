"""Peers beside Covey: figures that were measured with the same questions, and how to measure them again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from bench.report import Figure
from bench.rig import Options

OPENCODE_1_18 = (
    ("cold start", 1320, "ms"),
    ("memory, idle", 537, "MB"),
    ("prompt -> response", 15.7, "ms"),
    ("prompt -> first delta", 62, "ms"),
    ("chunk -> client", 27, "ms"),
    ("deliveries to 200 clients", 227_000, "1/s"),
    ("cancel -> terminal event", 10, "ms"),
    ("memory with 200 clients", 1400, "MB"),
    ("100 sessions: deltas", 3430, "1/s"),
)
"""Measured on a machine of two cores like the one for which the targets were set."""


def measure(options: Options) -> Iterator[Figure]:
    found = shutil.which("opencode")
    note = "known figure"
    if found:
        print(
            f"  opencode is here ({found}). To compare: `opencode serve --port 4096`, give it a provider with the\n"
            "  base_url that `python -m bench.fast_model` prints, attach to GET /event, and post the same prompts."
        )
    for name, value, unit in OPENCODE_1_18:
        yield Figure(f"opencode 1.18: {name}", value, unit, note=note)
