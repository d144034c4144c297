"""Statements L1 to L13, with an odd server of our own and real processes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from covey.config.schema import LspSettings
from covey.engine.extensions import lsp_slot
from covey.tools import owned_process
from covey.tools.base import ToolContext, ToolFailed
from covey.tools.file_set import PlannedChange
from tests.lsp.conftest import Languages

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def messages(languages: Languages, path: Path) -> list[str] | None:
    found = await languages.host.complaints(path)
    return None if found is None else [complaint.message for complaint in found]


@pytest.mark.parametrize("mode", ["push", "unversioned", "pull"])
async def test_l1_l3_only_complaints_about_the_newest_text_are_shown(languages: Languages, mode: str) -> None:
    await languages.use(mode)
    path = languages.file("a.odd", "BAD1")
    assert await messages(languages, path) == ["there is BAD1"]
    path.write_text("BAD2")
    assert await messages(languages, path) == ["there is BAD2"]
    path.write_text("good")
    assert await messages(languages, path) == []


async def test_l2_what_takes_too_long_is_left_out(languages: Languages) -> None:
    await languages.use("silent", "push")
    languages.host._after_edit_s = 0.0
    path = languages.file("a.odd", "BAD")
    assert await messages(languages, path) is None
    languages.host._after_edit_s = 60.0
    (languages.host._slots["odd0"]).approve()
    del languages.host._slots["odd0"]  # the one that never answers
    assert await messages(languages, path) == ["there is BAD"]


@pytest.mark.parametrize("mode", ["push", "counts bytes"])
async def test_l4_l5_a_rename_hits_the_right_columns_or_changes_nothing(languages: Languages, mode: str) -> None:
    """Also where the server answers with another encoding than the one that was offered."""
    await languages.use(mode)
    path = languages.file("a.odd", "ü 😀 old()\nplain old\n")
    output = await languages.call("rename", file_path="a.odd", line=1, name="old", new_name="new")
    assert path.read_text() == "ü 😀 new()\nplain new\n"
    assert [file.path for file in output.files] == [path]
    assert "Renamed old to new" in output.content and "asked at old" in languages.notes


@pytest.mark.parametrize("mode", ["wrong columns", "names an encoding"])
async def test_l5_a_server_that_counts_otherwise_changes_nothing(languages: Languages, mode: str) -> None:
    await languages.use(mode)
    path = languages.file("a.odd", "ü 😀 old()\n")
    with pytest.raises(ToolFailed, match="Nothing was changed"):
        await languages.call("rename", file_path="a.odd", line=1, name="old", new_name="new")
    assert path.read_text() == "ü 😀 old()\n"


async def test_l6_a_rename_is_judged_like_the_edits_that_it_makes_and_only_made_if_nothing_changed_since(
    languages: Languages,
) -> None:
    await languages.use("push")
    path = languages.file("a.odd", "old\n")
    tool = languages.host.tools()["rename"]
    context = ToolContext(languages.root, "s", "r", "c", {}, "tag")
    assert tool.prepare is not None
    planned = await tool.prepare(tool.decode('{"file_path":"a.odd","line":1,"name":"old","new_name":"new"}'), context)
    intents = tool.intent(planned, context).each
    assert [(intent.tool, intent.action, intent.subject) for intent in intents] == [("edit", "write", str(path))]
    assert all(isinstance(change, PlannedChange) for change in planned.changes)
    assert "-old" in tool.preview(planned, context)["diff"]
    path.write_text("old and more\n")
    with pytest.raises(ToolFailed, match="has changed meanwhile"):
        await tool.run(planned, context)
    assert path.read_text() == "old and more\n"


@pytest.mark.parametrize("case", ["fine", "changed", "another name", "outside"])
async def test_l6_of_several_files_all_change_or_none(languages: Languages, case: str) -> None:
    await languages.use("two files")
    one, two = languages.file("a.odd", "old\n"), languages.file("b.odd", "ola\n" if case == "another name" else "old\n")
    outside = languages.file("../out.odd", "old\n")
    tool = languages.host.tools()["rename"]
    context = ToolContext(languages.root, "s", "r", "c", {}, "tag")
    assert tool.prepare
    new = "out" if case == "outside" else "new"
    given = tool.decode(f'{{"file_path":"a.odd","line":1,"name":"old","new_name":"{new}"}}')
    if case == "fine":
        output = await tool.run(await tool.prepare(given, context), context)
        assert {file.path for file in output.files} == {one, two} and two.read_text() == "new\n"
        return
    with pytest.raises(ToolFailed, match=r"Nothing was changed"):
        planned = await tool.prepare(given, context)
        two.write_text("old, and more\n")
        await tool.run(planned, context)
    assert one.read_text() == outside.read_text() == "old\n"


async def test_l7_requests_of_the_server_are_answered_before_it_has_introduced_itself(languages: Languages) -> None:
    await languages.use("asks")
    await languages.host.server_for(languages.file("a.odd", ""), "renameProvider")
    answers = [line for line in languages.notes if line.startswith("{")]
    assert ['"result": [null]' in answers[0], '"result": null' in answers[1], '"error"' in answers[2]] == [True] * 3


async def test_l8_ten_questions_at_once_start_one_server(languages: Languages) -> None:
    await languages.use("push")
    paths = [languages.file(f"{number}.odd", "BAD") for number in range(10)]
    found = await asyncio.gather(*(messages(languages, path) for path in paths))
    assert found == [["there is BAD"]] * 10
    assert len(languages.pids) == 1
    assert languages.states() == ["off", "starting", "ready"]


async def test_l9_closing_leaves_no_process_of_one_that_will_not_go(languages: Languages) -> None:
    await languages.use("stays")
    await languages.host.server_for(languages.file("a.odd", ""), "renameProvider")
    assert len(languages.pids) == 2 and all(map(alive, languages.pids))
    await languages.host.close()
    assert not any(map(alive, languages.pids))
    assert "shutdown" in languages.notes


async def test_l9_closing_in_the_middle_of_a_start_leaves_no_process(languages: Languages) -> None:
    await languages.use("silent")
    asking = asyncio.create_task(languages.host.server_for(languages.file("a.odd", ""), "renameProvider"))
    while "initialize" not in languages.notes:
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait({asking})
    assert all(map(alive, languages.pids)), "only the waiting ended"
    await languages.host.close()
    assert not any(map(alive, languages.pids))


async def test_l10_a_shim_is_absent_with_its_message_and_not_tried_again_at_once(
    languages: Languages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await languages.use("shim")
    path = languages.file("a.odd", "")
    for _ in range(3):
        with pytest.raises(ToolFailed, match="the component is not installed"):
            await languages.host.server_for(path, "renameProvider")
    assert len(languages.pids) == 1
    assert languages.host.views()[0].state == "failed"
    monkeypatch.setattr(lsp_slot, "RETRY_S", 0.0)
    with pytest.raises(ToolFailed, match="not installed"):
        await languages.host.server_for(path, "renameProvider")
    assert len(languages.pids) == 2


async def test_l11_in_a_directory_that_is_not_trusted_nothing_starts_and_nothing_is_offered(
    languages: Languages,
) -> None:
    languages.trust(is_trusted=False)
    await languages.use("push", auto=True)
    assert languages.host.tools() == {}
    assert await messages(languages, languages.file("a.odd", "BAD")) is None
    with pytest.raises(ToolFailed, match="not trusted"):
        await languages.host.server_for(languages.root / "a.odd", "renameProvider")
    assert languages.pids == []
    assert "not trusted" in (languages.host.views()[0].why or "")


async def test_l11_where_a_server_only_finds_what_is_wrong_nothing_else_is_offered(languages: Languages) -> None:
    """Ruff's own word for it, too: none of the others could be answered."""
    ruff = LspSettings(command=str(Path(sys.executable).parent / "ruff"), args=("server",), suffixes=("py",))
    await languages.use(linter=ruff)
    assert list(languages.host.tools()) == ["diagnostics"]
    assert (
        "nowhere" in (await languages.call("diagnostics", file_path=str(languages.file("a.py", "nowhere\n")))).content
    )
    for capability in ("definition", "references", "documentSymbol", "workspaceSymbol", "rename"):
        with pytest.raises(ToolFailed, match="linter cannot do that"):
            await languages.host.server_for(languages.root / "a.py", f"{capability}Provider")
    await languages.use("push", linter=ruff)
    assert list(languages.host.tools()) == ["definition", "references", "symbols", "diagnostics", "rename"]


