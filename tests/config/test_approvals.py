"""Trust that is bound to content: which entries of a project may be used, and what is asked about the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from covey.config.approvals import (
    ExtensionEntry,
    approval_of,
    approve,
    checked,
    digest_of,
    disapprove,
    entries_of,
    judge_entries,
    mcp_entry,
)
from covey.config.edit import distrust, trust
from covey.config.load import load, read_trusted
from covey.config.schema import McpSettings

ENTRIES = """
[mcp.git]
command = "python3"
args = ["server.py", "--root=."]
env = { TOKEN = "$SECRET" }

[mcp.web]
url = "https://mcp.example/mcp"
headers = { Authorization = "Bearer $SECRET" }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "covey.toml").write_text(ENTRIES)
    (directory / "server.py").write_text("print(1)")
    return directory


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "SECRET": "s3cret"}


def standings(project: Path, environ: dict[str, str]) -> dict[str, str]:
    judged = judge_entries(entries_of(project, environ), project, environ)
    return {each.entry.name: each.standing for each in judged}


def digests(project: Path, environ: dict[str, str]) -> dict[str, str]:
    return {each.entry.name: each.digest for each in judge_entries(entries_of(project, environ), project, environ)}


def test_x1_before_the_directory_is_trusted_there_are_no_entries_and_a_warning_names_them(
    project: Path, environ: dict[str, str]
) -> None:
    loaded = load(project, None, environ)
    assert not loaded.config.mcp and not loaded.config.of_project.mcp
    assert "mcp.git, mcp.web" in loaded.warnings[0] and "covey trust" in loaded.warnings[0]


def test_x1_a_trusted_directory_is_not_enough_and_an_approved_digest_is(project: Path, environ: dict[str, str]) -> None:
    trust(environ, project)
    assert standings(project, environ) == {"git": "not_approved", "web": "not_approved"}
    approve(environ, project, [digests(project, environ)["git"]])
    assert standings(project, environ) == {"git": "approved", "web": "not_approved"}
    distrust(environ, project)
    assert read_trusted(environ).digests(project) == ()
    trust(environ, project)
    assert standings(project, environ) == {"git": "not_approved", "web": "not_approved"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('command = "python3"', 'command = "python"'),
        ('"--root=."', '"--root=/"'),
        ("TOKEN =", "TOKENS ="),
        ('"$SECRET"', '"$OTHER"'),
        ("https://mcp.example/mcp", "https://mcp.example/other"),
        ("Authorization", "X-Authorization"),
    ],
)
def test_x2_whatever_would_be_executed_differently_is_asked_about_again(
    project: Path, environ: dict[str, str], old: str, new: str
) -> None:
    trust(environ, project)
    approve(environ, project, digests(project, environ).values())
    assert set(standings(project, environ).values()) == {"approved"}
    (project / "covey.toml").write_text(ENTRIES.replace(old, new, 1))
    assert list(standings(project, environ).values()).count("not_approved") == 1


def test_x2_one_byte_of_a_script_that_the_command_names_is_a_change(project: Path, environ: dict[str, str]) -> None:
    trust(environ, project)
    approve(environ, project, digests(project, environ).values())
    (project / "server.py").write_text("print(2)")
    assert standings(project, environ) == {"git": "not_approved", "web": "approved"}


def test_x2_a_script_behind_an_option_or_in_a_shell_line_counts_too(project: Path) -> None:
    for words in (("tool", "--script=server.py"), ("sh", "-c", "exec ./server.py"), ("sh -c 'python server.py'",)):
        entry = ExtensionEntry("hook", "h", project, is_users_own=False, command=words[0], args=words[1:])
        (project / "server.py").write_text("1")
        before = digest_of(entry, project)
        (project / "server.py").write_text("2")
        assert digest_of(entry, project) != before, words


@pytest.mark.parametrize("line", ['reads = ["git_status"]', "call_timeout_s = 30", "enabled = true"])
def test_x2_other_keys_change_freely(project: Path, environ: dict[str, str], line: str) -> None:
    trust(environ, project)
    approve(environ, project, digests(project, environ).values())
    (project / "covey.toml").write_text(ENTRIES.replace("[mcp.git]", f"[mcp.git]\n{line}"))
    assert set(standings(project, environ).values()) == {"approved"}


def test_the_users_own_entries_are_approved_and_a_project_cannot_change_them(
    project: Path, environ: dict[str, str]
) -> None:
    own = Path(environ["HOME"]) / ".config/covey/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[mcp.git]\ncommand = "mcp-server-git"\n')
    trust(environ, project)
    config = load(project, None, environ).config
    assert config.mcp["git"].command == "mcp-server-git" and config.mcp["git"].args == ()
    assert "web" not in config.mcp
    entry = mcp_entry("git", config.mcp["git"], own, is_users_own=True)
    [judged] = judge_entries([entry], project, environ)
    assert judged.is_approved and not judged.may_be_asked_about


def test_the_question_shows_everything_but_no_value(project: Path, environ: dict[str, str]) -> None:
    trust(environ, project)
    git, web = (approval_of(each, project) for each in judge_entries(entries_of(project, environ), project, environ))
    assert (git.command, git.args, git.cwd) == ("python3", ("server.py", "--root=."), str(project))
    assert git.variables == ("TOKEN (from $SECRET)",) and "server.py" in git.warnings[0]
    assert (web.url, web.headers) == ("https://mcp.example/mcp", ("Authorization",))
    assert "s3cret" not in repr((git, web))


@pytest.mark.parametrize(
    ("words", "is_warned"),
    [
        (("npx", "-y", "some-server"), True),
        (("npx", "-y", "some-server@1.2.3"), False),
        (("npx", "-y", "@scope/server"), True),
        (("npx", "-y", "@scope/server@latest"), True),
        (("uvx", "mcp-server-git"), True),
        (("uvx", "mcp-server-git==2026.10.19"), False),
        (("/usr/bin/uvx", "mcp-server-git@2026.10.19"), False),
        (("mcp-server-git",), False),
    ],
)
def test_a_command_that_fetches_the_newest_is_warned_about(
    project: Path, words: tuple[str, ...], is_warned: bool
) -> None:
    entry = ExtensionEntry("mcp", "x", project / "covey.toml", is_users_own=False, command=words[0], args=words[1:])
    [judged] = judge_entries([entry], project, {"HOME": str(project / "home")})
    assert any("newest" in warning for warning in approval_of(judged, project).warnings) == is_warned


def test_what_is_disapproved_is_asked_about_again(project: Path, environ: dict[str, str]) -> None:
    trust(environ, project)
    approve(environ, project, digests(project, environ).values())
    disapprove(environ, project)
    assert set(standings(project, environ).values()) == {"not_approved"}


def test_an_entry_with_both_or_neither_of_command_and_url_is_wrong(project: Path) -> None:
    good = mcp_entry("a", McpSettings(command="x"), project, is_users_own=True)
    assert not checked(good)
    assert checked(replace(good, command="")) and checked(replace(good, url="https://x"))
    assert checked(replace(good, command="", url="ftp://x"))
