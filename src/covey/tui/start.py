"""Starts the terminal face: the first frame at once; everything else is imported while keys are shown already."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

from covey.tui.door import Door, Farewell
from covey.tui.first_frame import first_frame, typed
from covey.tui.places import log_file
from covey.tui.terminal.terminal import Terminal

if TYPE_CHECKING:
    from covey.tui.app import FaceApp


def start(door: Door) -> Farewell:
    return asyncio.run(_run(door))


async def _run(door: Door) -> Farewell:
    async with Terminal(env=os.environ, log=log_file(os.environ)) as terminal:

        def show() -> None:
            terminal.show(first_frame(terminal.width, terminal.height, typed(terminal.waiting)))

        show()
        await asyncio.sleep(0)
        terminal.watch(show)
        make = await _loaded(door)
        terminal.watch(None)
        farewell = await make(terminal).run()
    if terminal.ended_by:
        return replace(farewell, exit_code=128 + terminal.ended_by)
    return farewell


async def _loaded(door: Door) -> Callable[[Terminal], FaceApp]:
    """What makes the face. It is imported in a thread, so that what is typed meanwhile is on the screen at once."""
    loop = asyncio.get_running_loop()
    loaded: asyncio.Future[Callable[[Terminal], FaceApp]] = loop.create_future()

    def load() -> None:
        try:
            from covey.tui.app import FaceApp

            wishes = door.settings()
        except BaseException as error:
            loop.call_soon_threadsafe(loaded.set_exception, error)
        else:
            loop.call_soon_threadsafe(loaded.set_result, lambda terminal: FaceApp(terminal, door, wishes))

    Thread(target=load, name="covey-load", daemon=True).start()
    return await loaded