async def test_l12_who_is_not_asked_for_long_rests_and_the_next_question_starts_it(
    languages: Languages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsp_slot, "REST_AFTER_S", 0.0)
    monkeypatch.setattr(lsp_slot, "LOOK_S", 0.0)
    await languages.use("push")
    path = languages.file("a.odd", "BAD")
    await languages.host.server_for(path, "renameProvider")
    while languages.host.views()[0].state != "resting":
        await asyncio.sleep(0.01)
    monkeypatch.setattr(lsp_slot, "REST_AFTER_S", 600.0)
    assert await messages(languages, path) == ["there is BAD"]
    assert len(languages.pids) == 2


async def test_l12_who_grows_too_large_is_stopped(languages: Languages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp_slot, "LOOK_S", 0.0)
    monkeypatch.setattr(lsp_slot, "MEMORY_MB", 1.0)
    await languages.use("push")
    await languages.host.server_for(languages.file("a.odd", ""), "renameProvider")
    while languages.host.views()[0].state != "resting":
        await asyncio.sleep(0.01)


async def test_l13_what_a_command_changed_is_known_before_the_next_question(languages: Languages) -> None:
    await languages.use("push")
    first, second = languages.file("a.odd", "x old"), languages.file("b.odd", "BAD")
    await messages(languages, first)
    first.write_text("y\nz old")
    languages.host.files_changed([first, second])
    await messages(languages, second)
    assert "workspace/didChangeWatchedFiles" in languages.notes
    assert languages.notes.count("textDocument/didChange") == 1


