"""Which files count, in which order, and what is said about mistakes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from covey.config.load import MAX_FILE_BYTES, Loaded, config_dir, load
from covey.config.schema import Config, ConfigError
from covey.protocol.errors import BadRequest
from tests.config.conftest import LOCAL, Files


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


def test_a_link_that_leads_nowhere_is_reported_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "covey.toml").symlink_to("nowhere.toml")
    with pytest.raises(ConfigError, match=r"covey\.toml: is a link to nowhere\.toml, which is not there"):
        load(tmp_path, None, {"HOME": str(tmp_path)})


def test_a_rule_about_a_tool_that_there_is_not_is_told_and_where_it_is(files: Files) -> None:
    files.user.write_text('[permissions]\ndeny = ["bsh:rm *", "bash:rm *"]\nallow = [{ rule = "mcp:git/*" }]')
    (warning,) = files.load().warnings
    assert (
        warning
        == f"{files.user}: permissions.deny: 'bsh:rm *' never applies: there is no tool 'bsh'; did you mean bash?"
    )
