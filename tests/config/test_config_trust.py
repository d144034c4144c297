"""Whose word is believed: what needs trust, and what holds in one directory only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from covey.config.edit import trust
from covey.config.load import is_trusted, keys_that_need_trust, load
from covey.config.schema import Config, ConfigError, ModelChoice
from tests.config.conftest import LOCAL, Files

# What needs trust


NEEDS_TRUST = [
    (LOCAL, "providers.local"),
    ('[providers.mine]\napi_key = "k"', "providers.mine"),
    ('[providers.mine]\nbase_url = "http://elsewhere"', "providers.mine"),
    ('[providers.mine.headers]\nx = "$SECRET"', "providers.mine"),
    ('[providers.mine]\ntype = "anthropic"', "providers.mine"),
    ('[providers.mine]\nscript = "run.json"', "providers.mine"),
    ('[permissions]\nallow = ["bash"]', "permissions.allow"),
    ('[server]\nallowed_hosts = ["evil.example"]', "server.allowed_hosts"),
    ("[limits]\nsteps_per_run = 1000000", "limits.steps_per_run"),
    ('[models]\nlarge = "mine/$SECRET"', "models.large"),
    ('[models]\nsmall = "mine/${SECRET:-x}"', "models.small"),
    ('[models]\nfallback = ["mine/a", "mine/$SECRET"]', "models.fallback"),
    ('[context]\nfiles = ["NOTES.md"]', "context.files"),
]


@pytest.mark.parametrize(("text", "key"), NEEDS_TRUST)
def test_a_project_without_trust_is_ignored_with_a_warning(files: Files, text: str, key: str) -> None:
    files.environ["SECRET"] = "s3cret"
    files.user.write_text('[providers.mine]\ntype = "openai"\napi_key = "mine"\n')
    files.project.write_text(text)
    before = load(None, None, files.environ).config
    loaded = files.load()
    assert loaded.config == before
    (warning,) = loaded.warnings
    assert warning.startswith(f"{files.project}: ") and key in warning
    assert warning.endswith(f". If you trust it, run: covey trust {files.project.parent.resolve()}")
    assert keys_that_need_trust(files.project.parent, files.environ) == [key]
    assert "s3cret" not in warning


@pytest.mark.parametrize(("text", "key"), NEEDS_TRUST)
def test_the_same_counts_once_the_directory_is_trusted(files: Files, text: str, key: str) -> None:
    files.user.write_text('[providers.mine]\ntype = "openai"\napi_key = "mine"\n')
    files.project.write_text(text)
    files.environ["SECRET"] = "s3cret"
    files.trust()
    loaded = files.load()
    assert loaded.config != load(None, None, files.environ).config, key
    assert loaded.warnings == ()


def test_the_warning_can_be_followed_to_the_letter(files: Files) -> None:
    files.project.write_text(LOCAL)
    (warning,) = files.load().warnings
    _, command, directory = shlex.split(warning.partition("run: ")[2])
    assert command == "trust"
    trust(files.environ, Path(directory))
    assert files.load().warnings == ()
    assert "local" in files.load().config.providers


def test_without_trust_a_project_may_choose_models_and_forbid(files: Files) -> None:
    files.user.write_text('[permissions]\nallow = ["view"]\ndeny = ["bash:rm *"]')
    files.project.write_text('[models]\nlarge = "mine/b"\n[permissions]\ndeny = ["bash:cat /srv*"]')
    loaded = files.load()
    assert loaded.warnings == ()
    assert loaded.config.models.large == "mine/b"
    assert loaded.config.permissions.deny == ("bash:rm *", "bash:cat /srv*")
    assert loaded.config.permissions.allow == ("view",)


@pytest.mark.parametrize(
    ("mine", "theirs", "holds", "is_ignored"),
    [
        ("auto", "off", "auto", True),
        ("auto", "required", "required", False),
        ("required", "auto", "required", True),
        ("required", "off", "required", True),
        ("off", "auto", "auto", False),
        ("off", "required", "required", False),
        ("off", "off", "off", False),
    ],
)
def test_without_trust_a_project_can_make_the_sandbox_stricter_and_no_more(
    files: Files, mine: str, theirs: str, holds: str, is_ignored: bool
) -> None:
    files.user.write_text(f'permissions.sandbox = "{mine}"')
    files.project.write_text(f'[permissions]\nsandbox = "{theirs}"\nallow = [{{ rule = "bash", sandbox = "off" }}]')
    loaded = files.load()
    assert loaded.config.permissions.sandbox == holds
    assert loaded.config.permissions.allowed == ()
    assert ("permissions.sandbox" in loaded.warnings[0]) == is_ignored
    trust(files.environ, files.project.parent)
    assert files.load().config.permissions.sandbox == theirs


class Watched(dict[str, str]):
    """An environment that notes which of its secrets was looked up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.seen: list[str] = []

    def get(self, name: str, default: object = None) -> Any:
        self.seen += [name] if name == "SECRET" else []
        return super().get(name, default)


