"""Notices of a real server: what ends and what is asked, by webhook and on the desktop; a bad receiver harms nobody."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from covey.notify.webhook import SIGNATURE, signature
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.receiver import Receiver
from tests.support.server import provider_config, running, until

SECRET = {"HOOK_SECRET": "v3ry-secret"}


def config(model: FakeModel, receiver: Receiver, more: str = "") -> str:
    hook = f'[notify]\nwebhook = "{receiver.url}"\nwebhook_secret = "$HOOK_SECRET"\n'
    return provider_config(model.url, f"{hook}{more}")


def makes_a_file(request: Recorded) -> Reply:
    touch = Call(name="bash", input={"command": "echo $HOOK_SECRET > made"})
    return Reply(text="All is well.") if request.call_number else Reply(text="", tools=(touch,))


def fake_desktop(directory: Path) -> tuple[Path, Path]:
    """A notify-send, and where it writes what it was given."""
    shown = directory / "shown"
    program = directory / "programs" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >> {shown}\n')
    program.chmod(0o755)
    return program.parent, shown


def test_a_run_that_asks_and_ends_is_reported_by_a_signed_webhook_and_on_the_desktop(
    tmp_path: Path, model: FakeModel
) -> None:
    model.on(makes_a_file)
    programs, shown = fake_desktop(tmp_path)
    env = {**SECRET, "PATH": f"{programs}:/usr/bin:/bin"}
    with (
        Receiver() as receiver,
        running(tmp_path, config(model, receiver, "desktop = true\nafter_s = 0"), env) as server,
    ):
        workspace = server.workspace()
        session = workspace.session("Nests")
        run_id = workspace.prompt(session, "make it")["run_id"]
        (asked,) = receiver.wait(1)
        permission = {"id": asked.notice["request_id"]}
        workspace.request("POST", "/permissions/grant", {"permission": permission, "action": "allow"}).ok()
        workspace.ended(run_id)
        ended = receiver.wait(2)[1]
        until(lambda: shown.exists() and shown.read_text().count("Covey") >= 4)
    common = {"workspace_id": workspace.id, "path": str(server.project), "session_id": session, "run_id": run_id}
    for got, event, state in ((asked, "asked", "permission"), (ended, "ended", "completed")):
        notice: dict[str, Any] = got.notice
        assert notice.items() >= {**common, "event": event, "state": state, "title": "Nests"}.items()
        stamp = int(got.headers[SIGNATURE].split(",")[0].removeprefix("t="))
        assert got.headers[SIGNATURE] == signature(SECRET["HOOK_SECRET"], stamp, got.body)
        assert b"All is well" not in got.body and b"made" not in got.body, "no text unless it is asked for"
    assert "Covey asks for a permission|Nests\n" in shown.read_text() and "Covey is done|Nests\n" in shown.read_text()
    assert (server.project / "made").read_text() == "\n", "commands do not get the secret"


def test_the_final_text_is_sent_if_the_settings_say_so_and_a_crash_is_an_end(tmp_path: Path, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="All is well.", ending="silence" if request.prompt == "hang" else "done"))
    more = 'include_text = true\non = ["ended"]'
    with Receiver() as receiver, running(tmp_path, config(model, receiver, more), SECRET) as server:
        workspace = server.workspace()
        session = workspace.session()
        workspace.prompt(session, "hello")
        assert receiver.wait(1)[0].notice["text"] == "All is well."
        run_id = workspace.prompt(session, "hang")["run_id"]
        model.wait_for(lambda: any(request.prompt == "hang" for request in model.requests))
        server.kill()
        server.start()
        ended = receiver.wait(2)[1].notice
        assert (ended["state"], ended["run_id"]) == ("interrupted", run_id)


def test_a_receiver_that_fails_or_is_silent_disturbs_neither_runs_nor_the_end_of_the_server(
    tmp_path: Path, model: FakeModel
) -> None:
    with Receiver([404, -1, -1, -1]) as receiver, running(tmp_path, config(model, receiver), SECRET) as server:
        workspace = server.workspace()
        session = workspace.session()
        for count in (1, 2):
            assert workspace.ended(workspace.prompt(session, "hello")["run_id"])["state"] == "completed"
            receiver.wait(count)
        assert workspace.ended(workspace.prompt(session, "once more")["run_id"])["state"] == "completed"
        server.signal(signal.SIGTERM)
        assert server.wait() == 0, "while one request has no answer yet"
        log = server.log()
    assert "a webhook was not delivered: 127.0.0.1 answered with 404" in log
    assert "the server ends with 2 undelivered webhooks" in log
    assert "t0p" not in log and SECRET["HOOK_SECRET"] not in log
