"""`covey doctor`: what people are shown, what scripts can rely on, and that no file whatever makes it stumble."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from covey.cli import doctor, doctor_rules, exits
from covey.cli.main import main
from covey.doctor import repair
from covey.doctor.oracle_file import NoStore
from covey.machine.names import TAG_VARIABLE
from covey.protocol.events import PermissionRequest, created, encode_event
from covey.protocol.paths import DataDirInUse
from covey.server.data_dir import owned
from tests.cli.conftest import Home, finish, read_until, until
from tests.support.damages import DAMAGES
from tests.support.good_stores import make_stores
from tests.support.meddling import meddling

Said = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    make_stores(directory)
    return directory


@pytest.fixture
def data_dir(stores: Path, tmp_path: Path) -> Path:
    shutil.copy(stores / "ended" / "covey.db", tmp_path / "covey.db")
    return tmp_path


tagged = doctor._tagged


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All stores here have the same ids: a process that one test has left on purpose would be found by all others."""
    monkeypatch.setattr(doctor, "_tagged", dict)


@pytest.fixture(autouse=True)
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, which is not there yet."""
    directory = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(directory))
    (directory / "covey").mkdir()
    return directory / "covey" / "config.toml"


def run_doctor(data_dir: Path, *args: str) -> int:
    return main(["doctor", "--data-dir", str(data_dir), *args])


def as_json(data_dir: Path, said: Said, *args: str) -> tuple[int, Any]:
    code = run_doctor(data_dir, "--json", *args)
    return code, json.loads(said.readouterr().out)


def damage(data_dir: Path, *names: str) -> None:
    for name in names:
        with meddling(data_dir) as db:
            DAMAGES[name].do(db)


def test_a_healthy_store(data_dir: Path, capsys: Said) -> None:
    assert run_doctor(data_dir) == exits.OK
    said = capsys.readouterr()
    assert f"The store in {data_dir}:\n  1 workspace, 4 sessions, 14 runs, " in said.out
    assert said.out.endswith("The store has no problems.\nThe configuration has no problems.\n")
    assert said.err == ""


def test_without_a_server_open_runs_are_no_finding(stores: Path, data_dir: Path, capsys: Said) -> None:
    shutil.copy(stores / "open" / "covey.db", data_dir / "covey.db")
    assert run_doctor(data_dir) == exits.OK
    assert "2 open runs, to be taken up at the next start" in capsys.readouterr().out
    code, found = as_json(data_dir, capsys)
    assert (code, found["healthy"], found["server"]) == (exits.OK, True, None)
    assert [(run["run_id"], run["state"]) for run in found["open_runs"]] == [
        ("r-active", "active"),
        ("r-queued", "queued"),
    ]


def test_findings_are_explained_one_by_one(data_dir: Path, capsys: Said) -> None:
    damage(data_dir, "a_gap", "a_wrong_count")
    assert run_doctor(data_dir) == exits.FAILED
    out = capsys.readouterr().out
    assert "- /project: event 10 (" in out and "the log has a gap" in out
    assert "counts 77 messages" in out
    assert "It means that events that clients may have seen, or still wait for, are gone from the log." in out
    assert "Repair begins a new epoch of the event log" in out
    assert out.endswith(f"Run `covey doctor --data-dir {data_dir} --repair`: it makes a backup first.\n")


def test_findings_of_one_kind_are_cut_short_but_not_in_json(data_dir: Path, capsys: Said) -> None:
    damage(data_dir, "lost_messages")
    assert run_doctor(data_dir) == exits.FAILED
    assert capsys.readouterr().out.count("is in the log, but has no row") == doctor.SHOWN
    _, found = as_json(data_dir, capsys)
    assert len([f for f in found["findings"] if f["kind"] == "row_missing"]) > doctor.SHOWN
    assert set(found["findings"][0]) == {"kind", "workspace_id", "path", "subject", "what", "means", "repair"}


def test_what_a_store_says_does_not_drive_the_terminal(data_dir: Path, capsys: Said) -> None:
    with meddling(data_dir) as db:
        db.do("UPDATE workspaces SET path = '/evil\x1b[2Jpath'")
    damage(data_dir, "a_gap")
    run_doctor(data_dir)
    out = capsys.readouterr().out
    assert "/evil[2Jpath" in out and "\x1b" not in out


def test_repair_makes_a_backup_and_says_what_it_did(data_dir: Path, capsys: Said) -> None:
    damage(data_dir, "a_gap", "a_wrong_count")
    assert run_doctor(data_dir, "--repair") == exits.OK
    out = capsys.readouterr().out
    (backup,) = data_dir.glob("covey.db.backup-*")
    assert out.startswith(f"The store in {data_dir} was copied to {backup}.\n")
    assert "the log has a gap" in out
    assert out.endswith("The store was repaired, and checked again:\nThe store has no problems.\n")
    assert run_doctor(data_dir, "--repair") == exits.OK
    assert "there is nothing to repair" in capsys.readouterr().out
    assert list(data_dir.glob("covey.db.backup-*")) == [backup]
    assert (data_dir / "server.lock").read_bytes() == b""


def test_repair_as_json(data_dir: Path, capsys: Said) -> None:
    damage(data_dir, "a_wrong_count")
    code, done = as_json(data_dir, capsys, "--repair")
    assert (code, done["healthy"], done["findings"]) == (exits.OK, True, [])
    assert [finding["kind"] for finding in done["repaired"]] == ["message_count"]
    assert Path(done["backup"]).is_file()
    code, done = as_json(data_dir, capsys, "--repair")
    assert (code, done["repaired"], done["backup"]) == (exits.OK, [], None)


def test_a_damaged_file_is_found_and_saved(data_dir: Path, capsys: Said) -> None:
    path = data_dir / "covey.db"
    content = bytearray(path.read_bytes())
    content[5 * 4096 : 6 * 4096] = bytes(4096)
    path.write_bytes(content)
    assert run_doctor(data_dir) == exits.FAILED
    out = capsys.readouterr().out
    assert "the file is damaged" in out and "copies every row that can still be read" in out
    assert run_doctor(data_dir, "--repair") == exits.OK
    assert "What could be read of it is in a new one: " in capsys.readouterr().out


def test_a_truncated_file_is_reported_and_saved(data_dir: Path, capsys: Said) -> None:
    path = data_dir / "covey.db"
    path.write_bytes(path.read_bytes()[:-10_000])
    assert run_doctor(data_dir) == exits.UNREACHABLE
    err = capsys.readouterr().err
    assert "it is truncated" in err and "--repair`" in err
    assert run_doctor(data_dir, "--repair") == exits.OK
    assert run_doctor(data_dir) == exits.OK


@pytest.mark.parametrize("args", [[], ["--repair"]])
def test_without_a_store_it_says_so_and_makes_none(tmp_path: Path, capsys: Said, args: list[str]) -> None:
    assert run_doctor(tmp_path / "nowhere", *args) == exits.UNREACHABLE
    assert run_doctor(tmp_path, *args) == exits.UNREACHABLE
    assert "covey.db is missing" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_repair_that_the_disk_refuses_is_reported(
    data_dir: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    damage(data_dir, "a_gap")
    monkeypatch.setattr(repair, "back_up", refuse)
    assert run_doctor(data_dir, "--repair") == exits.FAILED
    assert "could not be repaired: [Errno 28] No space left" in capsys.readouterr().err


def test_wrong_usage(capsys: Said) -> None:
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--fix"])
    assert left.value.code == exits.USAGE


# ── the server ──


def test_beside_a_running_server_it_looks_but_does_not_repair(own_home: Home) -> None:
    run = own_home.spawn("run", "hang")
    read_until(run, b"one two ")
    found = own_home.covey("doctor")
    assert found.returncode == exits.OK, found.stdout + found.stderr
    assert f"a server is running at unix://{own_home.socket}" in found.stdout
    assert "1 open run, as it should be" in found.stdout
    refused = own_home.covey("doctor", "--repair")
    assert refused.returncode == exits.USAGE
    assert "stop it with `covey stop`" in refused.stderr
    assert own_home.covey("stop").returncode == exits.OK
    finish(run)
    after = own_home.covey("doctor", "--repair")
    assert (after.returncode, after.stdout) == (
        exits.OK,
        f"The store in {own_home.data_dir}: there is nothing to repair.\nThe store has no problems.\n",
    )


def test_no_server_starts_while_a_store_is_repaired(data_dir: Path) -> None:
    with (
        doctor._owned(data_dir),
        pytest.raises(DataDirInUse, match="covey doctor --repair"),
        owned(data_dir),
    ):
        pass
    with owned(data_dir), pytest.raises(exits.UsageError), doctor._owned(data_dir):
        pass
    with pytest.raises(NoStore, match="No such file"), doctor._owned(data_dir / "nowhere"):
        pass


def _carries_tag(pid: int) -> bool:
    return TAG_VARIABLE.encode() in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_process_that_a_run_left_behind_is_reported(
    stores: Path, data_dir: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_tagged", tagged)
    shutil.copy(stores / "open" / "covey.db", data_dir / "covey.db")
    left = [
        subprocess.Popen(["sleep", "60"], env={**os.environ, TAG_VARIABLE: f"covey-w-{run_id}/3"})
        for run_id in ("r-tool", "r-active")
    ]
    try:
        for process in left:
            until(partial(_carries_tag, process.pid), "the program has started")
        code, found = as_json(data_dir, capsys)
        assert code == exits.FAILED
        assert [(f["kind"], f["subject"]) for f in found["findings"]] == [("process", "r-tool")]
        assert f"process {left[0].pid} of run r-tool" in found["findings"][0]["what"]
        code, found = as_json(data_dir, capsys, "--repair")
        assert (code, found["backup"], left[0].poll()) == (exits.FAILED, None, None)
    finally:
        for process in left:
            process.kill()
            process.wait()


# ── any bytes whatever ──


def mangled(content: bytes, chance: random.Random) -> bytes:
    """As a bad disk, a bad cable or a full disk leaves a file."""
    data = bytearray(content)
    match chance.choice(["flip", "flip", "noise", "cut", "page", "header"]):
        case "flip":
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "noise":
            for _ in range(chance.randint(2, 200)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        case "cut":
            del data[chance.randrange(len(data)) :]
        case "page":
            start = chance.randrange(len(data) // 4096) * 4096
            data[start : start + 4096] = chance.choice([bytes(4096), chance.randbytes(4096)])
        case "header":
            data[chance.randrange(100)] = chance.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("part", range(5))
def test_no_damage_to_the_bytes_makes_it_stumble(data_dir: Path, capsys: Said, part: int) -> None:
    path = data_dir / "covey.db"
    content = path.read_bytes()
    for seed in range(part * 60, part * 60 + 60):
        chance = random.Random(seed)
        damaged = mangled(content, chance)
        path.write_bytes(damaged)
        code = run_doctor(data_dir)
        assert code in (exits.OK, exits.FAILED, exits.UNREACHABLE), seed
        assert path.read_bytes() == damaged, "looking changes nothing"
        said = capsys.readouterr()
        assert code != exits.UNREACHABLE or said.err.startswith(f"covey: {path}"), seed
        if seed % 5 == 0:
            may_be_saved = code != exits.UNREACHABLE or "--repair" in said.err
            expected = exits.OK if may_be_saved else exits.UNREACHABLE
            assert (run_doctor(data_dir, "--repair"), run_doctor(data_dir)) == (expected, expected), seed
        for leftover in data_dir.glob("covey.db?*"):
            leftover.unlink()


# ── rules that hold everywhere ──

GLOBAL = """
[permissions]
allow = [
  "bash:make", "edit:src/a.py", "bash:echo $$HOME", "write:docs/[*].md",
  "bash:git log*", "edit", "view", "write:docs/**", "write:/etc/x", "fetch:https://example.org/x",
]
deny = ["bash:rm"]
[projects."/p".permissions]
allow = ["bash:here"]
"""
LOOK_LIKE_ALWAYS = ["bash:make", "edit:src/a.py", "bash:echo $HOME", "write:docs/[*].md"]


def test_rules_that_always_may_have_written_for_every_directory_are_shown_once(
    data_dir: Path, config: Path, capsys: Said
) -> None:
    config.write_text(GLOBAL)
    assert run_doctor(data_dir) == exits.OK
    out = capsys.readouterr().out
    healthy, _, reported = out.partition("The configuration has no problems.\n")
    assert healthy and reported.startswith(f"\nThese rules of {config} hold in every directory:\n  bash:make\n")
    lines = reported.partition("add instead:\n\n")[2].partition("\n\n")[0]
    table = tomllib.loads(lines)["projects"][doctor_rules.UNKNOWN]["permissions"]
    assert [rule.replace("$$", "$") for rule in table["allow"]] == LOOK_LIKE_ALWAYS
    assert run_doctor(data_dir) == exits.OK
    assert "every directory" not in capsys.readouterr().out
    config.write_text(GLOBAL.replace('"bash:make", ', ""))
    run_doctor(data_dir)
    assert "every directory" not in capsys.readouterr().out, "one that goes is nothing new"
    config.write_text(GLOBAL.replace('"bash:make"', '"bash:make", "bash:make all"'))
    run_doctor(data_dir)
    assert "  bash:make all\n" in capsys.readouterr().out, "and one that comes is"


def test_the_lines_name_the_directory_where_the_log_knows_it(data_dir: Path, config: Path, capsys: Said) -> None:
    config.write_text('[permissions]\nallow = ["bash:make", "edit:src/a.py"]\n')
    request = PermissionRequest(
        id="p", session_id="s", tool_call_id="c", tool_name="bash", description="", action="execute", params={},
        path="/project", rules=("bash:make",),
    )  # fmt: skip
    with meddling(data_dir) as db:
        encoded = encode_event(created(request))
        db.do("UPDATE events SET encoded = ?, session_id = 's' WHERE seq = (SELECT max(seq) FROM events)", encoded)
    run_doctor(data_dir)
    out = capsys.readouterr().out
    assert '[projects."/project".permissions]\nallow = ["bash:make"]\n' in out
    assert f'[projects."{doctor_rules.UNKNOWN}".permissions]\nallow = ["edit:src/a.py"]\n' in out
    _, found = as_json(data_dir, capsys)
    assert found["global_rules"] == [
        {"rule": "bash:make", "directories": ["/project"]},
        {"rule": "edit:src/a.py", "directories": []},
    ]


def test_json_has_global_rules_always_and_shows_them_to_nobody(data_dir: Path, config: Path, capsys: Said) -> None:
    assert as_json(data_dir, capsys)[1]["global_rules"] == []
    config.write_text(GLOBAL)
    for _ in range(2):
        code, found = as_json(data_dir, capsys)
        assert (code, found["healthy"]) == (exits.OK, True)
        assert [entry["rule"] for entry in found["global_rules"]] == LOOK_LIKE_ALWAYS
    run_doctor(data_dir)
    assert "every directory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[permisions]", 'permisions: unknown key; did you mean "permissions"?'),
        ("[notify]\nwebhook = 'hooks.example'", "notify.webhook: expected a URL such as"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_wrong_although_the_store_is_healthy(
    text: str, said: str, data_dir: Path, config: Path, capsys: Said
) -> None:
    config.write_text(text)
    assert run_doctor(data_dir) == exits.FAILED
    told = capsys.readouterr()
    assert told.err.count(said) == 1 and "The key of" not in told.out
    code, found = as_json(data_dir, capsys)
    assert code == exits.FAILED and said in found["config"] and found["healthy"] and found["findings"] == []