UNEXPANDED = [
    ('[permissions]\ndeny = ["bash:[$SECRET\\u0001-\\uffff]*"]', "bash:[$SECRET\u0001-\uffff]*"),
    ('[permissions]\ndeny = ["bash:${SECRET}"]', "bash:${SECRET}"),
    ('[permissions]\ndeny = ["bash:${SECRET:-x} $OTHER"]', "bash:${SECRET:-x} $OTHER"),
    ('[permissions]\ndeny = ["bash:rm $$SECRET*"]', "bash:rm $SECRET*"),
]


@pytest.mark.parametrize(("text", "rule"), UNEXPANDED)
def test_without_trust_no_variable_is_looked_up_and_a_rule_counts_as_it_is_written(
    files: Files, text: str, rule: str
) -> None:
    files.environ = watched = Watched({**files.environ, "SECRET": "s3cret"})
    files.project.write_text(text)
    loaded = files.load()
    assert loaded.config.permissions.deny == (rule,)
    assert watched.seen == []
    assert "s3cret" not in str(loaded)
    has_variable = "$$" not in text
    why = "permissions.deny: a variable in it counts as it is written, as this directory is not trusted"
    assert loaded.warnings == ((f"{files.project}: {why}",) if has_variable else ())
    files.trust()
    assert files.load().config.permissions.deny != (rule,) or not has_variable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOCAL + 'api_key = "$SECRET"', None),
        ('[providers.x]\ntype = "openai"\nbase_url = "http://$SECRET/v1"', None),
        ('[providers.x]\ntype = "openai"\nbase_url = "${SECRET}"', None),
        ('[providers.x]\ntype = "openai"\nname = "${"', "providers.x.name: expected ${NAME}"),
        ('[providers.x]\ntype = "openai"\nbase_url = "no url"', "providers.x.base_url: expected a URL"),
        ('[permissions]\ndeny = ["$SECRET", 3]', "permissions.deny: expected a list of strings"),
        ('[models]\nlarge = ["$SECRET"]', "models.large: expected a string"),
        ('[models]\nfallback = ["$SECRET", 3]', "models.fallback: expected a list of strings"),
        ('providers = "$SECRET"', "providers: expected a table"),
    ],
)
def test_without_trust_a_file_is_checked_without_its_variables(files: Files, text: str, expected: str | None) -> None:
    """Its shape must be right, as far as that can be known."""
    files.environ = watched = Watched({**files.environ, "SECRET": "s3cret / no host"})
    files.project.write_text(text)
    if expected:
        assert files.refused().startswith(f"{files.project}: {expected}")
    else:
        assert "not trusted" in files.load().warnings[0]
    assert watched.seen == []


def test_without_trust_a_model_goes_with_the_provider_that_brings_it(files: Files) -> None:
    files.user.write_text('[models]\nlarge = "mine/a"')
    files.project.write_text('[models]\nlarge = "local/b"\n' + LOCAL)
    loaded = files.load()
    assert loaded.config.models.large == "mine/a"
    assert "models.large, providers.local" in loaded.warnings[0]


MINE = '[providers.mine]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:1"\nmodels = [{ id = "a" }]\n'


@pytest.mark.parametrize(
    ("choice", "counts"),
    [
        ('large = "mine/new"', True),
        ('small = "a"', True),
        ('fallback = ["mine/a", "mine/b"]', True),
        ('aliases = { quick = "mine/a" }\nlarge = "quick"', True),
        ('large = "openai/gpt-6.1-sol"', False),
        ('large = "gpt-6.1-sol"', False),
        ('fallback = ["mine/a", "openai/m"]', False),
        ('aliases = { "gpt-6.1-sol" = "mine/a", other = "openai/m" }\nlarge = "gpt-6.1-sol"', False),
    ],
)
@pytest.mark.parametrize("by", ["user", "extra"])
def test_without_trust_a_project_chooses_only_among_providers_that_files_of_the_user_name(
    files: Files, choice: str, counts: bool, by: str
) -> None:
    """A key that is merely at hand would be used for what a stranger has chosen."""
    (files.user if by == "user" else files.extra).write_text(MINE)
    files.project.write_text(f"[models]\n{choice}\n")
    loaded = files.load()
    assert bool(loaded.warnings) is not counts
    assert (loaded.config.models != ModelChoice()) is counts
    if by == "user":
        assert bool(keys_that_need_trust(files.project.parent, files.environ)) is not counts


