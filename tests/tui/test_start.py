"""How much is imported before the first frame. Counted, as times say more about the machine than about us."""

from __future__ import annotations

import subprocess
import sys

BEFORE_THE_FIRST_FRAME = """
import sys
import covey.cli.main, covey.cli.tui
print("\\n".join(sys.modules))
"""


def test_the_first_frame_waits_for_nothing_that_a_server_or_the_face_needs() -> None:
    command = [sys.executable, "-c", BEFORE_THE_FIRST_FRAME]
    imported = set(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split())
    assert not {
        name for name in imported if name.startswith(("msgspec", "covey.client", "covey.protocol", "covey.tui.face"))
    }
    ours = {name for name in imported if name.startswith("covey")}
    assert len(ours) <= 48
    assert len(imported) <= 260
