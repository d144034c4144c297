"""How much is imported before the first frame. Counted, as times say more about the machine than about us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from covey.tui.first_frame import first_frame, typed
from covey.tui.inputs import FocusChange, Key, Paste, TerminalInput
from tests.tui.program import PtyProgram

BEFORE_THE_FIRST_FRAME = """
import sys
import covey.cli.entry, covey.cli.tui
print("\\n".join(sys.modules))
"""


def test_the_first_frame_waits_for_nothing_that_a_server_or_the_face_needs() -> None:
    command = [sys.executable, "-c", BEFORE_THE_FIRST_FRAME]
    imported = set(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split())
    assert not {
        name for name in imported if name.startswith(("msgspec", "covey.client", "covey.protocol", "covey.tui.face"))
    }
    ours = {name for name in imported if name.startswith("covey")}
    assert len(ours) <= 32
    assert len(imported) <= 200


SLOW = """
import os, sys, time
from covey.tui.start import start
class Door:
    def settings(self):
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        raise OSError("it has loaded")
start(Door())
"""


def test_row_19_what_is_typed_while_it_loads_is_on_the_screen_at_once(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    with PtyProgram([sys.executable, "-c", SLOW, str(loaded)], env={"HOME": str(tmp_path)}) as program:
        program.wait_for("covey · starting")
        program.type("early worf\x7fds")
        program.wait_for("> early words")
        program.resize(60, 12)
        program.wait_until(lambda: any(row == "─" * 60 for row in program.screen.rows), "it was not drawn anew")
        program.wait_for("> early words")
        assert "starting" in program.screen.text
        loaded.touch()
        program.wait_until(lambda: program.screen.is_as_before, "it has not ended")
        assert program.finish() == 1


def test_only_words_are_shown_before_the_face_knows_what_keys_mean() -> None:
    words: list[TerminalInput] = [Key("a", "a"), FocusChange(False), Key("b", "b"), Key("backspace"), Key("中", "中")]
    assert typed(words) == "a中"
    assert typed([*words, Key("enter"), Key("c", "c")]) == "a中"
    assert typed([Paste("x"), Key("c", "c")]) == ""
    assert first_frame(20, 6, "a中").cursor == (4, 6)
    assert first_frame(8, 6, "abcdefghi").rows[-2].text == " > abcd"
