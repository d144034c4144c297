"""Which files count, in which order, whose word is believed, and what is said about mistakes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from covey.config.edit import trust
from covey.config.load import MAX_FILE_BYTES, Loaded, config_dir, is_trusted, keys_that_need_trust, load
from covey.config.schema import Config, ConfigError
from covey.protocol.errors import BadRequest


@dataclass
class Files:
    """The three files, and the environment in which they are read."""

    base: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environ["XDG_CONFIG_HOME"] = str(self.base / "config")
        self.user = self.base / "config" / "covey" / "config.toml"
        self.trusted = self.base / "config" / "covey" / "trusted.toml"
        self.project = self.base / "project" / "covey.toml"
        self.extra = self.base / "extra.toml"
        self.user.parent.mkdir(parents=True)
        self.project.parent.mkdir()

    def trust(self) -> None:
        self.trusted.write_text(f"directories = ['{self.project.parent.resolve()}']")

    def load(self, *, extra: bool | None = None) -> Loaded:
        wanted = self.extra.exists() if extra is None else extra
        return load(self.project.parent, self.extra if wanted else None, self.environ)

    def refused(self, *, extra: bool | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(extra=extra)
        return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


LOCAL = '[providers.local]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:8080/v1"\n'


def test_without_any_file_the_defaults_count(files: Files) -> None:
    assert files.load() == Loaded(Config(), (), ())
    assert load(None, None, files.environ).config == Config()


def test_later_files_win_key_by_key(files: Files) -> None:
    files.trust()
    files.user.write_text(LOCAL + '[models]\nlarge = "local/a"\nsmall = "local/a"\n[limits]\nsteps_per_run = 1\n')
    files.project.write_text('[models]\nlarge = "local/b"\n[providers.local]\nname = "B"\n[limits]\nevents_kept = 2\n')
    files.extra.write_text('[models]\nlarge = "local/c"\n[providers.local.headers]\nx = "y"\n')
    loaded = files.load()
    config = loaded.config
    assert (config.models.large, config.models.small) == ("local/c", "local/a")
    assert (config.limits.steps_per_run, config.limits.events_kept) == (1, 2)
    local = config.providers["local"]
    assert (local.name, local.base_url, local.headers) == ("B", "http://127.0.0.1:8080/v1", {"x": "y"})
    assert loaded.files == (files.user, files.project, files.extra)
    assert loaded.warnings == ()


def test_lists_are_replaced_but_permission_rules_add_up(files: Files) -> None:
    files.trust()
    files.user.write_text(
        '[providers.permissions]\ntype = "openai"\nmodels = [{ id = "a" }]\n'
        '[permissions]\nallow = ["v"]\ndeny = ["a", "b"]'
    )
    files.project.write_text('[permissions]\nallow = ["w"]\ndeny = ["b", "c"]')
    files.extra.write_text('[providers.permissions]\nmodels = [{ id = "z" }]\n[permissions]\ndeny = []\nallow = []')
    config = files.load().config
    assert [model.id for model in config.providers["permissions"].models] == ["z"]
    assert config.permissions.allow == ("v", "w")
    assert config.permissions.deny == ("a", "b", "c")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/covey"),
        ({"HOME": "/h"}, "/h/.config/covey"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/covey"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/covey"),
    ],
)
def test_where_the_users_files_are(environ: Mapping[str, str], expected: str) -> None:
    assert config_dir(environ) == Path(expected)


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
    """Its shape must be right, as far as that can be told."""
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


# Values


def test_variables_come_from_the_given_environment(files: Files) -> None:
    files.environ |= {"KEY": "k", "EMPTY": ""}
    files.user.write_text(LOCAL + 'api_key = "$KEY"\nname = "${NONE:-fallback} ${EMPTY}$$"\n[models]\nlarge = "$NONE"')
    loaded = files.load()
    local = loaded.config.providers["local"]
    assert (local.api_key, local.name) == ("k", "fallback $")
    assert loaded.config.models.large == ""
    (warning,) = loaded.warnings
    assert warning.startswith(f"{files.user}: models.large: ")
    assert "NONE" not in warning


def test_a_script_is_found_from_its_file(files: Files) -> None:
    files.user.write_text(
        '[providers.a]\ntype = "scripted"\nscript = "demo/one.json"\n[providers.b]\ntype = "scripted"'
    )
    files.extra.write_text(
        '[providers.c]\ntype = "scripted"\nscript = "/abs/two.json"\n[providers.d]\ntype = "scripted"\nscript = "~/s"'
    )
    providers = files.load().config.providers
    assert providers["a"].script == str(files.user.parent / "demo/one.json")
    assert providers["b"].script == ""
    assert providers["c"].script == "/abs/two.json"
    assert providers["d"].script == str(Path.home() / "s")


def test_the_file_of_a_model_is_found_from_its_file(files: Files) -> None:
    files.user.write_text('[providers.a]\ntype = "embedded"\nmodel_file = "small.gguf"\n')
    assert files.load().config.providers["a"].model_file == str(files.user.parent / "small.gguf")


# Mistakes


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[models]\nlarge = ", "is not valid TOML: Invalid value (at line 2, column 9)"),
        (b"[models]\nlarge = nope\n", "is not valid TOML: Invalid value (at line 2, column 9)"),
        (b"a = 1\na = 2", "is not valid TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"[models", "is not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 8)"),
        (b"name = '\xff'", "is not UTF-8 text (byte 8)"),
        (b"[models]\nlarge = 3", "models.large: expected a string"),
        (b"[modls]", 'modls: unknown key; did you mean "models"?'),
        (b"[providers.x]\nname = 'y'", 'providers.x.type: missing; expected one of "openai", "anthropic", '),
        (b"[limits]\nsteps_per_run = " + b"9" * 5000, "is not valid TOML: Exceeds the limit"),
        (b"x = " + b"[" * 100_000, "nested too deeply"),
        (b"# long\n" + b"a." * 60_000 + b"a = 1", "line 2 has more than 100 dots; write it as several lines"),
        (b"#" * (MAX_FILE_BYTES + 1), f"is larger than {MAX_FILE_BYTES} bytes"),
        (b"[models]\nlarge = '${NO NAME}'", "models.large: expected ${NAME} or ${NAME:-default}"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("which", ["user", "project", "extra"])
def test_a_mistake_names_its_file(files: Files, content: bytes, expected: str, which: str) -> None:
    path: Path = getattr(files, which)
    path.write_bytes(content)
    assert files.refused().startswith(f"{path}: {expected}")


def test_a_mistake_is_blamed_on_the_file_that_made_it(files: Files) -> None:
    files.user.write_text(LOCAL + "[permissions]\ndeny = ['a']")
    files.extra.write_text("[permissions]\ndeny = 'b'")
    assert files.refused() == f"{files.extra}: permissions.deny: expected a list of strings"


def test_a_byte_order_mark_is_no_mistake(files: Files) -> None:
    files.user.write_bytes(b"\xef\xbb\xbf[models]\nlarge = 'a/b'")
    assert files.load().config.models.large == "a/b"


@pytest.mark.parametrize("which", ["user", "project", "extra"])
def test_what_is_no_readable_file_is_refused_at_once(files: Files, which: str) -> None:
    path: Path = getattr(files, which)
    path.mkdir()
    assert files.refused() == f"{path}: is a directory, not a regular file"
    path.rmdir()
    os.mkfifo(path)
    assert files.refused() == f"{path}: is something, not a regular file"
    path.unlink()
    path.symlink_to(path)
    assert files.refused(extra=True).startswith(f"{path}: cannot be read: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(files: Files) -> None:
    files.user.write_text("")
    files.user.chmod(0)
    assert files.refused() == f"{files.user}: cannot be read: Permission denied"


def test_a_mistake_is_an_answer_not_a_failure_of_the_server() -> None:
    assert issubclass(ConfigError, BadRequest)


def test_a_link_that_leads_nowhere_is_told_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "covey.toml").symlink_to("nowhere.toml")
    with pytest.raises(ConfigError, match=r"covey\.toml: is a link to nowhere\.toml, which is not there"):
        load(tmp_path, None, {"HOME": str(tmp_path)})
