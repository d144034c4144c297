"""Rules and trust are written into the user's files: everything else in them stays as it was, or nothing is written."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import re
import tomllib
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.config import edit
from covey.config.edit import add_permission_rule, distrust, trust
from covey.config.load import is_trusted, load, trusted_directories
from covey.config.schema import AllowRule, ConfigError
from covey.config.toml_text import with_items, without_item
from covey.permissions.reach import Reach

PROJECT = Path("/home/ann/birdhouse")
TABLE = '[projects."/home/ann/birdhouse".permissions]'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "covey").mkdir()
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def config(environ: Mapping[str, str]) -> Path:
    return Path(environ["XDG_CONFIG_HOME"]) / "covey" / "config.toml"


# The text


CASES = [
    ("", '[permissions]\nallow = [\n  "new",\n]\n'),
    ("# mine\n", '# mine\n\n[permissions]\nallow = [\n  "new",\n]\n'),
    ('[models]\nlarge = "a/b"', '[models]\nlarge = "a/b"\n\n[permissions]\nallow = [\n  "new",\n]\n'),
    ("[permissions]", '[permissions]\nallow = [\n  "new",\n]\n'),
    (
        '[permissions] # rules\ndeny = ["x"]\n[limits]\n',
        '[permissions] # rules\nallow = [\n  "new",\n]\ndeny = ["x"]\n[limits]\n',
    ),
    ("[permissions]\nallow = []\n", '[permissions]\nallow = ["new"]\n'),
    ("[permissions]\nallow = [ ]\n", '[permissions]\nallow = [ "new"]\n'),
    (
        "[permissions]\nallow = ['a', \"b\"] # short\ndeny=[]\n",
        '[permissions]\nallow = [\'a\', "b", "new"] # short\ndeny=[]\n',
    ),
    ('[permissions]\nallow = ["a",]\n', '[permissions]\nallow = ["a", "new",]\n'),
    (
        '[permissions]\nallow = [\n    "a", # first\n    "b" # ] and last\n    # what follows\n]\n',
        '[permissions]\nallow = [\n    "a", # first\n    "b", # ] and last\n    # what follows\n    "new",\n]\n',
    ),
    ('[permissions]\nallow = [\n  "a",\n]\n', '[permissions]\nallow = [\n  "a",\n  "new",\n]\n'),
    ('[permissions]\nallow = ["a",\n         "b"]\n', '[permissions]\nallow = ["a",\n         "b",\n         "new"]\n'),
    ('[permissions]\nallow = ["a",\n]\n', '[permissions]\nallow = ["a",\n  "new",\n]\n'),
    ("[permissions]\nallow = [\n  # none yet\n]\n", '[permissions]\nallow = [\n  # none yet\n  "new",\n]\n'),
    ('[permissions]\r\nallow = [\r\n  "a"\r\n]\r\n', '[permissions]\r\nallow = [\r\n  "a",\r\n  "new",\r\n]\r\n'),
    ('permissions.allow = ["a"]\n', 'permissions.allow = ["a", "new"]\n'),
    ('["permissions"]\n"allow" = ["a"]\n', '["permissions"]\n"allow" = ["a", "new"]\n'),
    (
        'x = """\n[permissions]\nallow = ["no"]\n"""\n[permissions]\nallow = ["a"]\n',
        'x = """\n[permissions]\nallow = ["no"]\n"""\n[permissions]\nallow = ["a", "new"]\n',
    ),
    (
        '[[permissions_of]]\nallow = ["no"]\n[other.permissions]\nallow = ["no"]\n[permissions]\nallow = ["a"]\n',
        '[[permissions_of]]\nallow = ["no"]\n[other.permissions]\nallow = ["no"]\n'
        '[permissions]\nallow = ["a", "new"]\n',
    ),
    (
        '[permissions]\nallow = ["a]\\"", \'b[\', """c,\n#]""", "d"]\n',
        '[permissions]\nallow = ["a]\\"", \'b[\', """c,\n#]""", "d",\n  "new"]\n',
    ),
    (
        f'[permissions]\nallow = ["{"x" * 90}"]\n',
        f'[permissions]\nallow = ["{"x" * 90}",\n  "new"]\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_a_list_grows_and_the_rest_stays(before: str, after: str) -> None:
    assert with_items(before, ("permissions",), "allow", ["new"]) == after
    tomllib.loads(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('directories = ["x"]\n', "directories = []\n"),
        ('directories = ["a", "x", "b"]\n', 'directories = ["a", "b"]\n'),
        ('directories = ["a", "x"]\n', 'directories = ["a", ]\n'),
        (
            '# mine\ndirectories = [\n  "a", # one\n  "x", # two\n  "b", # three\n]\n',
            '# mine\ndirectories = [\n  "a", # one\n  "b", # three\n]\n',
        ),
        ("directories = [\n  \"a\",\n  'x'\n]\n", 'directories = [\n  "a",\n]\n'),
        ('directories = ["x", "a", "x"]\n', 'directories = ["a", ]\n'),
        ('directories = ["a"]\n', 'directories = ["a"]\n'),
        ("", ""),
    ],
)
def test_an_item_goes_and_the_rest_stays(before: str, after: str) -> None:
    assert without_item(before, (), "directories", "x") == after
    tomllib.loads(after)


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_layouts = st.sampled_from(
    [
        "[permissions]\nallow = [{items}]\n",
        "[permissions]\nallow = [ {items}, ] # end ]\n[limits]\n",
        "[permissions]\nallow = [\n  # first ]\n  {items} # last, ]\n]\ndeny = []\n",
        "[permissions]\nallow = [\n  {items},\n\n]\n",
        "# [permissions]\n[models]\nlarge = '''\nallow = [\n'''\n[ permissions ]\nallow=[{items}\n]",
    ]
)


