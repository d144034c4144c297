"""`covey config`: what is set and by whom, without secrets; simple changes that keep the file as it was."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from covey.cli import exits
from covey.cli.main import main
from covey.config.load import load
from tests.cli.conftest import Home

OWN = """\
# mine
[models]
large = "local/big"   # the big one

[providers.local]
type = "openai-compatible"
base_url = "http://ann:secret-password@127.0.0.1:8080/v1"
api_key = "sk-very-secret"
headers = { "X-Token" = "also-secret", "X-Team" = "$TEAM" }

[notify]
webhook = "https://hooks.example/secret-path"
webhook_secret = "a-secret-too"

[projects."{project}".permissions]
allow = ["bash:make"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("COVEY_CONFIG", "COVEY_HOST", "COVEY_MODEL", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("COVEY_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "config" / "covey").mkdir(parents=True)
    made = tmp_path / "project"
    made.mkdir()
    own_file(tmp_path).write_text(OWN.replace("{project}", str(made)))
    monkeypatch.chdir(made)
    return made


def own_file(home: Path) -> Path:
    return home / "config" / "covey" / "config.toml"


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["config", "show", "--json"]) == exits.OK
    return {one["key"]: one["value"] for one in json.loads(capsys.readouterr().out)}


def test_each_value_is_shown_with_the_file_that_sets_it(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = tmp_path / "extra.toml"
    extra.write_text("[limits]\ncost_per_run = 2\n[permissions]\nallow = ['edit']\n")
    assert main(["config", "--config", str(extra)]) == exits.OK
    own, other = capsys.readouterr().out.split(f"# {extra}\n")
    assert own.startswith(f"# {own_file(tmp_path)}\n")
    assert 'models.large = "local/big"' in own and 'permissions.allow = ["bash:make"]' in own
    assert other.startswith('limits.cost_per_run = 2\npermissions.allow = ["edit"]\n# COVEY_DATA_DIR is set: ')


def test_no_key_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["config"], ["config", "show", "--json"]):
        assert main(args) == exits.OK
        out = capsys.readouterr().out
        assert "secret-" not in out and "-secret" not in out
        assert "$TEAM" in out and "127.0.0.1:8080" in out


def test_what_an_untrusted_project_may_not_set_is_not_shown_as_set(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "covey.toml").write_text("[permissions]\nallow = ['bash']\ndeny = ['bash:rm *']\n")
    assert main(["config"]) == exits.OK
    out = capsys.readouterr().out
    assert 'permissions.deny = ["bash:rm *"]' in out and '["bash"]' not in out


def test_path_and_check(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == exits.OK
    assert capsys.readouterr().out == f"{own_file(tmp_path)}\n"
    assert main(["config", "check"]) == exits.OK
    assert capsys.readouterr().out == f"{own_file(tmp_path)}: OK\n"
    own_file(tmp_path).write_text("[modles]\n")
    assert main(["config", "check"]) == exits.FAILED
    assert "modles" in capsys.readouterr().err
    own_file(tmp_path).write_text("[notify]\nwebhook = 'hooks.example'\n")
    assert main(["config", "check"]) == exits.FAILED
    assert "notify.webhook: expected a URL such as" in capsys.readouterr().err


def test_a_rule_about_a_tool_that_there_is_not_is_told(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_file(tmp_path).write_text('[permissions]\ndeny = ["bsh:rm *", "mcp:git/*", "rename", "skill:deploy"]\n')
    assert main(["config", "check"]) == exits.FAILED, "whoever wrote it believes that it protects"
    said = capsys.readouterr().err
    assert said.count("there is no tool") == 1 and "there is no tool 'bsh'; did you mean bash?" in said
    own_file(tmp_path).write_text('[permissions]\nask = ["bsh:rm *"]\n')
    assert main(["config", "check"]) == exits.OK
    assert "there is no tool 'bsh'" in capsys.readouterr().err


def test_every_tool_of_ours_may_be_in_a_rule(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "CONFIGURATION.md").read_text()
    named = re.search(r"The tools are (.*?); rules name them so", page, re.DOTALL)
    assert named
    tools = re.findall(r"`(\w+)`", named[1])
    assert len(tools) > 15
    own_file(tmp_path).write_text(f"[permissions]\nask = {json.dumps(tools)}\n")
    assert main(["config", "check"]) == exits.OK
    assert capsys.readouterr().err == ""


def test_a_value_is_set_and_everything_else_stays(project: Path, tmp_path: Path) -> None:
    before = own_file(tmp_path).read_text()
    assert main(["config", "set", "model", "local/$odd"]) == exits.OK
    assert own_file(tmp_path).read_text() == before.replace('"local/big"', '"local/$$odd"')
    assert main(["config", "set", "limits.cost_per_run", "1.5"]) == exits.OK
    assert main(["config", "set", "small", "local/small"]) == exits.OK
    config = load(project, None, dict(os.environ)).config
    assert (config.models.large, config.models.small) == ("local/$odd", "local/small")
    assert config.limits.cost_per_run == 1.5
    assert (
        own_file(tmp_path)
        .read_text()
        .startswith('# mine\n[models]\nsmall = "local/small"\nlarge = "local/$$odd"   # the')
    )


@pytest.mark.parametrize("key", ["model", "small"])
def test_a_model_of_a_provider_that_nobody_knows_is_not_set(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    before = own_file(tmp_path).read_text()
    assert main(["config", "set", key, "locla/big"]) == exits.USAGE
    said = capsys.readouterr().err
    assert "there is no provider locla; did you mean local/big? known: local/" in said
    assert "Nothing was changed; `covey config edit` names a provider of your own" in said
    assert own_file(tmp_path).read_text() == before
    assert main(["config", "set", key, "local/a-new-one"]) == exits.OK
    assert capsys.readouterr().err == "", "lists are not complete"


def test_a_model_whose_key_is_missing_can_be_set_and_is_doubted_until_there_is_one(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TEAM", "birds")
    assert main(["config", "set", "model", "openai/gpt"]) == exits.OK
    assert "there is no key for openai (`covey login openai`, or $OPENAI_API_KEY)" in capsys.readouterr().err
    assert main(["config", "check"]) == exits.FAILED
    assert "models.large: no model is known as" in capsys.readouterr().err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for words in (["check"], ["set", "model", "openai/other"]):
        assert main(["config", *words]) == exits.OK
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("modle", "x", "did you mean model?"),
        ("providers.local.api_key", "x", "cannot be set"),
        ("permissions.allow", "bash", "cannot be set"),
        ("limits.cost_per_run", "much", "is a number"),
        ("limits.steps_per_run", "-3", "steps_per_run"),
        ("tui.theme", "dar", "tui.theme: expected one of"),
        ("permissions.sandbox", "perhaps", "sandbox"),
    ],
)
def test_what_cannot_be_set_changes_nothing(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, said: str
) -> None:
    before = own_file(tmp_path).read_text()
    assert main(["config", "set", "--", key, value]) == exits.USAGE
    assert said in capsys.readouterr().err
    assert own_file(tmp_path).read_text() == before


def test_an_editor_changes_the_file_and_what_it_leaves_is_checked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\necho "[wrong]" >> "$2"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{editor}' --wait")
    assert main(["config", "edit"]) == exits.FAILED
    assert "wrong" in capsys.readouterr().err
    assert own_file(tmp_path).read_text().endswith("[wrong]\n")


def test_whoever_wants_to_get_a_value_is_not_told_to_set_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(exits.USAGE)):
        main(["config", "get", "model"])
    said = capsys.readouterr().err
    assert "`covey config` shows all that is set" in said and "did you mean" not in said


def test_usage(project: Path) -> None:
    assert main(["config", "set", "model"]) == exits.USAGE
    assert main(["config", "path", "more"]) == exits.USAGE


def test_what_holds_in_one_directory_is_shown_as_such(own_home: Home) -> None:
    root = own_home.project.resolve()
    rules = f'[permissions]\nallow = ["edit"]\n[projects."{root}".permissions]\nallow = ["bash:make"]\n'
    own_home.config.write_text(rules)
    said = own_home.covey("config", "--cwd", str(root)).stdout
    assert f'# {own_home.config}\npermissions.allow = ["edit"]\n' in said
    assert f'# {own_home.config}, for {root} only\npermissions.allow = ["bash:make"]\n' in said


@pytest.mark.parametrize("words", [["path"], ["check"], ["set", "limits.cost_per_run", "2"]])
def test_each_action_has_json(own_home: Home, words: list[str]) -> None:
    done = own_home.covey("config", *words, "--json")
    assert done.returncode == exits.OK and isinstance(json.loads(done.stdout), dict)


def test_a_check_that_fails_and_a_value_that_is_refused_have_json(own_home: Home) -> None:
    refused = own_home.covey("config", "set", "model", "nope/x", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["exit_code"]) == (exits.USAGE, exits.USAGE)
    own_home.config.write_text('[models]\nlarge = "nope/x"\n')
    wrong = own_home.covey("config", "check", "--json")
    assert (wrong.returncode, json.loads(wrong.stdout)["exit_code"]) == (exits.FAILED, exits.FAILED)
