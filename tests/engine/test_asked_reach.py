"""What a question says of a command that asks to get further than the sandbox lets it."""

from __future__ import annotations

from pathlib import Path

from tests.engine.test_confining import allowed, project, pytestmark
from tests.support.engine import running

__all__ = ["project", "pytestmark"]


async def test_the_question_says_that_the_call_itself_asks_for_the_network(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project) as engine:
        request, _ = await allowed(engine, "a", "touch made", network=True)
        assert request.asks_for == "network"
        assert request.reason == "No rule allows `touch made`. It asks for the network."
        request, _ = await allowed(engine, "b", "touch made", unsandboxed=True)
        assert (request.asks_for, request.yes_has_network) == ("everything", False)
        request, _ = await allowed(engine, "c", "curl --version && touch made")
        assert (request.network, request.asks_for) == (True, "")
