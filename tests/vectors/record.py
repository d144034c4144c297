"""`python -m tests.vectors.record [NAME ...]`: record the scenarios anew, each on a server process of its own."""

from __future__ import annotations

import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.support.fake_model import FakeModel
from tests.support.server import provider_config, running
from tests.vectors import (
    scenarios_asks,
    scenarios_cancel,
    scenarios_links,
    scenarios_queue,
    scenarios_sessions,
    scenarios_turns,
)
from tests.vectors.recording import Recording
from tests.vectors.vector import Vector

PLACE = Path(tempfile.gettempdir()) / "covey-vectors"
"""Always the same, as it is in what is recorded."""
MODULES = (
    *(scenarios_turns, scenarios_cancel, scenarios_queue),
    *(scenarios_asks, scenarios_links, scenarios_sessions),
)
SCENARIOS: dict[str, Callable[[Recording], None]] = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if not name.startswith("_") and getattr(function, "__module__", "") == module.__name__ and callable(function)
}


def record(name: str, place: Path = PLACE) -> Vector:
    """Play one scenario, and check against the server what the view has in the end."""
    scenario = SCENARIOS[name]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with FakeModel() as model, running(place, provider_config(model.url)) as server:
        server.may_log_errors = True
        recording = Recording(server, model)
        try:
            scenario(recording)
            recording.catch_up()
            recording.check()
            vector = recording.vector(name, (scenario.__doc__ or "").strip())
        finally:
            recording.close()
    shutil.rmtree(place, ignore_errors=True)
    return vector


def main(names: list[str]) -> int:
    failed = []
    for name in names or SCENARIOS:
        try:
            record(name).save()
            print(f"{name}: recorded", flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
