"""What waits for a person: who answers it, and how it goes away."""

from __future__ import annotations

from covey.client.view.inputs import AnswerGiven
from tests.support.fake_model import Call, Reply
from tests.support.server import Workspace
from tests.vectors.recording import Recording
from tests.vectors.scripts import ECHO, PROMPT, steps, streamed

QUESTION = Call(
    name="question",
    input={
        "questions": [
            {"question": "Welche Farbe? 🎨", "type": "single_choice", "choices": [{"label": "赤"}, {"label": "青"}]},
            {"question": "Sicher?", "type": "yes_no"},
        ]
    },
)


def _ask(r: Recording, call: Call = ECHO) -> str:
    """A run that asks; gives the id of the request."""
    r.model.on(steps(Reply(text="", tools=(call,)), streamed(3)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until(lambda view: view.asks.open)
    return next(iter(r.view.asks.open))


def _grant(client: Workspace, ask_id: str, action: str) -> None:
    body = {"permission": {"id": ask_id}, "action": action}
    client.request("POST", f"/permissions/grant?client_id={client.client_id}", body).ok()


def permission_asked(r: Recording) -> None:
    """A request that nobody has answered: the session waits for the user."""
    _ask(r)


def permission_allowed(r: Recording) -> None:
    """The user allows it."""
    ask_id = _ask(r)
    r.feed(AnswerGiven(ask_id))
    _grant(r.workspace, ask_id, "allow")
    r.until_ended("r1")


def permission_denied(r: Recording) -> None:
    """The user denies it, and the run goes on without."""
    ask_id = _ask(r)
    r.feed(AnswerGiven(ask_id))
    _grant(r.workspace, ask_id, "deny")
    r.until_ended("r1")


def permission_allowed_by_another_client(r: Recording) -> None:
    """Another client is faster: the request goes, and it is known who answered."""
    ask_id = _ask(r)
    _grant(r.other, ask_id, "allow_session")
    r.until_ended("r1")


def permission_closed_by_cancel(r: Recording) -> None:
    """The run is cancelled while it asks."""
    _ask(r)
    r.cancel()
    r.until_ended("r1")


def permission_answered_while_away(r: Recording) -> None:
    """Somebody answers while this client is not connected: after the gap the request is gone."""
    ask_id = _ask(r)
    r.disconnect()
    _grant(r.other, ask_id, "allow")
    r.other.ended("r1")
    r.connect("77.1")
    r.until(lambda view: not view.asks.open and not any(view.loads))


def skipped_permissions(r: Recording) -> None:
    """Another client allows everything: what waits is allowed, and the face says that nobody is asked any more."""
    _ask(r)
    r.other.request("POST", "/permissions/skip", {"skip": True}).ok()
    r.until_ended("r1")


def question_answered(r: Recording) -> None:
    """The user answers both questions of a batch."""
    ask_id = _ask(r, QUESTION)
    r.feed(AnswerGiven(ask_id))
    responses = [{"request_id": "1", "selected_ids": ["2"], "notes": "青 🌊"}, {"request_id": "2", "yes": True}]
    body = {"batch_request_id": ask_id, "responses": responses}
    r.workspace.request("POST", f"/questions/answer?client_id={r.workspace.client_id}", body).ok()
    r.until_ended("r1")


def question_refused_by_another_client(r: Recording) -> None:
    """Another client does not want to answer: the questions go."""
    ask_id = _ask(r, QUESTION)
    path = f"/questions/cancel?client_id={r.other.client_id}"
    r.other.request("POST", path, {"batch_request_id": ask_id}).ok()
    r.until_ended("r1")
