"""The accounts as a value, and what can be a key."""

from __future__ import annotations

import pytest

from covey.credentials.accounts import Account, Accounts, CredentialsError, checked_key


def account(provider: str, name: str, *, is_default: bool = False, key: str = "k") -> Account:
    return Account(
        provider=provider, name=name, origin="https://x", kept="file", revision="1", is_default=is_default, key=key
    )


def defaults(accounts: Accounts) -> list[str]:
    return [f"{a.provider}/{a.name}" for a in accounts.accounts if a.is_default]


def test_the_first_account_of_a_provider_is_its_default_until_another_one_is_made_it() -> None:
    accounts = Accounts().put(account("openai", "work")).put(account("openai", "home")).put(account("groq", "default"))
    assert defaults(accounts) == ["groq/default", "openai/work"]
    accounts = accounts.put(account("openai", "home", is_default=True))
    assert defaults(accounts) == ["groq/default", "openai/home"]
    assert [a.name for a in accounts.of("openai")] == ["home", "work"]
    found = accounts.find("openai")
    assert found is not None and found.name == "home"
    assert accounts.find("openai", "nobody") is None and accounts.find("google") is None


def test_when_the_default_is_removed_another_account_takes_its_place() -> None:
    accounts = Accounts().put(account("openai", "a")).put(account("openai", "b")).put(account("openai", "c"))
    first = accounts.find("openai")
    assert first is not None
    accounts = accounts.without(first)
    assert [a.name for a in accounts.accounts] == ["b", "c"] and defaults(accounts) == ["openai/b"]
    for left in accounts.accounts:
        accounts = accounts.without(left)
    assert [a.name for a in accounts.accounts if a.name == "b"] == []


def test_a_login_again_replaces_the_key_and_nothing_else() -> None:
    accounts = Accounts().put(account("openai", "a", key="old")).put(account("openai", "a", key="new"))
    assert [(a.key, a.is_default) for a in accounts.accounts] == [("new", True)]


def test_no_key_is_shown_by_a_repr() -> None:
    assert "s3cret" not in repr(Accounts().put(account("openai", "a", key="s3cret")))


@pytest.mark.parametrize("text", ["", " \n", "two words", "two\nlines", "ümlaut", "x" * 8193, "tab\tin", "nul\0"])
def test_what_is_no_key_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(CredentialsError) as refused:
        checked_key(text)
    assert len(str(refused.value)) < 100 and (len(text.strip()) < 4 or text not in str(refused.value))


def test_blanks_around_a_key_do_not_count() -> None:
    assert checked_key(" sk-1\r\n") == "sk-1"
