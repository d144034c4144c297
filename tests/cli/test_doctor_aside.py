"""`covey doctor --set-aside`, and that its advice is about the store that was looked at."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from covey.cli import doctor, doctor_aside, exits
from covey.cli.main import main
from covey.store.sqlite import SqliteStore
from tests.cli.conftest import Home
from tests.support.damages import DAMAGES
from tests.support.good_stores import make_stores
from tests.support.meddling import meddling
from tests.support.small_disk import full, mounted

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that other tests have left on purpose, for runs with the same ids."""
    monkeypatch.setattr(doctor, "_tagged", dict)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    make_stores(tmp_path)
    return tmp_path / "ended"


def run_doctor(data_dir: Path, *args: str) -> int:
    return main(["doctor", "--data-dir", str(data_dir), *args])


def damage(data_dir: Path) -> None:
    with meddling(data_dir) as db:
        DAMAGES["a_gap"].do(db)


def test_a_store_that_nothing_can_be_saved_of_is_set_aside_and_a_new_one_begun(own_home: Home) -> None:
    own_home.data_dir.mkdir(parents=True)
    (own_home.data_dir / "covey.db").write_bytes(b"nothing that is a database" * 100)
    failed = own_home.covey("run", "hello")
    assert failed.returncode == 3
    assert (
        str(own_home.data_dir / "covey.db") in failed.stderr and "`covey doctor` says what can be done" in failed.stderr
    )
    found = own_home.covey("doctor")
    assert found.returncode == 3 and "covey doctor --set-aside" in found.stderr
    done = own_home.covey("doctor", "--set-aside")
    assert done.returncode == 0, done.stderr
    kept = Path(done.stdout.removeprefix("The store is now ").partition(". Renamed")[0])
    assert kept.read_bytes().startswith(b"nothing that is a database")
    assert own_home.covey("run", "hello").stdout == "You said: hello\n"
    refused = own_home.covey("doctor", "--set-aside")
    assert refused.returncode == 2 and "stop it with `covey stop`" in refused.stderr


def test_advice_about_another_data_directory_names_it(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "covey.db").write_bytes(b"nothing that is a database" * 100)
    assert run_doctor(tmp_path) == exits.UNREACHABLE
    assert f"`covey doctor --data-dir {tmp_path} --set-aside` renames it" in capsys.readouterr().err


def test_advice_to_repair_another_data_directory_names_it(data_dir: Path, capsys: Said) -> None:
    damage(data_dir)
    run_doctor(data_dir)
    assert f"Run `covey doctor --data-dir {data_dir} --repair`" in capsys.readouterr().out


def test_a_healthy_store_is_set_aside_only_by_somebody_who_says_that_it_is_meant(
    data_dir: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_doctor(data_dir, "--set-aside") == exits.USAGE
    assert "healthy" in capsys.readouterr().err and (data_dir / "covey.db").exists()
    monkeypatch.setattr(doctor_aside, "is_meant", lambda question: False)
    assert run_doctor(data_dir, "--set-aside") == exits.FAILED
    assert (data_dir / "covey.db").exists()
    assert run_doctor(data_dir, "--set-aside", "--yes") == exits.OK
    assert not (data_dir / "covey.db").exists()


def test_31_a_full_disk_is_named_and_nobody_is_advised_to_set_a_healthy_store_aside(
    own_home: Home, tmp_path: Path
) -> None:
    with mounted(tmp_path / "disk") as disk:
        where = ("--data-dir", str(disk / "data"))
        assert own_home.covey("run", *where, "hello").returncode == 0
        with full(disk):
            assert "There is no room in" in own_home.covey("doctor", *where).stderr, "beside a server"
        assert own_home.covey("stop", *where).returncode == 0
        with full(disk):
            for action in ((), ("--set-aside",), ("--repair",)):
                looked = own_home.covey("doctor", *where, *action, "--json")
                assert looked.returncode == exits.UNREACHABLE
                said = json.loads(looked.stdout)["error"]
                assert "there is no room in" in said and "--set-aside" not in said
            said = own_home.covey("run", *where, "hello").stderr
            assert "make room there" in said or f"`covey doctor --data-dir {where[1]}` says what can be done" in said
        assert "hello" in own_home.covey("sessions", *where).stdout
        assert own_home.covey("stop", *where).returncode == 0


def test_a_damaged_store_is_set_aside_without_a_question(data_dir: Path) -> None:
    damage(data_dir)
    assert run_doctor(data_dir, "--set-aside") == exits.OK


def test_a_damaged_store_is_replaced_by_its_newest_backup_and_kept(data_dir: Path, capsys: Said) -> None:
    path = data_dir / "covey.db"
    backup = data_dir / "backups" / "covey-2026-01-02.db"
    backup.parent.mkdir()
    shutil.copy(path, backup)
    (backup.parent / "covey-2026-01-03.db").write_bytes(b"half of it")
    path.write_bytes(b"nothing that is a database" * 100)
    assert run_doctor(data_dir) == exits.UNREACHABLE
    said = capsys.readouterr().err
    assert f"`covey doctor --data-dir {data_dir} --restore` puts the backup" in said and str(backup) in said
    assert run_doctor(data_dir, "--restore") == exits.USAGE
    assert "What was said since" in capsys.readouterr().err and not path.read_bytes().startswith(b"SQLite")
    assert run_doctor(data_dir, "--restore", "--yes") == exits.OK
    capsys.readouterr()
    assert run_doctor(data_dir) == exits.OK
    assert len(list(data_dir.glob("covey.db.aside-*"))) == 1 and backup.exists()
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_waited_when_the_backup_was_made_is_not_run_again(own_home: Home, tmp_path: Path) -> None:
    (tmp_path / "stores").mkdir()
    make_stores(tmp_path / "stores")
    backup = own_home.data_dir / "backups" / "covey-2026-01-02.db"
    backup.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "stores" / "open" / "covey.db", backup)
    (own_home.data_dir / "covey.db").write_bytes(b"nothing that is a database" * 100)
    assert own_home.covey("doctor", "--restore", "--yes").returncode == 0
    with contextlib.closing(SqliteStore(own_home.data_dir / "covey.db")) as store:
        (row,) = store.workspaces()
        states = {each.run.run_id: (each.run.state, each.run.is_being_cancelled) for each in store.open_runs(row.id)}
    assert states == {"r-active": ("active", False), "r-queued": ("queued", True)}