async def test_a_server_that_crashes_says_so_and_hurts_nobody(languages: Languages) -> None:
    await languages.use("crash", "push")
    path = languages.file("a.odd", "BAD")
    assert await messages(languages, path) == ["there is BAD"]
    while languages.host.views()[0].state != "failed":
        await asyncio.sleep(0.01)
    assert "it was too much" in (languages.host.views()[0].why or "")


async def test_a_server_that_is_taken_out_of_the_configuration_ends(languages: Languages) -> None:
    await languages.use("push")
    await languages.host.server_for(languages.file("a.odd", ""), "renameProvider")
    await languages.use()
    assert not any(map(alive, languages.pids))
    assert languages.host.tools() == {}


async def test_a_program_that_is_not_there_is_said_so(languages: Languages) -> None:
    await languages.use(gone=LspSettings(command="no-such-language-server", suffixes=(".odd",)))
    with pytest.raises(ToolFailed, match="no-such-language-server is not on this machine"):
        await languages.host.server_for(languages.file("a.odd", ""), "renameProvider")


async def test_a_name_that_is_elsewhere_is_said_where(languages: Languages) -> None:
    await languages.use("push")
    languages.file("a.odd", "one\nold\nold\n")
    with pytest.raises(ToolFailed, match="it is on 2, 3"):
        await languages.call("rename", file_path="a.odd", line=1, name="old", new_name="new")
    with pytest.raises(ToolFailed, match="only know the files of the workspace"):
        await languages.call("rename", file_path="/etc/passwd", line=1, name="root", new_name="new")
