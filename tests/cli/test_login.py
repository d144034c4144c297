"""`covey login` and `covey logout`: real commands, a provider on this machine, a keyring that really keeps things."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from covey.cli import exits
from tests.cli.conftest import Home, finish
from tests.cli.terminal import Terminal
from tests.support.fake_keyring import FakeKeyring, make_program
from tests.support.fake_provider import FakeProvider

GOOD, OTHER = "sk-good-canary-1234567890", "sk-good-other-1234567890"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture
def at(own_home: Home, provider: FakeProvider) -> Home:
    """A user whose own file names the provider, and who has no keyring."""
    own_home.config.write_text(
        '[models]\nlarge = "birds/a-model"\n'
        f'[providers.birds]\ntype = "openai-compatible"\nbase_url = "{provider.url}/v1"\nmax_attempts = 1\n'
        f'[providers.openrouter]\ntype = "openai-compatible"\nbase_url = "{provider.url}/api/v1"\n'
    )
    return own_home


def credentials(home: Home) -> Path:
    return home.data_dir / "credentials.json"


def listed(home: Home) -> list[dict[str, Any]]:
    done = home.covey("login", "--list", "--json")
    assert done.returncode == 0
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_key_from_a_pipe_is_checked_kept_listed_and_forgotten(at: Home, provider: FakeProvider) -> None:
    done = at.covey("login", "birds", stdin=GOOD + "\n")
    assert done.returncode == 0, done.stderr
    kept = "birds: the account default is kept in credentials.json in your data directory."
    assert done.stdout == f"The key is good. {kept}\n"
    assert provider.asked == [("GET /v1/models", GOOD)]
    assert stat.S_IMODE(credentials(at).stat().st_mode) == 0o600
    shown = at.covey("login", "--list")
    assert shown.stdout == f"* birds default  in credentials.json in your data directory, for {provider.url}\n"
    assert GOOD not in shown.stdout + json.dumps(listed(at))
    gone = at.covey("logout")
    assert gone.returncode == 0 and gone.stdout == "Forgot the key of birds, account default.\n"
    assert not credentials(at).exists() and listed(at) == []
    assert not at.socket.exists(), "no server was started for this"
    assert os.listdir(at.project) == []


def test_a_key_that_the_provider_refuses_is_not_kept(at: Home) -> None:
    done = at.covey("login", "birds", stdin="sk-bad-canary-1234567890")
    assert done.returncode == exits.FAILED
    assert "refused the API key (401)" in done.stderr and "Nothing was kept" in done.stderr
    assert "sk-bad" not in done.stderr + done.stdout, "the provider quotes it, and we do not"
    assert not credentials(at).exists()


def test_a_key_that_cannot_be_checked_is_kept_only_if_somebody_says_so(at: Home, provider: FakeProvider) -> None:
    provider.status = 503
    done = at.covey("login", "birds", stdin=GOOD)
    assert done.returncode == exits.FAILED and "could not be checked" in done.stderr and "--no-check" in done.stderr
    assert listed(at) == []
    done = at.covey("login", "birds", "--no-check", stdin=GOOD)
    assert done.returncode == 0 and [entry["account"] for entry in listed(at)] == ["default"]
    assert len(provider.asked) == 1


def test_with_a_keyring_the_key_is_there_and_nowhere_else(at: Home, tmp_path: Path) -> None:
    fake = FakeKeyring(tmp_path)
    at.env["PATH"] = f"{fake.bin}:{at.env['PATH']}"
    done = at.covey("login", "birds", stdin=GOOD)
    assert "kept in the system's keyring" in done.stdout, done.stderr
    assert fake.keys == [GOOD] and GOOD not in credentials(at).read_text()
    assert listed(at)[0]["kept"] == "keyring"
    models = at.covey("models")
    assert "The key of birds: covey login, account default, in the system's keyring" in models.stdout
    assert GOOD not in models.stdout
    at.covey("logout", "birds")
    assert fake.keys == [] and listed(at) == []


def test_a_keyring_in_the_project_is_not_used(at: Home) -> None:
    fake = FakeKeyring(at.project)
    at.env["PATH"] = f"{fake.bin}:.:{at.env['PATH']}"
    at.covey("login", "birds", stdin=GOOD)
    assert fake.calls == [] and listed(at)[0]["kept"] == "file"


def test_several_accounts_and_the_one_that_is_meant(at: Home, provider: FakeProvider) -> None:
    at.covey("login", "birds", "--account", "home", stdin=GOOD)
    second = at.covey("login", "birds", "--account", "work", stdin=OTHER)
    assert 'where [providers.birds] says account = "work"' in second.stdout
    assert [(e["account"], e["is_default"]) for e in listed(at)] == [("home", True), ("work", False)]
    at.covey("run", "-q", "x")
    assert provider.asked[-1] == ("POST /v1/chat/completions", GOOD)
    at.config.write_text(at.config.read_text().replace("max_attempts", 'account = "work"\nmax_attempts', 1))
    at.covey("stop")
    at.covey("run", "-q", "x")
    assert provider.asked[-1] == ("POST /v1/chat/completions", OTHER)
    which = at.covey("logout", "birds")
    assert which.returncode == exits.USAGE and "birds --account home, birds --account work" in which.stderr
    gone = at.covey("logout", "birds", "--account", "home")
    assert "birds: the account work is the default now." in gone.stdout
    assert at.covey("logout", "--all").returncode == 0 and listed(at) == []
    assert at.covey("logout", "--all").returncode == exits.FAILED


@pytest.mark.parametrize(("typed", "left"), [("2", ["home"]), ("3", ["home", "work"]), ("", ["home", "work"])])
def test_of_several_keys_the_one_that_is_chosen_at_the_terminal_is_forgotten(
    at: Home, typed: str, left: list[str]
) -> None:
    for account, key in (("home", GOOD), ("work", OTHER)):
        at.covey("login", "birds", "--account", account, stdin=key)
    terminal = Terminal(at, *at.command("logout"))
    try:
        terminal.wait_for("Which key is to be forgotten? [1-2, or Enter for none] ")
        assert "  1. birds, account home\n  2. birds, account work\n" in terminal.shown
        terminal.type(f"{typed}\n")
        code = terminal.finish()
    finally:
        terminal.close()
    assert [entry["account"] for entry in listed(at)] == left
    said = "Forgot the key of birds, account work." if left == ["home"] else "covey: nothing was forgotten."
    assert said in terminal.shown and code == (exits.OK if left == ["home"] else exits.FAILED)


def test_a_server_that_runs_takes_a_login_and_a_logout_up_at_once(at: Home, provider: FakeProvider) -> None:
    at.covey("run", "-q", "x")
    assert provider.asked[-1][1] == ""
    at.covey("login", "birds", stdin=GOOD)
    at.covey("run", "-q", "x")
    assert provider.asked[-1][1] == GOOD
    at.covey("logout", "birds")
    at.covey("run", "-q", "x")
    assert provider.asked[-1][1] == ""


def test_a_login_is_enough_for_a_known_provider(own_home: Home) -> None:
    own_home.config.unlink()
    assert own_home.covey("login", "anthropic", "--no-check", stdin=GOOD).returncode == 0
    models = json.loads(own_home.covey("models", "--json").stdout)
    assert models["large"].startswith("anthropic/")
    assert models["keys"] == {"anthropic": "covey login, account default, in credentials.json in your data directory"}


def test_a_login_is_known_beside_a_provider_of_a_file_and_leaves_the_default_alone(at: Home) -> None:
    assert at.covey("login", "anthropic", "--no-check", stdin=GOOD).returncode == 0
    models = json.loads(at.covey("models", "--json").stdout)
    assert {model["provider"] for model in models["models"]} == {"birds", "openrouter", "anthropic"}
    assert models["large"] == "birds/a-model" and models["keys"].keys() == {"anthropic"}
    sizes = {model["id"]: model["context_window"] for model in models["models"] if model["provider"] == "anthropic"}
    assert all(sizes.values()), "the catalogue knows them"
    assert "The key of anthropic: covey login" in at.covey("doctor").stdout
    assert at.covey("config", "set", "model", "anthropic/claude-opus-5-5").returncode == 0
    assert at.covey("config", "check").returncode == 0
    at.covey("logout", "anthropic")
    assert "there is no key for anthropic (`covey login anthropic`" in at.covey("run", "-q", "x").stderr


def test_a_key_in_the_environment_is_sent_for_a_model_beside_one_of_a_file(at: Home, provider: FakeProvider) -> None:
    at.env |= {"OPENAI_API_KEY": OTHER, "OPENAI_BASE_URL": f"{provider.url}/v1"}
    at.covey("run", "-q", "-m", "openai/gpt", "x")
    assert provider.asked[-1][1] == OTHER
    at.covey("run", "-q", "x")
    assert provider.asked[-1][1] == ""


def test_a_command_of_the_users_own_file_gives_the_key(at: Home, provider: FakeProvider, tmp_path: Path) -> None:
    make_program(tmp_path / "give-key", f"print({GOOD!r})")
    text = at.config.read_text()
    at.config.write_text(
        text.replace("max_attempts", f"api_key_command = {json.dumps([str(tmp_path / 'give-key')])}\nmax_attempts", 1)
    )
    at.covey("run", "-q", "x")
    assert provider.asked[-1] == ("POST /v1/chat/completions", GOOD)
    assert "The key of birds: api_key_command in the configuration" in at.covey("models").stdout
    make_program(tmp_path / "give-key", "import sys; sys.exit('the vault is sealed')")
    at.covey("stop")
    failed = at.covey("run", "-q", "x")
    assert failed.returncode == exits.FAILED
    assert "api_key_command" in failed.stderr and "ended with code 1: the vault is sealed" in failed.stderr
    make_program(tmp_path / "give-key", f"print({OTHER!r})")
    at.covey("run", "-q", "x")
    assert provider.asked[-1][1] == OTHER, "a failure is not remembered"


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_cannot_name_a_command(at: Home, trusted: bool, tmp_path: Path) -> None:
    make_program(tmp_path / "evil", f"open({str(tmp_path / 'ran')!r}, 'w')")
    (at.project / "covey.toml").write_text(
        f'[providers.birds]\ntype = "openai-compatible"\napi_key_command = ["{tmp_path / "evil"}"]\n'
    )
    if trusted:
        at.covey("trust")
    done = at.covey("run", "-q", "x")
    assert done.returncode != 0 and "only your own config.toml can name a command" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_doctor_says_where_keys_come_from_and_fetches_none(at: Home, tmp_path: Path) -> None:
    make_program(tmp_path / "give-key", f"open({str(tmp_path / 'ran')!r}, 'w')")
    at.covey("login", "birds", stdin=GOOD)
    at.config.write_text(
        at.config.read_text() + f'[providers.c]\ntype = "openai"\napi_key_command = "{tmp_path / "give-key"}"\n'
    )
    at.covey("status")
    at.covey("run", "-q", "x")
    (tmp_path / "ran").unlink()
    said = at.covey("doctor")
    assert "The key of birds: covey login, account default, in credentials.json in your data directory" in said.stdout
    assert "The key of c: api_key_command in the configuration" in said.stdout
    assert json.loads(at.covey("doctor", "--json").stdout)["keys"].keys() == {"birds", "c"}
    assert GOOD not in said.stdout and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Name a provider: birds, openrouter, openai"),
        (["nobody"], "there is no provider 'nobody'"),
        (["birds", "--browser"], "only openrouter can be logged in to by --browser"),
        (["birds", "--account", "a b"], "is not a name of letters"),
    ],
)
def test_wrong_usage_is_reported(at: Home, args: list[str], said: str) -> None:
    done = at.covey("login", *args, stdin=GOOD)
    assert done.returncode == exits.USAGE and said in done.stderr and listed(at) == []


@pytest.mark.parametrize("given", ["", "two words", "ümlaut"])
def test_what_is_no_key_is_refused(at: Home, given: str, provider: FakeProvider) -> None:
    done = at.covey("login", "birds", stdin=given)
    assert done.returncode == exits.FAILED and provider.asked == [] and listed(at) == []


def test_at_a_terminal_the_key_is_not_shown_and_ctrl_c_changes_nothing(at: Home) -> None:
    terminal = Terminal(at, *at.command("login", "birds"))
    try:
        terminal.wait_for("API key of birds (not shown): ")
        terminal.type(GOOD + "\n")
        assert terminal.finish() == 0
        assert GOOD not in terminal.shown and "The key is good." in terminal.shown
    finally:
        terminal.close()
    before = credentials(at).read_bytes()
    terminal = Terminal(at, *at.command("login", "birds", "--account", "work"))
    try:
        terminal.wait_for("(not shown): ")
        terminal.type("half\x03")
        assert terminal.finish() == exits.STOPPED
    finally:
        terminal.close()
    assert credentials(at).read_bytes() == before


def test_an_account_becomes_the_default_at_a_terminal_without_its_key(at: Home) -> None:
    at.covey("login", "birds", stdin=GOOD)
    at.covey("login", "birds", "--account", "work", stdin=OTHER)
    terminal = Terminal(at, *at.command("login", "birds", "--account", "work", "--default"))
    try:
        assert terminal.finish() == 0
    finally:
        terminal.close()
    assert [(e["account"], e["is_default"]) for e in listed(at)] == [("default", False), ("work", True)]


# ── in a browser ──


def page_of(process: subprocess.Popen[bytes]) -> tuple[str, dict[str, str]]:
    """The address that the user is to open, as the command says it, and its query."""
    assert process.stderr
    process.stderr.readline()
    address = process.stderr.readline().decode().strip()
    return address, {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def visit(address: str) -> str:
    with urllib.request.urlopen(address.replace("//localhost:", "//127.0.0.1:"), timeout=30) as answer:
        return str(answer.read().decode())


def test_a_login_in_the_browser_brings_a_key(at: Home, provider: FakeProvider) -> None:
    process = at.spawn("login", "openrouter", "--browser")
    address, query = page_of(process)
    assert address.startswith(f"{provider.url}/auth?") and query["code_challenge_method"] == "S256"
    provider.challenges["the-code"] = query["code_challenge"]
    callback = urlsplit(query["callback_url"])
    assert callback.hostname == "localhost"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        visit(f"http://127.0.0.1:{callback.port}/callback/guess?code=evil")
    assert "You can close this page" in visit(query["callback_url"] + "?code=the-code")
    code, out, err = finish(process)
    assert code == 0, err
    assert "openrouter: the account default is kept in credentials.json in your data directory." in out
    assert provider.asked == [("POST /api/v1/auth/keys", ""), ("GET /api/v1/key", "sk-good-of-openrouter")]
    assert [entry["provider"] for entry in listed(at)] == ["openrouter"]


def test_a_login_that_nobody_agrees_to_keeps_nothing(at: Home, provider: FakeProvider) -> None:
    process = at.spawn("login", "openrouter", "--browser")
    _, query = page_of(process)
    assert "Nothing was agreed to" in visit(query["callback_url"] + "?error=access_denied")
    code, _, err = finish(process)
    assert code == exits.FAILED and "was not agreed to" in err and listed(at) == [] and provider.asked == []


def test_a_code_of_somebody_else_gives_no_key_and_is_not_shown(at: Home, provider: FakeProvider) -> None:
    process = at.spawn("login", "openrouter", "--browser")
    _, query = page_of(process)
    provider.challenges["stolen-code"] = "of-another-login"
    visit(query["callback_url"] + "?code=stolen-code")
    code, out, err = finish(process)
    assert code == exits.FAILED and "gave no key (403)" in err and listed(at) == []
    assert "stolen-code" not in out + err


def test_ctrl_c_ends_a_login_in_the_browser(at: Home) -> None:
    process = at.spawn("login", "openrouter", "--browser")
    page_of(process)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == exits.STOPPED
    assert listed(at) == []
