"""With a mistake in the configuration, people can still look at what there is, take back and delete."""

from __future__ import annotations

import json

import pytest

from covey.cli import exits
from tests.cli.conftest import Home

BROKEN = "this is not TOML"
UNKNOWN = '\n[providers.other]\ntype = "strange"\n'


def named(home: Home, text: str) -> bool:
    return str(home.config) in text


@pytest.mark.parametrize("is_running", [True, False], ids=["server", "no server"])
def test_what_needs_no_model_works_and_a_prompt_is_refused_until_it_is_mended(own_home: Home, is_running: bool) -> None:
    home, good = own_home, own_home.config.read_text()
    assert home.covey("run", "--yolo", "write two files").returncode == exits.OK
    home.covey("stop")
    if is_running:
        home.covey("status")
        assert home.covey("sessions", "--cwd", str(home.config.parent)).returncode == exits.OK
    home.config.write_text(good + UNKNOWN)

    for command in (("sessions",), ("diff",), ("sessions", "export")):
        done = home.covey(*command)
        assert (done.returncode, done.stderr) == (exits.OK, ""), command
    assert home.covey("undo").returncode == exits.OK
    assert not (home.project / "one").exists()
    for command in (("run", "hello"), ("models",)):
        refused = home.covey(*command)
        assert refused.returncode == exits.FAILED, command
        assert named(home, refused.stderr), command
        assert "providers.other.type" in refused.stderr, command
    assert "providers.other.type" in json.loads(home.covey("run", "--json", "hello").stdout)["error"]
    (kept,) = json.loads(home.covey("sessions", "--json").stdout)  # refused prompts leave no session behind

    home.config.write_text(good)
    assert home.covey("run", "-q", "--session", kept["id"], "hello").stdout == "You said: hello\n"
    assert home.covey("models").returncode == exits.OK


def test_a_server_that_people_start_themselves_refuses_a_mistake(own_home: Home) -> None:
    own_home.config.write_text(BROKEN)
    done = own_home.covey("serve")
    assert done.returncode == exits.FAILED
    assert named(own_home, done.stderr)


def test_a_node_never_comes_up_without_its_settings(own_home: Home) -> None:
    """It would have a store of its own, and show people an empty list."""
    own_home.data_dir.mkdir(parents=True, mode=0o700)
    (own_home.data_dir / "node").write_text("0123")
    own_home.config.write_text(BROKEN)
    done = own_home.covey("sessions")
    assert done.returncode == exits.UNREACHABLE
    assert named(own_home, done.stderr)
