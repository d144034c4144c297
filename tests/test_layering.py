"""Who imports whom, read from the sources: also imports inside of functions, which run late but bind all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "covey"

VALUES = {"protocol", "lifecycle", "permissions"}
EDGES = VALUES | {"machine", "sandbox", "config", "credentials", "context", "models", "notify"}
EDGES |= {"tools", "store", "feed"}
ALLOWED: dict[str, set[str]] = {
    "__init__": {"client", "in_process", "protocol"},
    "__main__": {"cli"},
    "protocol": set(),
    "machine": set(),
    "sandbox": {"protocol", "machine"},
    "lifecycle": {"protocol"},
    "permissions": {"protocol"},
    "config": VALUES | {"machine"},
    "context": VALUES | {"machine", "config"},
    "models": VALUES | {"config"},
    "credentials": VALUES | {"machine", "config", "models"},
    "tools": VALUES | {"machine", "sandbox"},
    "store": VALUES,
    "doctor": VALUES | {"store"},
    "feed": VALUES,
    "notify": {"protocol", "machine", "config", "models"},
    "engine": EDGES,
    "cluster": {"protocol", "config", "engine", "store"},
    "server": {"machine", "engine", "protocol", "config", "cluster"},
    "client": {"machine", "protocol"},
    "in_process": {"client", "protocol", "server"},
    "lines": {"protocol"},
    "cli": {"client", "lines", "protocol", "config"},
    "tui": {"client", "lines", "protocol"},
    "rpc": set(),
    "acp": {"client", "lines", "protocol", "rpc"},
    "mcp_server": {"client", "lines", "protocol", "rpc"},
    "web": {"client", "protocol"},
}
ALSO_ALLOWED: dict[str, set[str]] = {
    "__init__.py": {"*"},
    "cli/serve.py": {"server"},
    "cli/acp.py": {"acp"},
    "cli/mcp_serve.py": {"mcp_server", "server"},
    "cli/tui.py": {"tui"},
    "cli/login.py": {"credentials"},
    "cli/logout.py": {"credentials"},
    "cli/mcp_login.py": {"credentials"},
    "cli/doctor_keys.py": {"credentials"},
    "cli/keys_here.py": {"credentials"},
    "cli/doctor_sandbox.py": {"sandbox"},
    "cli/doctor_aside.py": {"doctor"},
    "cli/doctor_texts.py": {"context"},
    "cli/doctor_store.py": {"doctor", "store"},
    "cli/store.py": {"machine", "store"},
    "cli/doctor.py": {"machine", "doctor", "store", "tools"},
    "server/daemon.py": {"store"},
    "server/service.py": {"store"},
}
"""Where a face may start, or examine, what it otherwise only talks to, and where the server is put together."""

PURE = {
    *("__future__", "collections", "covey", "dataclasses", "enum", "fnmatch", "functools", "msgspec", "re", "typing"),
    *("base64", "binascii", "copy", "difflib", "graphlib", "html", "itertools", "unicodedata"),
}
"""What rules may import: nothing that waits, reads, writes, draws lots or knows the time."""


def layer_of(path: str) -> str:
    """`engine` for engine/turns/turn.py; a module of the package itself is a layer of its own."""
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


ROOMS: dict[str, set[str]] = {
    "": set(),
    "asks": {""},
    "extensions": {"", "asks"},
    "turns": {"", "asks"},
    "lanes": {"", "turns"},
    "undo": {"", "turns", "lanes"},
    "commands": {"", "asks", "extensions", "turns", "lanes", "undo"},
}
"""Which rooms of the engine each one may use. "": the modules at the top that every room may use."""
DOORS = ("engine/workspace.py", "engine/everywhere.py", "engine/workspaces.py")
"""They use every room; no room uses them."""


def room_of(path: str) -> str:
    """`turns` for engine/turns/turn.py, "" for engine/world.py, and each door is a room of its own."""
    return path if path in DOORS else "/".join(path.split("/")[1:-1])


def wrong_rooms(source: str, path: str) -> list[str]:
    """The rooms of the engine that this file of it imports and may not."""
    own = room_of(path)
    allowed = {own, *ROOMS.get(own, {*ROOMS, *DOORS})}
    modules = [name.split(".")[2:] for name in imported(source, path) if name.startswith("covey.engine.")]
    return sorted({room for names in modules if (room := _room(names)) not in allowed})


def _room(names: list[str]) -> str:
    door = f"engine/{names[0]}.py"
    return door if door in DOORS else names[0] if names[0] in ROOMS else ""


FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES)
def test_each_file_imports_only_what_its_layer_may(path: str) -> None:
    assert forbidden((PACKAGE / path).read_text("utf-8"), path) == []


ENGINE = [path for path in FILES if layer_of(path) == "engine"]


@pytest.mark.parametrize("path", ENGINE)
def test_each_room_of_the_engine_uses_only_those_before_it(path: str) -> None:
    assert wrong_rooms((PACKAGE / path).read_text("utf-8"), path) == []


def test_every_room_of_the_engine_is_known_and_no_two_use_each_other() -> None:
    assert {room_of(path) for path in ENGINE} == {*ROOMS, *DOORS}
    names = list(ROOMS)
    assert all(names.index(used) < names.index(room) for room, uses in ROOMS.items() for used in uses)


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("engine/turns/a.py", "from covey.engine.lanes.dispatcher import Dispatcher", ["lanes"]),
        ("engine/turns/a.py", "from covey.engine import lanes, world", ["lanes"]),
        ("engine/turns/a.py", "if TYPE_CHECKING:\n    from ..commands import intake", ["commands"]),
        ("engine/turns/a.py", "from covey.engine.asks.pending import Pending\nfrom . import speaker", []),
        ("engine/recorder.py", "from covey.engine.asks.pending import Pending", ["asks"]),
        ("engine/undo/a.py", "from covey.engine.workspace import Workspace", ["engine/workspace.py"]),
        ("engine/workspaces.py", "from covey.engine.workspace import Workspace", []),
        ("engine/lanes/a.py", "from covey.engine.world import World\nfrom covey.store.base import Store", []),
    ],
)
def test_an_edge_between_rooms_that_leads_back_is_found(path: str, source: str, found: list[str]) -> None:
    assert wrong_rooms(source, path) == found


def test_every_layer_is_known() -> None:
    assert {layer_of(path) for path in FILES} <= set(ALLOWED)
    assert {layer for allowed in ALLOWED.values() for layer in allowed} <= set(ALLOWED)


RULES = [path for path in FILES if layer_of(path) in ("lifecycle", "permissions")]
SANDBOX_VALUES = [f"sandbox/{name}.py" for name in ("policy", "plan", "places", "seccomp", "denials", "seatbelt")]


VIEW = [path for path in FILES if path.startswith("client/view/")]
LINES = [path for path in FILES if layer_of(path) == "lines"]
EDITORS = ("updates", "transcript_updates", "asking", "endings", "settings", "content", "passed")
FACE = [path for path in FILES if path.startswith(("tui/face/", "tui/transcript/"))]
TERMINAL = ("decoder", "key_names", "answers", "facts", "cells", "painter", "modes", "outside")
TERMINAL_VALUES = ["tui/frame.py", "tui/inputs.py", *(f"tui/terminal/{name}.py" for name in TERMINAL)]
FACES = [*VIEW, *LINES, *(f"acp/{name}.py" for name in EDITORS), *FACE, *TERMINAL_VALUES, "client/transcript.py"]
PURE_FILES = [*RULES, *SANDBOX_VALUES, *FACES, "protocol/growth.py"]


@pytest.mark.parametrize("path", PURE_FILES)
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
        ("client/a.py", "import covey.engine.turns.turn as turn, covey.protocol.sse", ["engine"]),
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
        ("engine/turns/turn.py", "from covey.server import app", ["server"]),
        ("engine/turns/turn.py", "from covey.context.prompt import system_prompt", []),
        ("context/git.py", "from covey.tools.processes import kill_tagged", ["tools"]),
        ("surprise.py", "from covey.protocol import sse", ["protocol"]),
        ("engine/turns/turn.py", "import coveyor.server, engine", []),
    ],
)
def test_a_forbidden_edge_is_found_however_it_is_written(path: str, source: str, found: list[str]) -> None:
    assert forbidden(source, path) == found


# ── the door of a workspace ──

INSIDE = {"agent", "book", "dispatcher", "feed", "journal", "lanes", "parts", "recorder", "shared", "store", "turns"}
"""What is behind the commands of a workspace: nothing in the server may have a name for it."""
ROOTS = ("server/daemon.py", "server/service.py")
"""One is a process, the other puts the parts together."""
SERVER = [path for path in FILES if layer_of(path) == "server" and path not in ROOTS]


class Door:
    """Finds what goes beyond `workspace.<name>` and `workspace.<facet>.<command>(…)` in a file of the server.

    A workspace is known by its name, by its annotation, or by `await call.workspace()`.
    """

    def __init__(self, source: str) -> None:
        self._nodes = list(ast.walk(ast.parse(source)))
        self._called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        self._own = {"self", "cls", *(node.name for node in self._nodes if isinstance(node, ast.ClassDef))}
        self._workspaces = {"workspace", *self._annotated()}
        self._facets: set[str] = set()
        self._facets = {
            target.id
            for node in self._nodes
            if isinstance(node, ast.Assign) and self._depth(node.value) == 1
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def _annotated(self) -> Iterator[str]:
        for node in self._nodes:
            match node:
                case ast.arg(arg=name, annotation=ast.Name(id="Workspace" | "OpenWorkspace")):
                    yield name
                case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="Workspace" | "OpenWorkspace")):
                    yield name

    def _depth(self, node: ast.expr) -> int | None:
        """0 for a workspace, 1 for what has a name in it, and so on; None for anything else, such as an answer."""
        match node:
            case ast.Await(value=ast.Call(func=ast.Attribute(attr="workspace"))):
                return 0
            case ast.Name(id=name):
                return 0 if name in self._workspaces else 1 if name in self._facets else None
            case ast.Attribute(attr="workspace" | "_workspace") if id(node) not in self._called:
                return 0
            case ast.Attribute(value=value):
                depth = self._depth(value)
                return None if depth is None else depth + 1
        return None

    def _is_forbidden(self, node: ast.Attribute) -> bool:
        is_private = node.attr.startswith("_") and not node.attr.startswith("__")
        is_own = isinstance(node.value, ast.Name) and node.value.id in self._own
        if (is_private and not is_own) or node.attr in INSIDE:
            return True
        depth = self._depth(node) or 0
        is_changed = depth > 0 and not isinstance(node.ctx, ast.Load)
        return is_changed or depth > 2 or (depth == 2 and id(node) not in self._called)

    def passed_by(self) -> list[str]:
        """What reaches past it, as it is written; of a chain, the part at which it does so."""
        wrong = [node for node in self._nodes if isinstance(node, ast.Attribute) and self._is_forbidden(node)]
        return sorted({ast.unparse(node) for node in wrong if node.value not in wrong})


@pytest.mark.parametrize("path", SERVER)
def test_the_server_uses_the_commands_of_a_workspace_and_nothing_behind_them(path: str) -> None:
    source = (PACKAGE / path).read_text("utf-8")
    assert Door(source).passed_by() == []
    rooms = {_room(name.split(".")[2:]) for name in imported(source, path) if name.startswith("covey.engine.")}
    assert rooms <= {*DOORS, "commands"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("await workspace.runs.post(body)", []),
        ("workspace.sessions.get(sid).title", []),
        ("Stream(workspace.stream.open('', deltas=True), workspace.path)", []),
        ("call.workspaces.get(name)", []),
        ("self._reader.live.take()", []),
        ("workspace.feed.subscribe()", ["workspace.feed"]),
        ("workspace._parts", ["workspace._parts"]),
        ("(await call.workspace()).runs._waiters.ended(x)", ["(await call.workspace()).runs._waiters"]),
        ("(await call.workspace()).asks.desk.answer()", ["(await call.workspace()).asks.desk"]),
        ("workspace.runs.open_runs", ["workspace.runs.open_runs"]),
        ("self._workspace.asks.desk.pending", ["self._workspace.asks.desk"]),
        ("workspace.closing = True", ["workspace.closing"]),
        ("workspace.clients.claims = x", ["workspace.clients.claims"]),
        ("runs = workspace.runs\nruns.waiters.ended(x)", ["runs.waiters"]),
        ("runs = workspace.runs\nruns.get(x)", []),
        ("def f(w: Workspace):\n    w.runs.early.covers(x)", ["w.runs.early"]),
        ("w: OpenWorkspace = x\nw.path.parent", ["w.path.parent"]),
        ("for each in workspaces.all():\n    each.lanes", ["each.lanes"]),
        ("scope['covey'].store.run(x)", ["scope['covey'].store"]),
    ],
)
def test_whatever_reaches_past_the_door_is_found(source: str, found: list[str]) -> None:
    assert Door(source).passed_by() == found
