"""A face that is as small as can be, for tests of the terminal: it shows what was typed, and a line for each event."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from covey.lines.line import Span, line
from covey.tui.frame import ScreenFrame
from covey.tui.inputs import FocusChange, Key, Mouse, Paste, Resize
from covey.tui.terminal.terminal import Terminal


async def main() -> int:
    typed, notes, deltas = "", ["ready"], 0
    log = Path(os.environ["DEMO_LOG"]) if "DEMO_LOG" in os.environ else None
    async with Terminal(log=log) as terminal:

        def draw() -> None:
            rows = [line(Span(note, "tool")) for note in notes[-(terminal.height - 2) :]]
            rows += [line()] * (terminal.height - 2 - len(rows))
            rows += [line(Span("─" * terminal.width, "border")), line(Span("> ", "key"), typed.replace("\n", "⏎"))]
            terminal.show(ScreenFrame(terminal.width, tuple(rows), (terminal.height - 1, 2 + len(typed)), "demo"))

        draw()
        async for given in terminal:
            match given:
                case Key("enter"):
                    notes.append(f"sent {typed}")
                    typed = ""
                case Key("ctrl+c"):
                    return 0
                case Key("ctrl+z"):
                    terminal.suspend()
                case Key("ctrl+e"):
                    raise RuntimeError("as asked for")
                case Key("ctrl+p"):
                    os.write(2, b"a library says something\n")
                    print("and so does another", flush=True)
                case Key("ctrl+g"):
                    notes.append(f"editor {await terminal.run(['sh', '-c', 'echo in the editor; read x'])}")
                case Key("ctrl+b"):
                    os.kill(os.getpid(), 9)
                case Key("ctrl+s"):
                    for deltas in range(1, 2001):
                        notes[-1] = f"delta {deltas}"
                        draw()
                        await asyncio.sleep(0)
                case Key(name, text):
                    typed += text or f"<{name}>"
                case Paste(text):
                    typed += f"[pasted {len(text)}]" if len(text) > 50 else text
                case Resize(width, height):
                    notes.append(f"{width}x{height}")
                case Mouse(action, row, column):
                    notes.append(f"{action} {row} {column}")
                case FocusChange(is_focused):
                    notes.append(f"focus {is_focused}")
            if not terminal.waiting:
                draw()
    return 128 + terminal.ended_by if terminal.ended_by else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
