"""The index of a workspace's files: what is in it, when it is made anew, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from covey.sandbox.policy import Mode, Policy
from covey.tools import file_index, fuzzy, search_process
from covey.tools.file_index import FileIndex, FileMatches
from covey.tools.output import Output
from covey.tools.processes import Completed, LocalProcesses
from tests.tools.test_walk import plant

pytestmark = pytest.mark.anyio


class Listed:
    """In place of the machine: gives a list, and counts how often it was asked for one."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.asked: list[dict[str, object]] = []
        self.gate: asyncio.Event | None = None
        self.takes = 0.0
        self.now = 100.0
        self.more = False

    def clock(self) -> float:
        return self.now

    async def run_command(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        timeout_s: float | None,
        output_limit: int = 0,
        output: Output | None = None,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> Completed:
        self.asked.append(json.loads(command[-1]))
        if self.gate:
            await self.gate.wait()
        self.now += self.takes
        names = sorted(self.names, key=lambda name: (len(name), name))
        lines = [names[start : start + 500] for start in range(0, len(names), 500)]
        summary = {"summary": {"unreadable": 0, "out_of_time": False, "more": self.more}}
        return Completed(0, "".join(json.dumps(line) + "\n" for line in [*lines, summary]))


def paths(found: FileMatches) -> list[str]:
    return [match.path for match in found.matches]


def index_of(machine: Listed) -> FileIndex:
    return FileIndex(Path("/p"), machine, "tag", lambda: ["view:*.key", "bash:rm *"], machine.clock)


# ── on a real tree ──


@pytest.fixture
async def real(root: Path, tag: str) -> AsyncIterator[FileIndex]:
    made = FileIndex(root, LocalProcesses(), tag, lambda: ["view:*.key"])
    yield made
    await made.aclose()


async def test_files_are_found_but_not_ignored_hidden_or_unspeakable_ones(root: Path, real: FileIndex) -> None:
    plant(root, "src/main.py", "src/build/main.o", "node_modules/m/main.js", ".git/main", ".env", "main.key", "ma\nin")
    plant(root, "deep/in/here/main_window.ts")
    (root / ".gitignore").write_text("build/\n")
    (root / "mainlink").symlink_to("src")
    (Path(os.fsdecode(os.fsencode(root) + b"/main\xff"))).touch()
    found = await real.search("main", 50)
    assert paths(found) == ["mainlink", "src/main.py", "deep/in/here/main_window.ts"]
    assert found.is_complete
    assert found.matches[1].places == (4, 5, 6, 7)
    assert paths(await real.search("env", 5)) == [".env"]


async def test_a_tree_with_too_many_files_is_listed_from_the_top_and_said_to_be_cut(
    root: Path, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, "a", "b", "c", "deep/d", "deep/e")
    told: list[object] = []
    monkeypatch.setattr(search_process, "tell", told.append)
    monkeypatch.setattr(search_process, "NAMES_LIMIT", 3)
    request = {"base": str(root), "top": str(root), "until": float("inf"), "denied": [], "operation": "names"}
    assert search_process.names(request)["more"]
    assert told == [["a", "b", "c"]]
    monkeypatch.setattr(search_process, "NAMES_BYTES", 2)
    told.clear()
    assert search_process.names(request)["more"]
    assert told == [["a", "b"]]


async def test_a_directory_that_is_gone_has_no_files(root: Path, real: FileIndex) -> None:
    root.rmdir()
    assert paths(await real.search("x", 5)) == []


# ── when it is made ──


async def test_a_list_is_made_once_for_many_queries_and_again_when_it_is_old() -> None:
    machine = Listed("main.py")
    index = index_of(machine)
    await asyncio.gather(*(index.search(query, 5) for query in ("m", "ma", "mai", "main")))
    assert len(machine.asked) == 1
    assert machine.asked[0]["denied"] == ["view:*.key"]
    machine.names.append("main_two.py")
    machine.now += file_index.FRESH_S - 0.1
    assert paths(await index.search("main", 5)) == ["main.py"]
    machine.now += 0.1
    assert paths(await index.search("main", 5)) == ["main.py"], "the old list is used while a new one is made"
    await _settled(index)
    assert paths(await index.search("main", 5)) == ["main.py", "main_two.py"]
    assert len(machine.asked) == 2


async def test_a_list_that_takes_long_is_made_more_rarely() -> None:
    machine = Listed("main.py")
    machine.takes = 3.0
    index = index_of(machine)
    await index.search("m", 5)
    machine.now += file_index.REST * 3.0 - 0.1
    await index.search("m", 5)
    await _settled(index)
    assert len(machine.asked) == 1
    machine.now += 0.2
    await index.search("m", 5)
    await _settled(index)
    assert len(machine.asked) == 2


async def test_who_knows_of_a_change_can_say_so_and_memory_can_be_given_back() -> None:
    machine = Listed("main.py")
    index = index_of(machine)
    await index.search("m", 5)
    index.expire()
    assert paths(await index.search("m", 5)) == ["main.py"]
    await _settled(index)
    assert len(machine.asked) == 2
    index.forget()
    assert paths(await index.search("m", 5)) == ["main.py"]
    assert len(machine.asked) == 3


async def test_only_the_first_query_waits_and_closing_waits_for_nobody() -> None:
    machine = Listed("main.py")
    machine.gate = asyncio.Event()
    index = index_of(machine)
    first = asyncio.create_task(index.search("m", 5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not first.done()
    await index.aclose()
    assert await first == FileMatches((), is_complete=False)


async def test_a_list_that_cannot_be_made_is_an_empty_answer_and_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Listed("main.py")
    index = index_of(machine)
    with monkeypatch.context() as then:
        then.setattr(machine, "run_command", _refuse)
        assert await index.search("m", 5) == FileMatches((), is_complete=False)
    assert "could not be listed" in caplog.text
    assert paths(await index.search("m", 5)) == ["main.py"]


async def _refuse(*args: object, **options: object) -> Completed:
    raise OSError("no processes left")


async def test_a_cut_list_says_so() -> None:
    machine = Listed("main.py")
    machine.more = True
    assert not (await index_of(machine).search("m", 5)).is_complete


# ── what a query costs ──


async def test_everybody_else_goes_on_while_a_query_looks_at_many_names() -> None:
    machine = Listed(*(f"d{number % 100}/file{number}.py" for number in range(10_000)))
    index = index_of(machine)
    await index.search("", 1)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    busy = asyncio.create_task(others())
    await index.search("zzz", 5)
    assert turns >= 10_000 // file_index.SLICE
    turns = 0
    await index.search("fpy", 5)
    busy.cancel()
    assert turns >= file_index.SLICE // file_index.CLOSE_SLICE


async def test_a_query_that_goes_on_from_the_last_looks_only_at_what_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = fuzzy.Ranking.select

    def counting(self: fuzzy.Ranking, folded: Sequence[str], places: Sequence[int]) -> list[int]:
        looked.append(len(places))
        return real(self, folded, places)

    machine = Listed(*(f"d/{number}.py" for number in range(5_000)), "a/needle.py", "b/needles.py")
    index = index_of(machine)
    await index.search("", 1)
    monkeypatch.setattr(fuzzy.Ranking, "select", counting)

    async def cost(query: str) -> int:
        looked.clear()
        await index.search(query, 20)
        return sum(looked)

    assert await cost("nee") == 5_002
    assert await cost("need") == 2
    assert await cost("needles") == 2
    assert await cost("nel") == 5_002, "another query begins anew"
    machine.names.append("c/nelson.py")
    index.expire()
    await index.search("nel", 5)
    await _settled(index)
    assert await cost("nels") == 5_003, "and so does one in a new list"


async def _settled(index: FileIndex) -> None:
    while index._making is not None:
        await asyncio.wait([index._making])
        await asyncio.sleep(0)
