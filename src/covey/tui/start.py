"""Starts the terminal face: the first frame at once, then everything else is imported."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from covey.tui.door import Door, Farewell
from covey.tui.first_frame import first_frame
from covey.tui.places import log_file
from covey.tui.terminal.terminal import Terminal


def start(door: Door) -> Farewell:
    return asyncio.run(_run(door))


async def _run(door: Door) -> Farewell:
    async with Terminal(env=os.environ, log=log_file(os.environ)) as terminal:
        terminal.show(first_frame(terminal.width, terminal.height))
        await asyncio.sleep(0)
        from covey.tui.app import FaceApp  # late: the first frame does not wait for what this imports

        for _ in range(2):  # what the terminal has answered meanwhile is heard before the next frame
            await asyncio.sleep(0)
        farewell = await FaceApp(terminal, door).run()
    if terminal.ended_by:
        return replace(farewell, exit_code=128 + terminal.ended_by)
    return farewell