@given(layout=_layouts, present=st.lists(_texts, min_size=1, max_size=4), new=st.lists(_texts, min_size=1, max_size=3))
def test_whatever_the_items_are_the_result_is_the_old_list_and_the_new_items(
    layout: str, present: list[str], new: list[str]
) -> None:
    from covey.config.toml_text import quoted

    before = layout.format(items=",\n  ".join(map(quoted, present)))
    wanted = tomllib.loads(before)
    wanted["permissions"]["allow"] += new
    after = with_items(before, ("permissions",), "allow", new)
    assert tomllib.loads(after) == wanted
    removed = without_item(after, ("permissions",), "allow", present[0])
    wanted["permissions"]["allow"] = [item for item in wanted["permissions"]["allow"] if item != present[0]]
    assert tomllib.loads(removed) == wanted


# Rules


def test_a_file_is_made_for_the_first_rule(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "covey").rmdir()
    path = add_permission_rule(environ, PROJECT, "allow", ["bash:make test", "edit"])
    assert path == config(environ)
    assert load(PROJECT, None, environ).config.permissions.allow == ("bash:make test", "edit")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_rule_is_added_once_and_each_kind_has_its_list(environ: dict[str, str]) -> None:
    add_permission_rule(environ, PROJECT, "allow", ["a"])
    before = config(environ).read_text()
    add_permission_rule(environ, PROJECT, "allow", ["a", "a"])
    assert config(environ).read_text() == before
    add_permission_rule(environ, PROJECT, "deny", ["a"])
    add_permission_rule(environ, PROJECT, "ask", ["b"])
    permissions = load(PROJECT, None, environ).config.permissions
    assert (permissions.allow, permissions.deny, permissions.ask) == (("a",), ("a",), ("b",))


@pytest.mark.parametrize(
    "rule", ["bash:echo $HOME ${X:-y} $$", 'bash:say "\\n"\n\t#]', "edit:ü \x7f\u2028", "bash:a'''b\"\"\""]
)
def test_a_rule_means_what_it_meant_when_it_was_given(environ: dict[str, str], rule: str) -> None:
    add_permission_rule(environ, PROJECT, "allow", [rule])
    add_permission_rule(environ, PROJECT, "allow", [rule])
    environ["HOME"] = "/elsewhere"
    assert load(PROJECT, None, environ).config.permissions.allow == (rule,)


def test_a_rule_holds_in_its_directory_and_in_no_other(environ: dict[str, str], tmp_path: Path) -> None:
    project, inner, other = tmp_path / "one", tmp_path / "one" / "inner", tmp_path / "two"
    for directory in (inner, other):
        directory.mkdir(parents=True)
    (tmp_path / "link").symlink_to(project)
    config(environ).write_text('[permissions]\nallow = ["everywhere"]\n')
    add_permission_rule(environ, tmp_path / "link", "allow", ["edit:src/a.py"])
    add_permission_rule(environ, other, "allow", ["bash:make"])
    add_permission_rule(environ, project, "deny", ["bash:rm *"])
    rules = [load(directory, None, environ).config.permissions for directory in (project, inner, other, tmp_path)]
    assert [found.allow for found in rules] == [
        ("everywhere", "edit:src/a.py"),
        ("everywhere",),
        ("everywhere", "bash:make"),
        ("everywhere",),
    ]
    assert [found.deny for found in rules] == [("bash:rm *",), (), (), ()]
    assert load(None, None, environ).config.permissions.allow == ("everywhere",)
    assert load(tmp_path / "link", None, environ).config.permissions.deny == ("bash:rm *",)


