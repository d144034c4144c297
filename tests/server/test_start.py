"""How a server starts: in a data directory that is its user's alone, with a token that cannot be guessed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from covey.protocol.paths import token_file
from covey.server.listener import CannotServe
from covey.server.token import SHORTEST, find_token
from tests.support.server import running


def start(data_dir: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A server that cannot start; it has ended when this returns."""
    command = [sys.executable, "-m", "covey", "serve", "--host", "tcp://127.0.0.1:0", "--data-dir", str(data_dir)]
    own = {**os.environ, "HOME": str(data_dir), "XDG_CONFIG_HOME": str(data_dir / "config"), **env}
    return subprocess.run([*command, *options], env=own, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_a_data_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    data_dir.chmod(mode)
    done = start(data_dir)
    assert done.returncode == 1 and "can be changed by others" in done.stderr and "chmod go-w" in done.stderr
    assert os.listdir(data_dir) == [], "nothing was put into it"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_data_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o755)
    os.chown(data_dir, 65534, 65534)
    assert "belongs to somebody else" in start(data_dir).stderr


@pytest.mark.parametrize("name", ["token", "server.lock"])
def test_a_link_in_the_data_directory_is_not_followed(tmp_path: Path, name: str) -> None:
    victim, data_dir = tmp_path / "victim", tmp_path / "data"
    victim.write_text("precious and long enough for a token")
    data_dir.mkdir(mode=0o700)
    (data_dir / name).symlink_to(victim)
    done = start(data_dir)
    assert done.returncode == 1 and str(data_dir / name) in done.stderr
    assert victim.read_text() == "precious and long enough for a token"
    victim.unlink()
    assert start(data_dir).returncode == 1 and not victim.exists(), "nor one that leads nowhere"


def test_a_token_file_that_others_could_write_is_refused(tmp_path: Path) -> None:
    token_file(tmp_path).write_text("planted-planted-planted")
    token_file(tmp_path).chmod(0o666)
    with pytest.raises(CannotServe, match="can be changed by others"):
        find_token(tmp_path, None, {})


def test_a_token_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    token = find_token(tmp_path, None, {})
    assert len(token) > 30 and find_token(tmp_path, None, {}) == token
    assert stat.S_IMODE(token_file(tmp_path).stat().st_mode) == 0o600


def test_a_token_that_could_be_guessed_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    short, named = "x" * (SHORTEST - 1), tmp_path / "named"
    named.write_text(short + "\n")
    named.chmod(0o600)
    token_file(tmp_path).write_text(short)
    token_file(tmp_path).chmod(0o600)
    for file, environ in ((named, {}), (None, {"COVEY_TOKEN": short}), (None, {})):
        with pytest.raises(CannotServe, match=r"fewer than 16 characters.*openssl rand") as refused:
            find_token(tmp_path, file, environ)
        assert short not in str(refused.value)
    assert find_token(tmp_path, None, {"COVEY_TOKEN": short + "x"}) == short + "x"
    done = start(tmp_path, COVEY_TOKEN="1")
    assert done.returncode == 1 and "fewer than 16 characters" in done.stderr


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_an_address_for_other_machines_comes_with_a_warning(tmp_path: Path, host: str, warned: bool) -> None:
    with running(tmp_path, "", options=("--host", f"tcp://{host}:0")) as server:
        assert ("can be reached from other machines" in server.log()) == warned
        assert server.request("GET", "/v1/health").status == 200
