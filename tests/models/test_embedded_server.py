"""What the embedded model's process does before it serves, without a model."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from covey.models.embedded_child import command
from covey.models.embedded_server import MAX_THREADS, CannotLoad, Order, check_digest, configure, threads


def order(file: Path | str, **fields: Any) -> Order:
    values: dict[str, Any] = {"context_window": 4096, "api_key": "the-key", "parent": 1}
    return Order(model_file=str(file), **values | fields)


def test_weights_must_be_the_very_ones(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(b"weights")
    check_digest(order(file, sha256=hashlib.sha256(b"weights").hexdigest()))
    with pytest.raises(CannotLoad, match="is damaged: delete it, and get it again with `covey models get`"):
        check_digest(order(file, sha256=hashlib.sha256(b"others").hexdigest()))
    check_digest(order(file))  # the user's own is believed


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotLoad, match=r"nothing\.gguf cannot be read: No such file"):
        check_digest(order(tmp_path / "nothing.gguf"))


def parts() -> Any:
    return SimpleNamespace(
        model=SimpleNamespace(),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
        sampling=SimpleNamespace(),
    )


def test_it_serves_one_client_on_this_machine_and_nothing_else() -> None:
    params = parts()
    configure(params, order("/m.gguf"))
    assert (params.hostnames, params.port, params.api_keys) == (["127.0.0.1"], 0, ["the-key"])
    assert (params.ui, params.cors_origins, params.offline, params.n_parallel) == (False, "", True, 1)
    assert (params.model.path, params.n_ctx) == ("/m.gguf", 4096)
    assert not vars(params.sampling), "how the user's own model draws is its own business"


def test_a_tiny_model_is_kept_on_a_short_leash() -> None:
    params = parts()
    configure(params, order("/m.gguf", is_tiny=True))
    assert params.sampling.temp < 0.5


@pytest.mark.parametrize(("cores", "used"), [(1, 1), (2, 1), (4, 3), (64, MAX_THREADS)])
def test_a_core_is_left_to_everybody_else(cores: int, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert threads() == used


def test_a_process_whose_parent_is_gone_leaves_at_once(tmp_path: Path) -> None:
    asked = msgspec.json.encode(order(tmp_path / "m.gguf", parent=1)) + b"\n"
    done = subprocess.run(command(), input=asked, capture_output=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, b"")


def test_nothing_of_the_directory_that_is_worked_on_is_imported() -> None:
    assert command()[:2] == [sys.executable, "-P"]
