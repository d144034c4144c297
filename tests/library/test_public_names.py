"""The names that `import covey` promises. A change here is a change for every program that uses Covey."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import covey

NAMES = [
    "Allow",
    "Answer",
    "ApiError",
    "Attachment",
    "Client",
    "Closed",
    "ConnectionLost",
    "CoveyError",
    "DataDirInUse",
    "Denied",
    "Deny",
    "Event",
    "EventStream",
    "Message",
    "MessageDelta",
    "Opened",
    "PermissionRequest",
    "PostPrompt",
    "PromptOptions",
    "PromptReceipt",
    "PromptStream",
    "QuestionBatchRequest",
    "QuestionResponse",
    "Run",
    "RunComplete",
    "RunTimedOut",
    "ServerUnreachable",
    "Session",
    "SyncClient",
    "SyncStream",
    "ToolOutputDelta",
    "Usage",
    "WorkspaceClient",
    "WorkspaceView",
    "ask",
    "ask_sync",
    "connect",
    "leave_to_others",
    "open",
]
SOURCE = Path(covey.__file__)
HEAVY = ("apsw", "starlette", "uvicorn", "httpx2", "covey.server", "covey.engine", "covey.store", "covey.models")


def test_the_public_names_are_these() -> None:
    assert covey.__all__ == NAMES
    assert set(NAMES) <= set(dir(covey))


@pytest.mark.parametrize("name", NAMES)
def test_each_of_them_is_there_and_is_called_so_where_it_is_defined(name: str) -> None:
    found = getattr(covey, name)
    assert found.__name__ == name
    assert found.__doc__


def test_type_checkers_see_the_names_that_there_are_at_run_time() -> None:
    block = next(node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {name: f"covey.{module}" for name, module in covey._WHERE.items()}
    assert SOURCE.with_name("py.typed").exists()


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'asks'"):
        covey.asks  # type: ignore[attr-defined] # noqa: B018


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded for the statement alone."""
    script = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_covey_loads_covey_alone() -> None:
    assert modules_after("import covey") == {"covey"}


def test_all_names_at_once_load_no_server() -> None:
    loaded = modules_after("from covey import *")
    assert "covey.client.client" in loaded
    assert not {name for name in loaded if name.startswith(HEAVY)}