def test_a_variable_that_is_ignored_is_not_missed(files: Files) -> None:
    files.project.write_text(LOCAL + 'api_key = "$NOT_SET"')
    (warning,) = files.load().warnings
    assert "not trusted" in warning


def test_trust_is_for_the_very_directory_and_sees_through_links(files: Files) -> None:
    files.trust()
    project = files.project.parent
    (project / "inner").mkdir()
    link = files.base / "link"
    link.symlink_to(project)
    assert is_trusted(project, files.environ)
    assert is_trusted(link, files.environ)
    assert is_trusted(project / "inner" / "..", files.environ)
    assert not is_trusted(project / "inner", files.environ)
    assert not is_trusted(files.base, files.environ)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('directories = ["~/code"]', "directories: expected a list of absolute paths"),
        ('directories = "/x"', "directories: expected a list of strings"),
        ("directory = []", 'directory: unknown key; did you mean "directories"?'),
    ],
)
def test_mistakes_in_the_trust_file_are_named(files: Files, text: str, expected: str) -> None:
    files.project.write_text(LOCAL)
    files.trusted.write_text(text)
    assert files.refused() == f"{files.trusted}: {expected}"


def test_extra_is_believed_and_never_optional(files: Files) -> None:
    files.extra.write_text(LOCAL)
    assert "local" in files.load().config.providers
    files.extra.unlink()
    assert files.refused(extra=True) == f"{files.extra}: there is no such file"


# What holds in one directory


def test_rules_for_one_directory_add_up_with_all_others(files: Files) -> None:
    files.trust()
    table = f"[projects.'{files.project.parent.resolve()}'.permissions]\n"
    other = "[projects.'/elsewhere'.permissions]\nallow = ['never', '$NOT_SET']\ndeny = ['never']\n"
    files.user.write_text(
        f"[permissions]\nallow = ['view']\n{other}{table}allow = ['ls', 'view']\nask = ['bash']\ndeny = ['grep']\n"
    )
    files.project.write_text("[permissions]\ndeny = ['glob']")
    files.extra.write_text(f"{table}deny = ['fetch']")
    loaded = files.load()
    permissions = loaded.config.permissions
    assert (permissions.allow, permissions.ask, permissions.deny) == (
        ("view", "ls"),
        ("bash",),
        ("grep", "glob", "fetch"),
    )
    assert loaded.warnings == (), "also what others have left unset is not reported here"
    assert load(files.base, None, files.environ).config.permissions.deny == ()


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_project_says_nothing_about_directories(files: Files, is_trusted: bool) -> None:
    if is_trusted:
        files.trust()
    here = files.project.parent.resolve()
    files.project.write_text(f"[projects.'{here}'.permissions]\nallow = ['bash']")
    expected = f"{files.project}: projects: only your own config.toml can say what holds in which directory"
    assert files.refused() == expected
    with pytest.raises(ConfigError, match="only your own"):
        keys_that_need_trust(files.project.parent, files.environ)


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_project_notifies_nobody(files: Files, is_trusted: bool) -> None:
    if is_trusted:
        files.trust()
    files.project.write_text("[notify]\nwebhook = 'https://stranger.example'")
    expected = f"{files.project}: notify: only your own config.toml can say where notices are sent"
    assert files.refused() == expected
    with pytest.raises(ConfigError, match="only your own"):
        keys_that_need_trust(files.project.parent, files.environ)


@pytest.mark.parametrize("name", ["~/x", "x", "/x/", "/x//y", "/x/../y", "/x/.", "", "//x"])
def test_a_directory_is_named_in_full(files: Files, name: str) -> None:
    files.user.write_text(f"[projects.'{name}'.permissions]\ndeny = ['bash']")
    expected = f'{files.user}: projects."{name}": expected the full path of a directory'
    assert files.refused().replace("projects.x:", 'projects."x":').startswith(expected)


@pytest.mark.parametrize("name", ["/", "/x", "/x/.y/..z/...", "/a b/c\\nd"])
def test_what_a_full_path_may_be(files: Files, name: str) -> None:
    files.user.write_text(f'[projects."{name}".permissions]\ndeny = ["bash"]')
    assert files.load().warnings == ()


def test_a_path_with_a_link_in_it_is_not_taken_and_reported(files: Files) -> None:
    """What is denied by it would be allowed in silence."""
    (files.base / "home").symlink_to(files.base)
    name = f"{files.base.resolve()}/home/project"
    files.user.write_text(f"[projects.'{name}'.permissions]\nallow = ['bash']\ndeny = ['edit']")
    loaded = files.load()
    assert loaded.config.permissions == Config().permissions
    (warning,) = loaded.warnings
    assert f'projects."{name}": ignored, as there is a link in this path' in warning
    assert warning.endswith(f'write projects."{files.project.parent.resolve()}"')
