"""What is worth a notice, what it says, and how it comes onto a desktop."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import Any

import pytest

from covey.config.schema import NotifySettings
from covey.notify import desktop
from covey.notify.delivery_queue import DeliveryQueue
from covey.notify.notices import ERROR_CHARS, TEXT_CHARS, Notice, NoticeOrigin, notice_of
from covey.notify.notifier import Notifier
from covey.protocol.events import PermissionRequest, created, updated
from covey.protocol.runs import Run, RunOptions

ORIGIN = NoticeOrigin("w", "/home/ann/birds", "Fix\x1b[2J the\n\u202enest")


def run(**fields: Any) -> Run:
    known = {"state": "completed", "mode": "fold", "prompt": "p", "accepted_at": 100.0, "ended_at": 145.0}
    return Run(run_id="r", session_id="s", seq=1, **{**known, **fields})


def noticed(**fields: Any) -> Notice:
    notice = notice_of(updated(run(**fields)), ORIGIN, 1.0)
    assert notice is not None
    return notice


def asked() -> PermissionRequest:
    return PermissionRequest(
        id="q", session_id="s", tool_call_id="t", tool_name="bash", description="rm -rf secret", action="execute",
        params={"command": "rm -rf secret"}, path="/home/ann/birds", run_id="r",
    )  # fmt: skip


def test_the_end_of_a_run_and_what_is_asked_are_worth_a_notice_and_nothing_else() -> None:
    assert notice_of(updated(run(state="active", ended_at=None)), ORIGIN, 1.0) is None
    assert notice_of(updated(run(options=RunOptions(delegate=True))), ORIGIN, 1.0) is None
    ended = noticed(state="failed", error="it\nbroke " + "x" * ERROR_CHARS, text="y" * 2 * TEXT_CHARS)
    assert (ended.event, ended.state, ended.at, ended.duration_s, ended.run_id) == ("ended", "failed", 145.0, 45.0, "r")
    assert ended.error and ended.error.startswith("it broke x") and len(ended.error) == ERROR_CHARS
    assert ended.text and len(ended.text) == TEXT_CHARS
    question = notice_of(created(asked()), ORIGIN, 7.0)
    assert question and (question.event, question.state, question.at) == ("asked", "permission", 7.0)
    assert "secret" not in str(question), "what is asked may hold anything"


def test_what_a_model_wrote_reaches_the_desktop_as_one_argument_without_control_characters(tmp_path: Path) -> None:
    notice = noticed(error="<b>&", text="not shown")
    for name, platform in (("notify-send", "linux"), ("osascript", "darwin")):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        words = desktop.command(notice, str(tmp_path), platform)
        assert words and words[0] == str(program)
        escaped = "<b>&" if platform == "darwin" else "&lt;b&gt;&amp;"
        assert words[-2:] == ["Covey is done", f"Fix [2J the nest\n/home/ann/birds\n{escaped}"]


def test_a_program_of_the_project_is_never_run(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    notice = notice_of(updated(run()), NoticeOrigin("w", str(tmp_path), ""), 1.0)
    assert notice and desktop.command(notice, str(program.parent), "linux") is None


@pytest.mark.parametrize(
    ("settings", "event", "is_shown"),
    [
        ({}, run(), True),
        ({"after_s": 46.0}, run(), False),
        ({"after_s": 46.0}, asked(), True),
        ({"on": ("ended",)}, asked(), False),
        ({"on": ("asked",)}, run(), False),
        ({"desktop": False}, run(), False),
        ({}, run(folded_into="r0"), False),
    ],
)
def test_the_settings_say_what_is_shown(
    settings: dict[str, Any], event: Any, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Notice] = []
    monkeypatch.setattr(DeliveryQueue, "put", lambda queue, notice: shown.append(notice))
    Notifier({}).note(updated(event), NotifySettings(**{"desktop": True, **settings}), ORIGIN)
    assert bool(shown) == is_shown


def test_a_program_gets_no_keys_and_its_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = tmp_path / "said"
    words = ["/bin/sh", "-c", f"env > {said}; exit 3"]
    asyncio.run(desktop.show(words, {"DISPLAY": ":7", "OPENAI_API_KEY": "sk-1"}))
    assert "DISPLAY=:7" in said.read_text() and "sk-1" not in said.read_text()
    assert "/bin/sh ended with code 3" in caplog.text


def test_a_program_that_hangs_is_ended(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = asyncio.create_subprocess_exec, []

    async def starting(*words: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starting)
    monkeypatch.setattr(desktop, "WAIT_S", 0.1)
    asyncio.run(desktop.show(["/bin/sleep", "60"], {}))
    assert [process.returncode for process in started] == [-signal.SIGKILL]
    assert "did not end within 0.1 s" in caplog.text


def test_a_desktop_without_such_a_program_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        notifier = Notifier({"PATH": str(tmp_path)})
        notifier.note(updated(run()), NotifySettings(desktop=True), ORIGIN)
        while not caplog.records:
            await asyncio.sleep(0.005)
        await notifier.aclose()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert "no program here that shows desktop notifications" in caplog.text
