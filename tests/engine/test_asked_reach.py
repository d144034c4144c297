"""What a question says of a command that asks to get further than the sandbox lets it."""

from __future__ import annotations

from pathlib import Path

from covey.protocol.endings import never_ran
from covey.protocol.requests import PostPrompt
from tests.engine.test_confining import (
    allowed,
    connects,
    own,
    port,
    project,
    pytestmark,
    results,
    with_permissions,
)
from tests.support.engine import call, running, within

__all__ = ["port", "project", "pytestmark"]


async def test_the_question_says_that_the_call_itself_asks_for_the_network(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project) as engine:
        request, _ = await allowed(engine, "a", "touch made", network=True)
        assert request.asks_for == "network"
        assert request.reason == "No rule allows `touch made`. It asks for the network."
        request, _ = await allowed(engine, "b", "touch made", unsandboxed=True)
        assert (request.asks_for, request.yes_has_network) == ("everything", False)
        request, _ = await allowed(engine, "c", "curl --version && touch made")
        assert (request.network, request.asks_for) == (True, "")


async def test_a_rule_of_a_run_may_give_the_network(tmp_path: Path, project: Path, port: int) -> None:
    async with running(tmp_path, project=project) as engine:
        line = connects(port)
        for run_id, rule, hears in (("a", f"bash+network:{line}", True), ("b", f"bash:{line}", False)):
            engine.model.answer(*call("bash", command=line))
            prompt = PostPrompt(session_id=engine.session_id, prompt="go", run_id=own(run_id), allow=(rule,))
            await within(engine.workspace.runs.post(prompt))
            (result,) = await results(engine, run_id)
            assert ("hello" in result.content) is hears


async def test_what_a_rule_says_to_ask_about_is_offered_no_rule(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project, settings=with_permissions(ask=("bash:touch *",))) as engine:
        request, _ = await allowed(engine, "a", "touch made")
        assert (request.rules, request.prefix_rules) == ((), ())


async def test_the_result_of_a_call_that_cannot_be_read_says_that_it_never_ran(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project) as engine:
        engine.model.answer(*call("bash", commando="touch made"))
        await engine.post("go", own("a"))
        (result,) = await results(engine, "a")
        assert result.is_error and never_ran(result)
