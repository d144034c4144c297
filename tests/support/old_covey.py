"""Covey as it was at one commit, from the history of this repository; and a store that it made.

    python -m tests.support.old_covey        makes the store again, as `STORE`

The store is kept as SQL, with `PROJECT` in the place of the directory that it is about. Its server was killed with one
run active and one queued.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.support.fake_model import FakeModel
from tests.support.server import Server, provider_config, until

COMMIT = "4413254"
ROOT = Path(__file__).parents[2]
STORE = Path(__file__).parents[1] / "e2e" / f"store_of_{COMMIT}.sql.gz"
PROJECT = "/covey-project-of-this-store"
NEW_TEXT, OLD_TEXT = "two\n", "one\n"


def directed(*replies: object) -> str:
    """A prompt that says what the fake model answers, call by call."""
    return json.dumps([list(replies)])


def write(content: str) -> str:
    call = {"name": "write", "input": {"file_path": "notes.txt", "content": content}}
    return directed({"tools": [call]}, {"text": "written"})


SILENT = directed({"text": "half an answer ", "ending": "silence"})


def unpack(into: Path, commit: str = COMMIT) -> Path | None:
    """The sources of that commit; None where the history does not reach back to it."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(into, filter="data")
    return into / "src"


# ── the store ──


def load_store(data_dir: Path, project: Path) -> int:
    """Lay out the store, as if it were about this directory. Gives the epoch of its events."""
    data_dir.mkdir(mode=0o700, parents=True)
    text = gzip.decompress(STORE.read_bytes()).decode()
    for form in (str, lambda path: path.encode().hex().upper()):
        text = text.replace(form(PROJECT), form(str(project)))
    with contextlib.closing(sqlite3.connect(data_dir / "covey.db")) as connection:
        connection.executescript(text)
        return int(connection.execute("SELECT epoch FROM workspaces").fetchone()[0])


def _dump(data_dir: Path, project: Path) -> str:
    with contextlib.closing(sqlite3.connect(data_dir / "covey.db")) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        text = "\n".join([*connection.iterdump(), f"PRAGMA user_version = {version};"])
    for form in (str, lambda path: path.encode().hex().upper()):
        text = text.replace(form(str(project)), form(PROJECT))
    return text


def _fill(server: Server) -> None:
    workspace = server.workspace(yolo=True)
    talk, stopped, long = (workspace.session(title) for title in ("Talk", "Stopped", "Summed up"))
    for number, prompt in enumerate(("hello", write(OLD_TEXT), write(NEW_TEXT))):
        workspace.ended(workspace.prompt(talk, prompt, run_id=f"talk-{number}")["run_id"])
    workspace.prompt(stopped, SILENT, run_id="cancelled")
    until(lambda: workspace.run("cancelled")["state"] == "active")
    workspace.cancel(stopped)
    workspace.ended("cancelled")
    workspace.ended(workspace.prompt(long, "hello", run_id="long")["run_id"])
    workspace.ended(workspace.request("POST", f"/agent/sessions/{long}/summarize").ok()["run_id"])
    stream = workspace.stream()
    workspace.prompt(stopped, SILENT, run_id="active")
    stream.wait_delta()
    workspace.prompt(stopped, "hello again", run_id="queued")
    stream.wait_state("queued", "queued")
    stream.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, FakeModel() as model:
        source = unpack(Path(directory) / "old")
        assert source, f"the history does not reach back to {COMMIT}"
        server = Server(Path(directory) / "home", provider_config(model.url), {"PYTHONPATH": str(source)})
        try:
            server.start()
            _fill(server)
            server.kill()
            STORE.write_bytes(gzip.compress(_dump(server.data_dir, server.project).encode(), mtime=0))
        finally:
            server.close()


if __name__ == "__main__":
    main()