@pytest.mark.parametrize(
    "name", ['two "$HOME" \\ ü', "line\nbreak\t'''", "a.b c]#\x7f\u2028😀", "permissions", "-", '"""[[x]]']
)
def test_a_directory_may_be_called_anything(environ: dict[str, str], tmp_path: Path, name: str) -> None:
    project = tmp_path / name
    project.mkdir()
    for number in range(3):
        add_permission_rule(environ, project, "allow", [f"bash:{number}"])
        add_permission_rule(environ, tmp_path, "allow", [f"edit:{number}"])
    assert load(project, None, environ).config.permissions.allow == ("bash:0", "bash:1", "bash:2")
    assert load(tmp_path, None, environ).config.permissions.allow == ("edit:0", "edit:1", "edit:2")
    assert config(environ).read_text().count("\n[") == 1, "a table for each directory"


def test_a_directory_whose_name_is_no_text_changes_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    config(environ).write_text("# mine\n")
    with pytest.raises(ConfigError, match="not text that can be written"):
        add_permission_rule(environ, tmp_path / os.fsdecode(b"\xff"), "allow", ["a"])
    assert config(environ).read_text() == "# mine\n"


def test_comments_order_and_mode_stay(environ: dict[str, str]) -> None:
    text = f'# on top\n{TABLE} # mine\ndeny = ["x"] # never\n\n[models]\n# below\nlarge = "a/b"\n'
    config(environ).write_text(text)
    config(environ).chmod(0o640)
    add_permission_rule(environ, PROJECT, "deny", ["new"])
    assert config(environ).read_text() == text.replace('"x"]', '"x", "new"]')
    assert config(environ).stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    config(environ).symlink_to("../dotfiles/covey.toml")
    for rule in ("first", "second"):  # also when there is nothing yet where it leads
        add_permission_rule(environ, PROJECT, "allow", [rule])
    assert config(environ).is_symlink()
    assert os.listdir(tmp_path / "dotfiles") == ["covey.toml"]
    assert load(PROJECT, None, environ).config.permissions.allow == ("first", "second")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('projects = { "/home/ann/birdhouse" = { permissions = { allow = ["a"] } } }\n', "cannot be changed"),
        ('projects."/home/ann/birdhouse".permissions.deny = []\n', "cannot be changed"),
        (f"{TABLE}\nallow = 3\n", f"{TABLE[1:-1]}.allow: expected a list of strings"),
        ("[permisions]\n", "unknown key"),
        ("[permissions\n", "is not valid TOML"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_alone(environ: dict[str, str], text: str, expected: str) -> None:
    config(environ).write_text(text)
    with pytest.raises(ConfigError) as caught:
        add_permission_rule(environ, PROJECT, "allow", ["new"])
    assert str(caught.value).startswith(f"{config(environ)}: ") and expected in str(caught.value)
    assert config(environ).read_text() == text
    assert sorted(os.listdir(config(environ).parent)) == [".lock", "config.toml"]


def test_a_refusal_says_what_to_write(environ: dict[str, str]) -> None:
    config(environ).write_text("projects = { }\n")
    with pytest.raises(ConfigError, match=re.escape(f'Write it there yourself:\n{TABLE}\nallow = ["a $$b"]')):
        add_permission_rule(environ, PROJECT, "allow", ["a $b"])


@pytest.mark.parametrize("rule", ["edit:" + "." * 200, "x" * 200_000, "half \ud800"])
def test_a_rule_with_which_the_file_could_not_be_read_again_is_refused(environ: dict[str, str], rule: str) -> None:
    config(environ).write_text("# mine\n")
    with pytest.raises(ConfigError):
        add_permission_rule(environ, PROJECT, "allow", [rule])
    assert config(environ).read_text() == "# mine\n"


def test_many_rules_do_not_outgrow_a_line(environ: dict[str, str]) -> None:
    """A line may have a hundred dots."""
    config(environ).write_text(f"{TABLE}\nallow = []\n")
    rules = [f"edit:a.b.c.{number}" for number in range(60)]
    for rule in rules:
        add_permission_rule(environ, PROJECT, "allow", [rule])
    assert list(load(PROJECT, None, environ).config.permissions.allow) == rules


def _add_ten(environ: dict[str, str], name: str) -> None:
    for number in range(10):
        add_permission_rule(environ, PROJECT, "allow", [f"{name}:{number}"])


def test_two_writers_lose_nothing(environ: dict[str, str]) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for future in [pool.submit(_add_ten, environ, name) for name in ("a", "b")]:
            future.result(60)
    allow = load(PROJECT, None, environ).config.permissions.allowed
    assert sorted(allow) == sorted(f"{name}:{number}" for name in "ab" for number in range(10))


def test_a_lock_that_is_never_given_back_is_given_up(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "LOCK_SECONDS", 0.05)
    with (config(environ).parent / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="somebody else is changing it"):
            add_permission_rule(environ, PROJECT, "allow", ["a"])
    assert not config(environ).exists()


def test_a_disk_that_fails_leaves_the_old_file(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    config(environ).write_text("# mine\n")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConfigError, match="No space left on device"):
        add_permission_rule(environ, PROJECT, "allow", ["a"])
    assert config(environ).read_text() == "# mine\n"
    assert sorted(os.listdir(config(environ).parent)) == [".lock", "config.toml"]


# Trust


def test_trust_comes_and_goes(environ: dict[str, str], tmp_path: Path) -> None:
    projects = [tmp_path / name for name in ("one", 'two "$HOME" \\ ü')]
    for project in projects:
        project.mkdir()
        assert trust(environ, project)
        assert not trust(environ, project)
    assert trusted_directories(environ) == tuple(str(project.resolve()) for project in projects)
    listed = config(environ).with_name("trusted.toml")
    assert listed.stat().st_mode & 0o777 == 0o600
    assert listed.read_text().startswith("# ")
    assert distrust(environ, projects[0])
    assert not distrust(environ, projects[0])
    assert [is_trusted(project, environ) for project in projects] == [False, True]
    assert distrust(environ, projects[1])
    assert trusted_directories(environ) == ()


def test_trust_is_for_what_a_link_leads_to(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    trust(environ, tmp_path / "link")
    assert trusted_directories(environ) == (str((tmp_path / "real").resolve()),)


def test_a_list_with_mistakes_is_not_changed(environ: dict[str, str], tmp_path: Path) -> None:
    listed = config(environ).with_name("trusted.toml")
    listed.write_text("directories = ['~/x']\n")
    with pytest.raises(ConfigError, match="absolute paths"):
        trust(environ, tmp_path)
    assert listed.read_text() == "directories = ['~/x']\n"


def test_a_rule_with_the_network_is_a_table_beside_the_others(environ: dict[str, str]) -> None:
    path = add_permission_rule(environ, PROJECT, "allow", ["bash:make"])
    add_permission_rule(environ, PROJECT, "allow", ["bash:npm ci", 'bash:echo "$x"'], reach=Reach.NETWORK)
    add_permission_rule(environ, PROJECT, "allow", ["bash:npm ci"], reach=Reach.NETWORK)
    add_permission_rule(environ, PROJECT, "allow", ["bash:docker ps"], reach=Reach.EVERYTHING)
    add_permission_rule(environ, PROJECT, "allow", ["edit"])
    permissions = load(PROJECT, None, environ).config.permissions
    assert permissions.allow == (
        "bash:make",
        AllowRule(rule="bash:npm ci", network=True),
        AllowRule(rule='bash:echo "$x"', network=True),
        AllowRule(rule="bash:docker ps", sandbox="off"),
        "edit",
    )
    assert permissions.allowed_with(network=True) == ("bash:npm ci", 'bash:echo "$x"')
    assert permissions.allowed_with(sandbox="off") == ("bash:docker ps",)
    assert path.read_text().count('{ rule = "bash:npm ci", network = true }') == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[p]\na = [{ rule = "x", b = [1, 2] }]\n', '[p]\na = [{ rule = "x", b = [1, 2] }, "new"]\n'),
        ('[p]\na = [\n  { rule = "]" },\n]\n', '[p]\na = [\n  { rule = "]" },\n  "new",\n]\n'),
    ],
)
def test_a_list_with_tables_in_it_can_be_added_to(before: str, after: str) -> None:
    assert with_items(before, ("p",), "a", ["new"]) == after
