"""What one server has in SQLite moves to PostgreSQL and back, row by row; tables are made by one node at a time."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.cli import exits
from covey.cli.main import main
from covey.doctor.oracle import examine
from covey.doctor.shared_store import examine_postgres
from covey.store.base import StoreFailed
from covey.store.postgres.administration import upgrade
from covey.store.postgres.schema import STEPS
from covey.store.postgres.transfer import TABLES, copy_in, dump, workspace_ids
from tests.support import old_covey
from tests.support.postgres import PostgresProcess, postgres


@pytest.fixture
def server() -> PostgresProcess:
    return postgres()


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    """Of an older version, which was killed with runs open; with undone files, a summary, cancels."""
    (tmp_path / "project").mkdir()
    old_covey.load_store(tmp_path / "data", tmp_path / "project")
    return tmp_path / "data" / "covey.db"


def rows_of(file: Path) -> dict[str, list[Any]]:
    """All rows. Positions are only an order, and are left out."""
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        found = {}
        for table in TABLES:
            columns = table.columns.replace("position, ", "")
            order = "position" if columns != table.columns else columns
            if connection.table_exists("main", table.name):
                found[table.name] = list(connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {order}"))
        return found


def database_of(url: str) -> str:
    return url.removeprefix("postgresql://covey@/").partition("?")[0]


def test_a_store_moves_into_postgres_and_back_with_every_row(
    server: PostgresProcess, old_store: Path, tmp_path: Path
) -> None:
    url, before = server.new_database(), rows_of(old_store)
    copied = copy_in(old_store, url)
    assert copied.rows["events"] == len(before["events"]) > 10
    (workspace_id,) = workspace_ids(url)
    dump(url, workspace_id, tmp_path / "covey.db")
    after = rows_of(tmp_path / "covey.db")
    assert after == {**{name: [] for name in after}, **before}
    assert examine(tmp_path).findings == []
    assert rows_of(old_store) == before, "the file stays as it was"


def test_a_store_is_copied_whole_or_not_at_all(server: PostgresProcess, old_store: Path) -> None:
    url = server.new_database()
    with contextlib.closing(apsw.Connection(str(old_store))) as connection:
        connection.execute("INSERT INTO runs SELECT 'nobody', run_id, session_id, seq, state, ended, cancelled, digest,"
                           " value, attachments FROM runs LIMIT 1")  # fmt: skip
    with pytest.raises(StoreFailed, match="nothing was"):
        copy_in(old_store, url)
    assert workspace_ids(url) == []
    with contextlib.closing(apsw.Connection(str(old_store))) as connection:
        connection.execute("DELETE FROM runs WHERE workspace_id = 'nobody'")
    copy_in(old_store, url)
    with pytest.raises(StoreFailed, match="already"):
        copy_in(old_store, url)
    assert len(workspace_ids(url)) == 1


def test_tables_are_made_by_one_node_at_a_time(server: PostgresProcess) -> None:
    url = server.new_database(empty=True)
    with ThreadPoolExecutor(6) as nodes:
        done = list(nodes.map(upgrade, [url] * 6))
    assert sorted(done) == [(0, len(STEPS))] + [(len(STEPS), len(STEPS))] * 5


def test_n11_a_store_of_a_newer_version_is_not_touched(server: PostgresProcess) -> None:
    url = server.new_database()
    server.sql_in(database_of(url), "INSERT INTO schema_steps VALUES ($1)", len(STEPS) + 1)
    with pytest.raises(StoreFailed, match="newer Covey"):
        upgrade(url)


# ── the commands ──


def covey(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_commands_of_a_store(server: PostgresProcess, old_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, source = server.new_database(empty=True), f"sqlite:{old_store.parent}"
    code, out, _ = covey(capsys, "store", "migrate", url, "--json")
    assert (code, json.loads(out)) == (exits.OK, {"before": 0, "after": len(STEPS)})
    code, out, _ = covey(capsys, "store", "copy", source, url)
    assert (code, out.startswith("1 workspaces were copied")) == (exits.OK, True), out
    code, _, err = covey(capsys, "store", "copy", source, url)
    assert (code, "already" in err) == (exits.FAILED, True), err
    code, out, _ = covey(capsys, "doctor", "--store", url)
    assert (code, "no problems" in out) == (exits.OK, True), out
    (epoch,) = server.sql_in(database_of(url), "SELECT epoch FROM workspaces")
    code, out, _ = covey(capsys, "store", "new-epoch", url)
    assert code == exits.OK, out
    assert server.sql_in(database_of(url), "SELECT epoch FROM workspaces")[0]["epoch"] > epoch["epoch"]


def test_doctor_finds_in_postgres_what_it_finds_in_a_file(
    server: PostgresProcess, old_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = server.new_database()
    copy_in(old_store, url)
    server.sql_in(database_of(url), "DELETE FROM events WHERE seq = 5")
    code, out, _ = covey(capsys, "doctor", "--store", url, "--json")
    kinds = {finding["kind"] for finding in json.loads(out)["findings"]}
    assert (code, kinds) == (exits.FAILED, {finding.kind for finding in examine_postgres(url).findings})
    assert kinds


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("store", "migrate", "mysql://x"), exits.USAGE, "postgres://USER@HOST"),
        (("store", "copy", "postgres://x/y"), exits.USAGE, "sqlite:PATH"),
        (("store", "copy", "sqlite:/nowhere", "postgres://x/y"), exits.USAGE, "no store at /nowhere"),
        (("store", "migrate", "postgres://covey@127.0.0.1:1/x"), exits.UNREACHABLE, "cannot use the store"),
        (("doctor", "--store", "postgres://covey:secret@127.0.0.1:1/x"), exits.UNREACHABLE, "cannot"),
        (("doctor", "--store", "postgres://x/y", "--repair"), exits.USAGE, "backup"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: tuple[str, ...], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = covey(capsys, *words)
    assert (found, told in err, "secret" in err) == (code, True, False), err
