"""The system's keyring, by programs that stand in for those of the system and keep what they are given."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from covey.credentials import keyring as keyring_module
from covey.credentials.accounts import Account, CredentialsError
from covey.credentials.file import accounts_file, read_accounts
from covey.credentials.keyring import Keyring, SecretTool, Security, find_keyring
from covey.credentials.login import forget, keep, make_default
from tests.support.fake_keyring import PROGRAMS, FakeKeyring, make_program

KEY = "sk-canary-0123456789"
CLASSES: dict[str, Callable[[str, dict[str, str]], Keyring]] = {"secret-tool": SecretTool, "security": Security}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "share"), "PATH": "/nowhere", "OPENAI_API_KEY": "other", "HOME": "/h"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def wanted(name: str = "work", *, is_default: bool = False) -> Account:
    return Account(
        provider="openai", name=name, origin="https://api.x", kept="file", revision="", is_default=is_default
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_key_is_put_in_found_and_removed(name: str, tmp_path: Path) -> None:
    fake = FakeKeyring(tmp_path, name)
    keyring = CLASSES[name](str(fake.bin / name), {"HOME": "/h", "OPENAI_API_KEY": "other", "COVEY_TOKEN": "t"})
    assert keyring.get("openai", "work") == ""
    keyring.put("openai", "work", KEY)
    keyring.put("openai", "home", KEY + "2")
    assert keyring.get("openai", "work") == KEY and fake.keys == [KEY, KEY + "2"]
    keyring.put("openai", "work", KEY + "3")
    assert keyring.get("openai", "work") == KEY + "3"
    keyring.remove("openai", "work")
    assert keyring.get("openai", "work") == "" and fake.keys == [KEY + "2"]
    assert not any(KEY in word for call in fake.calls for word in call["args"]), "everybody can see arguments"
    assert not any({"OPENAI_API_KEY", "COVEY_TOKEN"} & set(call["environ"]) for call in fake.calls)


def test_the_program_is_never_taken_from_the_project(project: Path, environ: dict[str, str]) -> None:
    inside = FakeKeyring(project)
    (project / "link").symlink_to(inside.bin)
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "secret-tool").symlink_to(inside.bin / "secret-tool")
    for path in (str(inside.bin), str(project / "link"), ".", "keyring-bin", "", str(outside)):
        environ["PATH"] = path
        assert find_keyring(environ, project) is None, path
    good = FakeKeyring(project.parent / "good")
    environ["PATH"] = os.pathsep.join([str(inside.bin), str(good.bin)])
    kept, _ = keep(environ, project, wanted(), KEY)
    assert kept.kept == "keyring" and good.keys == [KEY] and inside.keys == []


@pytest.mark.skipif(sys.platform == "darwin", reason="there the keychain is found first")
def test_with_a_keyring_the_file_has_the_account_and_not_the_key(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    fake = FakeKeyring(tmp_path)
    environ["PATH"] = str(fake.bin)
    kept, why = keep(environ, project, wanted(), KEY)
    assert (kept.kept, kept.key, why) == ("keyring", "", "") and fake.keys == [KEY]
    assert KEY not in accounts_file(environ).read_text()
    again, _ = keep(environ, project, wanted(), KEY + "2")
    assert again.revision != kept.revision and fake.keys == [KEY + "2"]
    in_file, _ = keep(environ, project, wanted(), KEY, in_file=True)
    assert (in_file.kept, in_file.key) == ("file", KEY) and fake.keys == [], "the old one would only lie there"
    keep(environ, project, wanted(), KEY)
    (account,) = read_accounts(environ).accounts
    assert forget(environ, project, account).accounts == () and fake.keys == []


def test_without_a_keyring_the_key_is_in_the_file(project: Path, environ: dict[str, str]) -> None:
    kept, why = keep(environ, project, wanted(), KEY)
    assert (kept.kept, kept.key, why) == ("file", KEY, "")
    assert forget(environ, project, kept).accounts == ()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print('no D-Bus here', file=sys.stderr); sys.exit(1)", "no D-Bus here"),
        ("pass", "did not keep it"),
        ("import time; time.sleep(60)", "did not end within"),
        ("print('x' * 200_000)", "wrote more than"),
    ],
)
def test_a_keyring_that_does_not_work_is_reported_and_the_file_is_used(
    tmp_path: Path, project: Path, environ: dict[str, str], program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_module, "WAIT_S", 0.5 if "sleep" in program else 30.0)
    (tmp_path / "bin").mkdir()
    make_program(tmp_path / "bin" / "secret-tool", program)
    environ["PATH"] = str(tmp_path / "bin")
    kept, why = keep(environ, project, wanted(), KEY)
    assert (kept.kept, kept.key) == ("file", KEY) and said in why and KEY not in why


def test_what_the_keyring_keeps_cannot_be_forgotten_without_it(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    fake = FakeKeyring(tmp_path)
    kept, _ = keep(environ | {"PATH": str(fake.bin)}, project, wanted(), KEY)
    with pytest.raises(CredentialsError, match="no program that could remove it"):
        forget(environ, project, kept)
    assert read_accounts(environ).accounts == (kept,)


def test_an_account_becomes_the_default(project: Path, environ: dict[str, str]) -> None:
    keep(environ, project, wanted("a"), KEY)
    keep(environ, project, wanted("b"), KEY)
    assert make_default(environ, "openai", "b") and not make_default(environ, "openai", "c")
    found = read_accounts(environ).find("openai")
    assert found is not None and found.name == "b"
    again, _ = keep(environ, project, wanted("b"), KEY + "2")
    assert again.is_default, "another login does not take that away"


@pytest.mark.parametrize("provider", ["-x", "--label=y", 'a"b', "a b", "ümlaut", ""])
def test_a_name_that_a_program_could_misread_is_refused(project: Path, environ: dict[str, str], provider: str) -> None:
    account = Account(provider=provider, name="a", origin="https://x", kept="file", revision="")
    with pytest.raises(CredentialsError, match="no keyring takes the name"):
        keep(environ, project, account, KEY)
