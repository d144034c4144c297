"""A coding task, as the model of a run sees it: errors come back with an edit, and a rename changes a whole project."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from msgspec import structs

from covey.config.schema import LspSettings, PermissionSettings, ToolSettings
from covey.engine.extensions.lsp import LspHost
from covey.lifecycle.reply import Stopped, ToolCallBegun, ToolInputDelta
from covey.protocol.messages import ToolResult
from covey.tools import owned_process
from tests.lsp.conftest import ODD
from tests.support.engine import Engine, config, running

pytestmark = pytest.mark.anyio

SUMS = "def add(a: int, b: int) -> int:\n    return a + b\n"
USE = "from sums import add\n\nprint(add(1, 2))\n"


def results(engine: Engine) -> list[ToolResult]:
    return [result for message in engine.messages() for result in message.tool_results]


async def task(engine: Engine, *calls: tuple[str, dict[str, object]]) -> list[ToolResult]:
    for name, params in calls:
        begun = (ToolCallBegun(0, "c", name), ToolInputDelta(0, json.dumps(params)))
        engine.model.answer(*begun, Stopped("tool_use"))
    engine.model.answer("done")
    await engine.post("do it", "r")
    run = await engine.ended("r")
    assert run.state == "completed", run.error
    return results(engine)


async def test_l2_an_edit_waits_for_three_seconds_and_is_no_error_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (LspHost.__init__.__kwdefaults__ or {})["after_edit_s"] == 3.0
    monkeypatch.setattr(LspHost.__init__, "__kwdefaults__", {"after_edit_s": 0.0})
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    root = (tmp_path / "project").resolve()
    root.mkdir()
    (root / "a.odd").write_text("BAD")
    trusted = tmp_path / ".config" / "covey" / "trusted.toml"
    trusted.parent.mkdir(parents=True)
    trusted.write_text(f'directories = ["{root}"]\n')
    silent = LspSettings(command=sys.executable, args=(str(ODD), "silent", str(tmp_path / "notes")), suffixes=("odd",))
    settings = structs.replace(config(), permissions=PermissionSettings(allow=("edit",)), lsp={"odd": silent})
    async with running(tmp_path, project=root, settings=settings) as engine:
        edit: dict[str, object] = {"file_path": "a.odd", "old_string": "BAD", "new_string": "BAD2"}
        _, edited = await task(engine, ("view", {"file_path": "a.odd"}), ("edit", edit))
        assert not edited.is_error and "iagnostics" not in edited.content and (root / "a.odd").read_text() == "BAD2"


async def test_a_mistake_is_said_with_the_edit_and_a_rename_is_one_undoable_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    root = (tmp_path / "project").resolve()
    root.mkdir()
    (root / "sums.py").write_text(SUMS)
    (root / "use.py").write_text(USE)
    trusted = tmp_path / ".config" / "covey" / "trusted.toml"
    trusted.parent.mkdir(parents=True)
    trusted.write_text(f'directories = ["{root}"]\n')
    settings = structs.replace(
        config(), permissions=PermissionSettings(allow=("edit",)), tools=ToolSettings(language_servers="auto")
    )
    patient = {**(LspHost.__init__.__kwdefaults__ or {}), "after_edit_s": 30.0}  # how fast a machine is is not tested
    monkeypatch.setattr(LspHost.__init__, "__kwdefaults__", patient)
    async with running(tmp_path, project=root, settings=settings) as engine:
        assert {"definition", "references", "symbols", "diagnostics", "rename"} <= set(
            engine.workspace._parts.agent.all_tools()
        )
        done = await task(
            engine,
            ("view", {"file_path": "use.py"}),
            ("edit", {"file_path": "use.py", "old_string": "add(1, 2)", "new_string": "add(1, two)"}),
            ("edit", {"file_path": "use.py", "old_string": "add(1, two)", "new_string": "add(1, 2)"}),
            ("rename", {"file_path": "use.py", "line": 3, "name": "add", "new_name": "plus"}),
        )
        assert not any(result.is_error for result in done), done
        assert "Diagnostics of use.py as it is now" in done[1].content and "two" in done[1].content
        assert "Diagnostics" not in done[2].content
        assert (root / "sums.py").read_text() == SUMS.replace("add", "plus")
        assert (root / "use.py").read_text() == USE.replace("add", "plus")
        outline = [(message.role, [call.name for call in message.tool_calls]) for message in engine.messages()]
        steps = [step for name in ("view", "edit", "edit", "rename") for step in (("assistant", [name]), ("tool", []))]
        assert outline == [("user", []), *steps, ("assistant", [])]
        from covey.protocol.requests import UndoTurns

        await engine.workspace.sessions.undo(engine.session_id, UndoTurns())
        assert ((root / "sums.py").read_text(), (root / "use.py").read_text()) == (SUMS, USE)
