"""The engine at work in a project with texts, as the model of a test sees it."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from covey.config.schema import Config, ContextSettings
from covey.context.prompt import Surroundings
from covey.protocol.messages import BinaryPart, Message
from tests.support.engine import Engine, running
from tests.texts.places import Places


@contextlib.asynccontextmanager
async def working(places: Places, *, trusted: bool = True, settings: Config | None = None) -> AsyncIterator[Engine]:
    """An open workspace with the real tools, in `places.root`."""

    async def look_around(
        root: Path,
        settings: ContextSettings,
        env: Mapping[str, str],
        tools: Sequence[str],
        model: str,
        known: Surroundings | None,
    ) -> Surroundings:
        texts = places.read(trusted=trusted, previous=known.texts if known else None)
        return Surroundings(root, "Test", "2026-01-01", trusted=trusted, tools=tuple(tools), model=model, texts=texts)

    async with running(places.home, project=places.root, settings=settings) as engine:
        engine.workspace._parts.agent.look_around = look_around
        yield engine


def along(message: Message) -> dict[str, str]:
    """What came along with a prompt, by its name."""
    parts = [part.data for part in message.parts if isinstance(part, BinaryPart)]
    return {data.Path: base64.b64decode(data.Data).decode() for data in parts}
