"""Who imports whom, read from the sources: also imports inside of functions, which run late but bind all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "covey"

VALUES = {"protocol", "lifecycle", "permissions"}
EDGES = VALUES | {"machine", "config", "credentials", "context", "models", "tools", "store", "feed"}
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": {"cli"},
    "protocol": set(),
    "machine": set(),
    "lifecycle": {"protocol"},
    "permissions": {"protocol"},
    "config": VALUES | {"machine"},
    "context": VALUES | {"machine", "config"},
    "models": VALUES | {"config"},
    "credentials": VALUES | {"machine", "config", "models"},
    "tools": VALUES | {"machine"},
    "store": VALUES,
    "doctor": VALUES | {"store"},
    "feed": VALUES,
    "engine": EDGES,
    "server": {"machine", "engine", "feed", "protocol", "config"},
    "client": {"machine", "protocol"},
    "cli": {"client", "protocol", "config"},
    "tui": {"client", "protocol"},
    "web": {"client", "protocol"},
}
ALSO_ALLOWED: dict[str, set[str]] = {
    "cli/serve.py": {"server"},
    "cli/login.py": {"credentials"},
    "cli/logout.py": {"credentials"},
    "cli/doctor_keys.py": {"credentials"},
    "cli/doctor.py": {"machine", "doctor", "store", "tools"},
    "server/daemon.py": {"store"},
}
"""Where a face may start, or examine, what it otherwise only talks to, and where the server is put together."""

PURE = {"__future__", "collections", "covey", "dataclasses", "enum", "fnmatch", "functools", "msgspec", "re", "typing"}
"""What rules may import: nothing that waits, reads, writes, draws lots or knows the time."""


def layer_of(path: str) -> str:
    """`engine` for engine/turn.py; a module of the package itself is a layer of its own."""
    return path.partition("/")[0].removesuffix(".py")


def imported(source: str, path: str) -> Iterator[str]:
    """The full name of every module that a file of ours imports, or may import: `from a import b` gives `a.b`."""
    package = ["covey", *path.split("/")[:-1]]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"), args=[name, *_]
            ):
                yield _beginning(name)


def _beginning(name: ast.expr) -> str:
    """As much of a computed name as stands in the source."""
    match name:
        case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
    return "covey.*"


def forbidden(source: str, path: str) -> list[str]:
    """The layers that this file imports and may not."""
    own = layer_of(path)
    allowed = {own, *ALLOWED.get(own, set()), *ALSO_ALLOWED.get(path, set())}
    layers = {name.split(".")[1] for name in imported(source, path) if name.startswith("covey.")}
    return sorted(layer for layer in layers - allowed if layer in ALLOWED or layer == "*")


FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_each_file_imports_only_what_its_layer_may(path: str) -> None:
    assert forbidden((PACKAGE / path).read_text("utf-8"), path) == []


def test_every_layer_is_known() -> None:
    assert {layer_of(path) for path in FILES} <= set(ALLOWED)
    assert {layer for allowed in ALLOWED.values() for layer in allowed} <= set(ALLOWED)


RULES = [path for path in FILES if layer_of(path) in ("lifecycle", "permissions")]


@pytest.mark.parametrize("path", [*RULES, "protocol/growth.py"])
def test_the_rules_neither_wait_nor_touch_the_world(path: str) -> None:
    source = (PACKAGE / path).read_text("utf-8")
    assert {name.partition(".")[0] for name in imported(source, path)} <= PURE
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert not [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, waiting)]
    assert "open(" not in source.replace("_open(", "")


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("protocol/a.py", "from covey.lifecycle.runs import Lane", ["lifecycle"]),
        ("protocol/a.py", "from covey import __version__", []),
        ("lifecycle/a.py", "from covey import protocol, store", ["store"]),
        ("client/a.py", "import covey.engine.turn as turn, covey.protocol.sse", ["engine"]),
        ("client/a.py", "def late():\n    if True:\n        from covey.server.app import app", ["server"]),
        (
            "client/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from covey.store import base",
            ["store"],
        ),
        ("client/a.py", "from ..feed import feed\nfrom . import b\nfrom .b import c", ["feed"]),
        ("client/a.py", "from .. import feed, protocol", ["feed"]),
        ("client/a.py", "import importlib\nimportlib.import_module('covey.engine')", ["engine"]),
        ("client/a.py", "import importlib\nimportlib.import_module(f'covey.tools.{name}')", ["tools"]),
        ("client/a.py", "import importlib\nimportlib.import_module(f'covey.client.{name}')", []),
        ("client/a.py", "__import__(name)", ["*"]),
        ("machine/a.py", "from covey.protocol.paths import token_file", ["protocol"]),
        ("tools/a.py", "from covey.machine.regular import open_regular", []),
        ("permissions/a.py", "from covey.machine.regular import open_regular", ["machine"]),
        ("cli/serve.py", "from covey.server.app import app", []),
        ("cli/run.py", "from covey.server.app import app", ["server"]),
        ("store/deep/a.py", "from ...engine import turn\nfrom ..base import Store", ["engine"]),
        ("server/app.py", "from covey.store.journal import Journal", ["store"]),
        ("engine/turn.py", "from covey.server import app", ["server"]),
        ("engine/turn.py", "from covey.context.prompt import system_prompt", []),
        ("context/git.py", "from covey.tools.processes import kill_tagged", ["tools"]),
        ("surprise.py", "from covey.protocol import sse", ["protocol"]),
        ("engine/turn.py", "import coveyor.server, engine", []),
    ],
)
def test_a_forbidden_edge_is_found_however_it_is_written(path: str, source: str, found: list[str]) -> None:
    assert forbidden(source, path) == found
