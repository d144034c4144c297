"""The file with the accounts: private, changed in one step, and never through a link."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from covey.credentials.accounts import CredentialsError
from covey.credentials.file import accounts_file, change_accounts, read_accounts
from tests.credentials.test_accounts import account


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "share")}


def test_what_was_put_in_is_there_for_this_user_alone(environ: dict[str, str]) -> None:
    assert read_accounts(environ).accounts == ()
    assert not accounts_file(environ).parent.exists(), "looking makes nothing"
    change_accounts(environ, lambda accounts: accounts.put(account("openai", "work", key="sk-1")))
    (found,) = read_accounts(environ).accounts
    assert (found.provider, found.name, found.key, found.is_default) == ("openai", "work", "sk-1", True)
    file = accounts_file(environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    change_accounts(environ, lambda accounts: accounts.without(found))
    assert not file.exists(), "the last one leaves no file"


def test_a_change_keeps_the_file_private_whatever_it_was(environ: dict[str, str]) -> None:
    change_accounts(environ, lambda accounts: accounts.put(account("openai", "a")))
    before = accounts_file(environ).stat().st_ino
    change_accounts(environ, lambda accounts: accounts.put(account("openai", "b")))
    after = accounts_file(environ).stat()
    assert after.st_ino != before and stat.S_IMODE(after.st_mode) == 0o600
    assert sorted(os.listdir(accounts_file(environ).parent)) == [".credentials.json.lock", "credentials.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622])
def test_a_file_that_others_can_read_or_change_is_not_used(environ: dict[str, str], mode: int) -> None:
    change_accounts(environ, lambda accounts: accounts.put(account("openai", "a", key="sk-1")))
    accounts_file(environ).chmod(mode)
    for use in (read_accounts, lambda environ: change_accounts(environ, lambda accounts: accounts)):
        with pytest.raises(CredentialsError, match="chmod 600"):
            use(environ)


def test_a_link_is_neither_read_nor_written_through(environ: dict[str, str], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    elsewhere.chmod(0o600)
    file = accounts_file(environ)
    file.parent.mkdir(parents=True, mode=0o700)
    file.symlink_to(elsewhere)
    with pytest.raises(CredentialsError, match="links are not followed"):
        read_accounts(environ)
    with pytest.raises(CredentialsError):
        change_accounts(environ, lambda accounts: accounts.put(account("openai", "a")))
    assert elsewhere.read_text() == "mine"


def test_a_lock_that_is_a_link_is_refused(environ: dict[str, str], tmp_path: Path) -> None:
    file = accounts_file(environ)
    file.parent.mkdir(parents=True, mode=0o700)
    (file.parent / ".credentials.json.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(CredentialsError, match="cannot be changed"):
        change_accounts(environ, lambda accounts: accounts.put(account("openai", "a")))
    assert not (tmp_path / "victim").exists()


def test_no_key_is_put_into_a_directory_that_others_can_write_to(environ: dict[str, str]) -> None:
    directory = accounts_file(environ).parent
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    with pytest.raises(CredentialsError, match="can be changed by others"):
        change_accounts(environ, lambda accounts: accounts.put(account("openai", "a")))
    assert os.listdir(directory) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"accounts": [{"provider": "a/b"}]}', b"x" * (1024 * 1024 + 1)]
)
def test_a_damaged_file_is_reported_in_a_sentence(environ: dict[str, str], content: bytes) -> None:
    file = accounts_file(environ)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(CredentialsError, match=r"credentials\.json: is "):
        read_accounts(environ)


def test_changes_at_the_same_time_are_all_kept(environ: dict[str, str]) -> None:
    def put(number: int) -> None:
        change_accounts(environ, lambda accounts: accounts.put(account("openai", f"a{number}")))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a.name for a in read_accounts(environ).accounts] == [f"a{number}" for number in range(8)]
