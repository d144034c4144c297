"""Where the embedded model's weights are looked for, and what counts as installed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from covey.config import local_model
from covey.config.defaults import resolve
from covey.config.local_model import SMOLLM2, Weights, find_weights
from covey.config.schema import Config

SMALL = Weights(
    name="Small",
    file_name="small.gguf",
    size=5,
    sha256="",
    licence="MIT",
    package="covey-test-weights",
    version="1.0",
    wheel_size=5,
    wheel_sha256="",
    origin="made here",
)


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def put(path: Path, content: bytes = b"12345") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As pip would have done it."""
    file = put(directory / "covey_test_weights" / "small.gguf")
    record = "covey_test_weights/__init__.py,,\ncovey_test_weights/small.gguf,,\n"
    put(directory / "covey_test_weights" / "__init__.py", b"raise SystemExit('weights are data')")
    put(directory / "covey_test_weights-1.0.dist-info" / "RECORD", record.encode())
    put(directory / "covey_test_weights-1.0.dist-info" / "METADATA", b"Name: covey-test-weights\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(directory)
    return file


def test_there_are_none(tmp_path: Path) -> None:
    assert find_weights(SMALL) is None


def test_those_of_the_data_directory_are_found(tmp_path: Path) -> None:
    assert find_weights(SMALL) is None
    file = put(tmp_path / "data" / "covey" / "models" / "small.gguf")
    assert find_weights(SMALL) == file


def test_those_in_an_installed_wheel_are_found_and_nothing_of_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = install(tmp_path / "site", monkeypatch)
    assert find_weights(SMALL) == file
    assert "covey_test_weights" not in sys.modules


def test_a_file_of_another_size_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "data" / "covey" / "models" / "small.gguf", b"123")
    assert find_weights(SMALL) is None
    file = install(tmp_path / "site", monkeypatch)
    assert find_weights(SMALL) == file, "a half file in one place does not hide a whole one in the other"


def test_both_parts_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "has_runtime", lambda: False)
    monkeypatch.setattr(local_model, "find_weights", lambda: Path("x"))
    assert local_model.state() == "no_runtime"
    monkeypatch.setattr(local_model, "has_runtime", lambda: True)
    assert local_model.is_installed()
    monkeypatch.setattr(local_model, "find_weights", lambda: None)
    assert local_model.state() == "no_weights"


def test_its_provider_is_usable_as_it_is() -> None:
    chosen = resolve(Config(providers={local_model.PROVIDER_ID: local_model.PROVIDER}), "large")
    assert chosen
    assert chosen.provider.type == "embedded"
    assert chosen.model.context_window == local_model.CONTEXT_WINDOW


def test_the_pins_agree() -> None:
    root = Path(__file__).parents[2]
    lock = (root / "requirements-local.lock").read_text()
    assert f"{SMOLLM2.package}=={SMOLLM2.version} " in lock
    assert f"--hash=sha256:{SMOLLM2.wheel_sha256}" in lock
    (extra,) = [line for line in (root / "pyproject.toml").read_text().splitlines() if line.startswith("local = ")]
    pin = extra.partition('"')[2].partition('"')[0]
    assert pin in (root / "requirements-local.in").read_text()
    assert f"{pin} " in lock


def test_looking_costs_nobody_anything() -> None:
    began = time.thread_time()  # not the time on the wall: others may be busy
    local_model.state()
    assert time.thread_time() - began < 0.5
