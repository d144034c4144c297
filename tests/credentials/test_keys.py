"""Where keys come from, in which order, and that programs are run once and never from the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.config.defaults import origin
from covey.config.schema import Config, ProviderSettings
from covey.credentials import command as command_module
from covey.credentials.accounts import Account, Accounts
from covey.credentials.keyring import SecretTool
from covey.credentials.keys import Keys, Surrounding
from covey.credentials.sources import describe, source_of
from tests.support.fake_keyring import FakeKeyring, make_program

OPENAI = ProviderSettings(type="openai")


def account(**fields: Any) -> Account:
    known = {"provider": "openai", "name": "work", "origin": origin(OPENAI), "kept": "file", "revision": "1"}
    return Account(**{**known, "key": "of-login", **fields})


LOGIN = Accounts().put(account())
NOBODY = Accounts()
ENVIRON = {"OPENAI_API_KEY": "of-environment"}


@pytest.mark.parametrize(
    ("settings", "accounts", "environ", "said"),
    [
        ({"api_key": "k", "api_key_command": ("c",), "account": "work"}, LOGIN, ENVIRON, "api_key in the"),
        ({"api_key": " ", "api_key_command": ("c",), "account": "work"}, LOGIN, ENVIRON, "api_key_command in the"),
        ({"account": "work"}, LOGIN, ENVIRON, "covey login, account work, in credentials.json in your data directory"),
        ({}, LOGIN, ENVIRON, "covey login, account work, in credentials.json in your data directory"),
        ({}, Accounts(), ENVIRON, "$OPENAI_API_KEY"),
        ({}, Accounts(), {}, ""),
        ({"base_url": "http://127.0.0.1:1"}, LOGIN, ENVIRON, ""),
        ({"type": "scripted", "api_key": "k"}, LOGIN, ENVIRON, ""),
    ],
)
def test_the_order_in_which_a_key_is_looked_for(
    settings: dict[str, Any], accounts: Accounts, environ: dict[str, str], said: str
) -> None:
    provider = ProviderSettings(**{"type": "openai", **settings})
    assert describe(source_of("openai", provider, accounts, environ)).startswith(said)
    assert bool(describe(source_of("openai", provider, accounts, environ))) == bool(said)


def around(tmp_path: Path, **environ: str) -> Surrounding:
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "bin").mkdir(exist_ok=True)
    return Surrounding(tmp_path / "project", {"PATH": str(tmp_path / "bin"), "HOME": "/h", "X_API_KEY": "1"}, environ)


async def filled(keys: Keys, where: Surrounding, accounts: Accounts = NOBODY, **settings: Any) -> tuple[str, str, str]:
    config = Config(providers={"openai": ProviderSettings(**{"type": "openai", **settings})})
    config = await keys.fill(config, accounts, where)
    state = config.keys["openai"]
    return config.providers["openai"].api_key, state.source, state.problem


@pytest.mark.anyio
async def test_each_source_gives_its_key(tmp_path: Path) -> None:
    where = around(tmp_path, OPENAI_API_KEY="of-environment")
    assert await filled(Keys(), where, LOGIN, api_key="mine") == ("mine", "api_key in the configuration", "")
    assert (await filled(Keys(), where, LOGIN))[0] == "of-login"
    assert (await filled(Keys(), where))[:2] == ("of-environment", "$OPENAI_API_KEY")
    assert await filled(Keys(), around(tmp_path)) == ("", "", "")


@pytest.mark.anyio
@pytest.mark.parametrize("command", [("give", "a b", "$X"), "give 'a b' '$X'"])
async def test_a_command_is_run_once_without_a_shell(tmp_path: Path, command: Any) -> None:
    where, log = around(tmp_path), tmp_path / "log"
    make_program(
        tmp_path / "bin" / "give",
        f"import os, sys\nopen({str(log)!r}, 'a').write(repr((sys.argv[1:], os.getcwd())) + '\\n')\nprint('sk-1')",
    )
    keys = Keys()
    for _ in range(3):
        assert await filled(keys, where, LOGIN, api_key_command=command) == (
            "sk-1",
            "api_key_command in the configuration",
            "",
        )
    assert log.read_text() == "(['a b', '$X'], '/')\n"
    keys.forget()
    await filled(keys, where, api_key_command=command)
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.anyio
async def test_a_command_has_no_keys_of_others_in_its_environment(tmp_path: Path) -> None:
    where = around(tmp_path)
    where = Surrounding(where.project, {**where.own, "ANTHROPIC_API_KEY": "a", "COVEY_TOKEN": "t"}, {})
    make_program(tmp_path / "bin" / "give", "import os\nprint('/'.join(sorted(os.environ)))")
    key, _, _ = await filled(Keys(), where, api_key_command=("give",))
    names = set(key.split("/"))
    assert {"PATH", "HOME", "X_API_KEY"} <= names and not {"ANTHROPIC_API_KEY", "COVEY_TOKEN"} & names


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print('gpg: sealed\\nmore', file=sys.stderr); sys.exit(2)", "ended with code 2: gpg: sealed"),
        ("print()", "did not print a key: there is no key"),
        ("print('a\\nb')", "did not print a key: a key is one word"),
        ("print('x' * 100_000)", "wrote more than"),
        ("import time; time.sleep(60)", "did not end within"),
        ("import os; os.kill(os.getpid(), 9)", "ended with code -9"),
    ],
)  # fmt: skip
async def test_a_command_that_fails_is_reported_in_a_sentence_and_tried_again(
    tmp_path: Path, program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "WAIT_S", 0.5 if "sleep" in program else 30.0)
    where, keys = around(tmp_path, OPENAI_API_KEY="of-environment"), Keys()
    make_program(tmp_path / "bin" / "give", program)
    key, source, problem = await filled(keys, where, LOGIN, api_key_command=("give",))
    assert (key, source) == ("", "api_key_command in the configuration"), "nothing else takes its place"
    assert problem.startswith("openai: api_key_command (give) ") and said in problem
    make_program(tmp_path / "bin" / "give", "print('sk-2')")
    assert (await filled(keys, where, api_key_command=("give",)))[0] == "sk-2"


@pytest.mark.anyio
async def test_a_command_is_not_taken_from_the_project(tmp_path: Path) -> None:
    where = around(tmp_path)
    make_program(where.project / "give", "print('sk-evil')")
    own = {"PATH": f".:{where.project}:{tmp_path / 'bin'}"}
    where = Surrounding(where.project, own, {})
    for command in (("give",), (str(where.project / "give"),), ("./give",), ("project/give",)):
        key, _, problem = await filled(Keys(), where, api_key_command=command)
        assert key == "" and problem, command
    make_program(tmp_path / "bin" / "give", "print('sk-good')")
    assert (await filled(Keys(), where, api_key_command=("give",)))[0] == "sk-good"


@pytest.mark.anyio
async def test_a_text_that_cannot_be_split_is_reported(tmp_path: Path) -> None:
    _, _, problem = await filled(Keys(), around(tmp_path), api_key_command="give 'a")
    assert problem == "openai: api_key_command cannot be read: No closing quotation"


@pytest.mark.anyio
async def test_the_keyring_is_asked_once_for_each_login(tmp_path: Path) -> None:
    fake = FakeKeyring(tmp_path)
    where = Surrounding(around(tmp_path).project, {"PATH": str(fake.bin)}, {})
    kept = account(kept="keyring", key="", revision="1")
    keys = Keys()
    _, _, problem = await filled(keys, where, Accounts().put(kept))
    assert "is no longer in the system's keyring" in problem and "covey login openai --account work" in problem
    SecretTool(str(fake.bin / "secret-tool"), {}).put("openai", "work", "sk-1")
    before = len(fake.calls)
    for _ in range(3):
        assert await filled(keys, where, Accounts().put(kept)) == (
            "sk-1",
            "covey login, account work, in the system's keyring",
            "",
        )
    assert len(fake.calls) == before + 1
    SecretTool(str(fake.bin / "secret-tool"), {}).put("openai", "work", "sk-2")
    assert (await filled(keys, where, Accounts().put(account(kept="keyring", key="", revision="2"))))[0] == "sk-2"
    nowhere = Surrounding(where.project, {"PATH": "/nowhere"}, {})
    assert "--file" in (await filled(Keys(), nowhere, Accounts().put(kept)))[2]


@pytest.mark.anyio
async def test_a_login_goes_only_to_the_server_that_it_was_given_for(tmp_path: Path) -> None:
    where = around(tmp_path)
    elsewhere = {"base_url": "https://api.openai.com.evil.example/v1"}
    assert await filled(Keys(), where, LOGIN, **elsewhere) == ("", "", "")
    key, _, problem = await filled(Keys(), where, LOGIN, account="work", **elsewhere)
    assert key == "" and "is for https://api.openai.com, not for https://api.openai.com.evil.example" in problem
    _, _, problem = await filled(Keys(), where, LOGIN, account="home")
    assert problem == "openai: there is no account 'home': `covey login openai --account home` makes it"
