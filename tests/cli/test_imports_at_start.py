"""How much is imported before anybody gets an answer. Counted, as times say more about the machine than about us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Home

LISTENING = """
import os, sys
from covey.cli.main import main
from covey.cli import serve
import covey.server.lean_imports as lean
left_out = lean.leave_out_command_line
def then_watch():
    left_out()
    import covey.server.daemon as daemon
    def listening(address):
        print("\\n".join(sys.modules), flush=True)
        os._exit(0)
    daemon._say_listening = listening
lean.leave_out_command_line = then_watch
main(["serve", "--host", sys.argv[1], "--data-dir", sys.argv[2]])
"""


def test_a_server_listens_before_it_imports_what_workspaces_and_commands_need(home: Home, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LISTENING, f"unix://{home.runtime}/imports.sock", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=home.env)
    imported = set(done.stdout.split())
    assert "covey.server.app" in imported, done.stderr
    ours = {name for name in imported if name.startswith("covey")}
    late = ("covey.engine.workspace", "covey.sandbox", "covey.tools", "covey.lifecycle", "covey.permissions.judge")
    assert not {name for name in ours if name.startswith(late) and name != "covey.engine.workspaces"}
    assert not imported & {"click", "multiprocessing", "uvicorn.main"}
    assert len(ours) <= 142
    assert len(imported) <= 440


def test_covey_run_imports_no_server_and_few_modules(home: Home) -> None:
    assert home.covey("run", "hello").returncode == 0  # a server is there now
    command = [sys.executable, "-X", "importtime", "-m", "covey", "run", "hello"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=home.env, cwd=home.project)
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    ours = {name for name in imported if name.startswith("covey")}
    assert not {name for name in ours if name.startswith(("covey.server", "covey.engine", "covey.store"))}
    assert len(ours) <= 90
    assert len(imported) <= 300


FOREIGN = ("covey.server", "covey.engine", "covey.store", "uvicorn")


def test_programs_that_others_start_import_no_server_and_few_modules(home: Home) -> None:
    for words in (("acp",), ("mcp", "serve")):
        command = [sys.executable, "-X", "importtime", "-m", "covey", *words]
        nothing = subprocess.DEVNULL
        done = subprocess.run(
            command, stdin=nothing, capture_output=True, text=True, timeout=30, env=home.env, cwd=home.project
        )
        assert done.returncode == 0, done.stderr[-2000:]
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
        assert not {name for name in imported if name.startswith(FOREIGN)}
        assert len(imported) <= 330, (words, len(imported))
