"""`covey run --debug`: what a model was sent and what came back can be looked at, without keys and with bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from covey.engine.turns import model_trace
from covey.engine.turns.model_trace import ModelTrace
from tests.cli.conftest import Home
from tests.support.wire_server import Serving, WireServer

KEY = "sk-a-key-that-nobody-may-see"
SAID = {"choices": [{"index": 0, "delta": {"content": "Good morning."}, "finish_reason": "stop"}]}
ANSWER = f"data: {json.dumps(SAID)}\n\ndata: [DONE]\n\n".encode()
REFUSED = json.dumps({"error": {"message": f"too many requests for {KEY}"}}).encode()
CONFIG = """
[models]
large = "wire/big"
[providers.wire]
type = "openai-compatible"
base_url = "{url}/v1"
api_key = "{key}"
models = [{{ id = "big" }}]
"""


def test_request_and_answer_are_in_a_file_of_the_user_without_the_key(own_home: Home) -> None:
    with WireServer() as server:
        own_home.config.write_text(CONFIG.format(url=server.url, key=KEY))
        server.on("/chat/completions", Serving(REFUSED, 429, {"retry-after": "0"}), Serving(ANSWER))
        done = own_home.covey("run", "--debug", "--run-id", "looked-at", "say good morning to Ann")
    assert done.stdout == "Good morning.\n", done.stderr
    file = own_home.data_dir / "debug" / "looked-at.txt"
    assert f"covey: what was sent to the model and came back is in {file}\n" in done.stderr
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    text = file.read_text()
    kinds = [line.split(" ", 2)[2] for line in text.splitlines() if line.startswith("=== ")]
    request = "request to wire: POST /chat/completions"
    assert kinds == [request, "answer 429", request, "answer"]
    assert "say good morning to Ann" in text and '"Good morning."' in text
    assert KEY not in text and "too many requests for ***" in text


def test_without_it_nothing_is_kept(home: Home) -> None:
    home.covey("run", "--run-id", "not-looked-at", "hello")
    assert not (home.data_dir / "debug" / "not-looked-at.txt").exists()
    assert "nothing was sent to a model over HTTP" in home.covey("run", "--debug", "hello").stderr


def test_files_have_a_bound_and_so_has_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_trace, "MAX_BYTES", 1000)
    monkeypatch.setattr(model_trace, "KEPT", 3)
    for number in range(5):
        trace = ModelTrace(tmp_path / "debug" / f"r{number}.txt", lambda: 1.0)
        for _ in range(50):
            trace("request", "x" * 90)
        trace.close()
    kept = sorted((tmp_path / "debug").iterdir())
    assert len(kept) == 3 and kept[-1].name == "r4.txt"
    assert all(file.stat().st_size <= 1100 and "the rest is left out" in file.read_text() for file in kept)


def test_a_disk_that_refuses_it_stops_nothing(tmp_path: Path) -> None:
    trace = ModelTrace(tmp_path / "missing" / "deeper" / "r.txt", lambda: 1.0)
    trace("request", "x")
    trace("answer", "y")
    trace.close()
    assert list(tmp_path.iterdir()) == []
