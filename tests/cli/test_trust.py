"""`covey trust`: from now on a project's covey.toml counts in full, also for a server that runs."""

from __future__ import annotations

import signal

import pytest

from covey.cli import exits
from tests.cli.conftest import Home, finish, read_until

PROVIDER = '[providers.birds]\ntype = "scripted"\nmodels = [{ id = "wren" }]\n[limits]\nsteps_per_run = 3\n'


def test_a_directory_is_trusted_listed_and_removed(own_home: Home) -> None:
    (own_home.project / "covey.toml").write_text(PROVIDER)
    done = own_home.covey("trust")
    assert done.returncode == 0 and done.stderr == ""
    assert f"{own_home.project} is now trusted." in done.stdout
    assert "now counts: providers.birds, limits.steps_per_run." in done.stdout
    assert "already trusted" in own_home.covey("trust", ".").stdout
    assert own_home.covey("trust", "--list").stdout == f"{own_home.project}\n"
    assert "no longer trusted" in own_home.covey("trust", "--remove", str(own_home.project)).stdout
    none = own_home.covey("trust", "--list")
    assert (none.stdout, none.stderr) == ("", "No directory is trusted yet.\n")
    again = own_home.covey("trust", "--remove")
    assert again.returncode == exits.FAILED and "was not trusted" in again.stderr
    assert not own_home.socket.exists()  # no server was started for this


def test_a_server_that_runs_takes_it_up_at_once(own_home: Home) -> None:
    (own_home.project / "covey.toml").write_text('[models]\nlarge = "birds/wren"\n' + PROVIDER)
    run = own_home.spawn("run", "-q", "hang")
    read_until(run, b"one two ")
    assert own_home.workspace()["model"] == "scripted/default"
    own_home.covey("trust")
    assert own_home.workspace()["model"] == "birds/wren"
    own_home.covey("trust", "--remove")
    assert own_home.workspace()["model"] == "scripted/default"
    assert run.poll() is None  # what was under way goes on
    run.send_signal(signal.SIGINT)
    finish(run)


def test_what_can_be_trusted(own_home: Home) -> None:
    assert "It has no covey.toml" in own_home.covey("trust").stdout
    (own_home.project / "covey.toml").write_text('[permissions]\ndeny = ["bash"]\n')
    assert "nothing that would need it" in own_home.covey("trust").stdout
    (own_home.project / "covey.toml").write_text("[limtis]\n")
    wrong = own_home.covey("trust")
    assert wrong.returncode == 0 and 'did you mean "limits"?' in wrong.stderr
    missing = own_home.covey("trust", "nowhere")
    assert missing.returncode == exits.USAGE and "nowhere is not a directory" in missing.stderr


def test_what_models_read_from_then_on_is_named(own_home: Home) -> None:
    skill = own_home.project / ".agents" / "skills" / "changelog" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: changelog\ndescription: How it is written.\n---\nOne line.\n")
    said = own_home.covey("trust").stdout.splitlines()
    assert said[1] == "Its skill changelog is used from now on: .agents/skills/changelog/SKILL.md"


def test_a_directory_that_is_gone_can_be_removed(own_home: Home) -> None:
    gone = own_home.project / "gone"
    gone.mkdir()
    own_home.covey("trust", "gone")
    gone.rmdir()
    assert own_home.covey("trust", "--list").stdout == f"{gone}  (is not there)\n"
    assert own_home.covey("trust", "gone", "--remove").returncode == 0


@pytest.mark.parametrize("args", [["--list", "--remove"], ["a", "b"]])
def test_wrong_usage(own_home: Home, args: list[str]) -> None:
    assert own_home.covey("trust", *args).returncode == exits.USAGE


def test_a_skill_that_nobody_has_trusted_is_complained_about_once(own_home: Home) -> None:
    skill = own_home.project / ".agents" / "skills" / "nest" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: nest\ndescription: Nests\n---\nBuild a nest.\n")
    asked = own_home.covey("run", "/nest now")
    assert asked.returncode == 1
    [complaint] = asked.stderr.splitlines()
    assert complaint.startswith("covey: /nest is a skill of this project, and nobody has trusted its directory.")
    by_lines = own_home.covey("--plain", stdin="/nest now\n").stdout
    assert by_lines.count("nest is a skill") == 1 and "needs approval" not in by_lines
