"""What is said of a run that did not end well: in the words of the command line, and with advice."""

from __future__ import annotations

import json
import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from covey.cli import exits
from covey.cli.endings import KEY_REFUSED, Ending, in_flags
from covey.client.view.view import View
from covey.protocol.events import AgentEvent, created, updated
from covey.protocol.runs import Run, RunComplete, RunOptions
from tests.cli.conftest import Home, finish, read_until
from tests.cli.test_runs_command import detach, detach_until_it_asks
from tests.client.values import some_run

STEPS = "stopped after 1 step (limits.steps_per_run)"
COST = "stopped: this run has cost $1.0000, and it may cost $1 (limits.cost_per_run)"


@pytest.mark.parametrize(
    ("error", "options", "said"),
    [
        (STEPS, RunOptions(max_steps=1), "stopped after 1 step (--max-steps)"),
        (STEPS, RunOptions(max_cost=1), STEPS),
        ("stopped after 1 step (max_steps of this run)", RunOptions(max_steps=1), "stopped after 1 step (--max-steps)"),
        (COST, RunOptions(max_cost=1), COST.replace("limits.cost_per_run", "--max-cost")),
        (COST, RunOptions(), COST),
    ],
)
def test_a_bound_is_named_as_it_was_given(error: str, options: RunOptions, said: str) -> None:
    assert in_flags(error, options) == said


def test_38_a_bound_has_an_exit_code_of_its_own_and_is_named_as_it_was_given(home: Home) -> None:
    done = home.covey("run", "--json", "--yolo", "--max-steps", "1", "use the tool")
    assert done.returncode == exits.BOUND
    assert json.loads(done.stdout)["error"] == "stopped after 1 step (--max-steps)"
    assert done.stderr.endswith("covey: stopped after 1 step (--max-steps)\n")
    assert "(--max-steps)" in home.covey("runs", "--all").stdout
    run_id = json.loads(done.stdout)["run_id"]
    waited = home.covey("runs", "wait", run_id)
    assert waited.returncode == exits.BOUND and "(--max-steps)" in waited.stderr
    assert home.covey("run", "fail").returncode == exits.FAILED


def terminal(**fields: object) -> RunComplete:
    return RunComplete(session_id="s1", run_id="r1", message_id="m1", **fields)  # type: ignore[arg-type]


def test_who_cancelled_is_reported() -> None:
    view = View("s1", loads=False)
    ending = Ending(view, "r1", RunOptions())
    assert ending.explanation(terminal(cancelled=True)) == "the run was cancelled."
    assert (
        ending.explanation(terminal(cancelled=True), by=" by somebody else")
        == "the run was cancelled by somebody else."
    )
    run = Run(
        run_id="r1", session_id="s1", seq=1, state="cancelled", mode="fold", prompt="x", accepted_at=0.0,
        cancelled_by="shutdown",
    )  # fmt: skip
    view.event(updated(run))
    assert "the server was stopped" in ending.explanation(terminal(cancelled=True))


def test_a_refused_key_comes_with_advice_and_another_failure_does_not() -> None:
    view = View("s1", loads=False)
    ending = Ending(view, "r1", RunOptions())
    view.event(updated(some_run("r1")))
    view.event(created(AgentEvent(type="error", session_id="s1", run_id="r1", error="no")))
    view.event(created(AgentEvent(type="re_authenticate", session_id="s1", run_id="r0", error="no")))
    assert ending.explanation(terminal(error="no")) == "no"
    view.event(created(AgentEvent(type="re_authenticate", session_id="s1", run_id="r1", error="no")))
    assert ending.explanation(terminal(error="no")) == f"no\n{KEY_REFUSED}"
    assert ending.explanation(terminal()) == ""


class Refuses(BaseHTTPRequestHandler):
    """A provider whose keys have all expired."""

    def do_POST(self) -> None:
        body = b'{"error": {"message": "the key has expired"}}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


def test_an_expired_key_of_a_real_provider_comes_with_advice(own_home: Home) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as provider:
        Thread(target=provider.serve_forever, daemon=True).start()
        own_home.config.write_text(
            f"""models.large = "far/m"
[providers.far]
type = "openai-compatible"
base_url = "http://127.0.0.1:{provider.server_address[1]}/v1"
api_key = "old"
models = [{{ id = "m" }}]
"""
        )
        done = own_home.covey("run", "-q", "hello")
        provider.shutdown()
    assert done.returncode == exits.FAILED
    assert "refused the API key (401): the key has expired. Set api_key for the provider" in done.stderr
    assert done.stderr.endswith(f"  {KEY_REFUSED}\n")


def test_after_a_kill_it_is_said_what_comes_next_and_how_to_see_it(own_home: Home) -> None:
    run = own_home.spawn("run", "hang")
    read_until(run, b"one two ")
    (session,) = own_home.sessions()
    os.kill(own_home.pid(), signal.SIGKILL)
    code, _, err = finish(run)
    assert code == exits.INTERRUPTED
    assert "If the server was killed, the run ends as interrupted when it has started again; `covey runs wait" in err
    assert f"`covey sessions show {session['id']}` shows it" in err
    assert f'`covey run -s {session["id"]} "go on"` goes on from there.' in err
    assert "one two" in own_home.covey("sessions", "show", session["id"]).stdout


# ── covey runs wait ──


def test_waiting_gives_a_hint_that_fits(home: Home) -> None:
    said = home.covey("runs", "wait", "--deny", detach_until_it_asks(home)).stderr
    assert "denied, because nobody is here to be asked" in said
    assert "Allow it by waiting for such a run at a terminal" in said and ".permissions]\n  allow = [" in said
    assert "--yolo" not in said


def test_waiting_tells_what_the_server_warns_of(own_home: Home) -> None:
    (own_home.project / "covey.toml").write_text('permissions.allow = ["bash"]\n')
    said = own_home.covey("runs", "wait", "-q", detach(own_home, "hello")).stderr
    assert "covey.toml: ignored, as this directory is not trusted: permissions.allow" in said
