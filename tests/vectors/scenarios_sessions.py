"""Several sessions, and what becomes of them: titles, summaries, undos, forks, deletions."""

from __future__ import annotations

from tests.support.fake_model import Call, Reply
from tests.vectors.recording import Recording
from tests.vectors.scripts import PROMPT, WORDS, steps, streamed


def two_sessions(r: Recording) -> None:
    """Two answers at once; the one that is not shown becomes unread, and is whole when it is opened."""
    r.model.on(lambda request: streamed(6, {3: "b" if "andere" in request.prompt else "a"}))
    r.connect()
    first = r.session("eins 1️⃣")
    r.prompt(PROMPT, "r1")
    second = r.session("zwei 二")
    r.prompt("andere Sache", "r2")
    r.until_text()
    r.model.release("a")
    r.until_ended("r1")
    r.open(first)
    r.model.release("b")
    r.until_ended("r2")
    assert r.view.sessions.of(second).is_unread


def opened_in_the_middle(r: Recording) -> None:
    """A session is opened while its answer is being written: its beginning is loaded, its end is streamed."""
    r.model.on(lambda _: streamed(30, {10: "more", 20: "rest"}))
    r.connect()
    session = r.other.session("läuft schon 🏃")
    r.other.prompt(session, PROMPT, run_id="r1")
    r.until(lambda view: (record := view.sessions.get(session)) and record.is_busy)
    r.model.release("more")
    r.open(session)
    r.until_text(15 * len(WORDS))
    r.model.release("rest")
    r.until_ended("r1")


def connected_in_the_middle(r: Recording) -> None:
    """A client comes when everything is under way: a run, and one that waits."""
    r.model.on(lambda _: streamed(30, {10: "more"}))
    session = r.other.session("läuft schon 🏃")
    r.other.prompt(session, PROMPT, run_id="r1")
    r.other.prompt(session, "danach 漢字", run_id="r2")
    r.model.wait_for(lambda: bool(r.model.requests))
    r.open(session)
    r.connect()
    r.model.release("more")
    r.until_ended("r1", "r2")


def failed_elsewhere(r: Recording) -> None:
    """A run fails in a session that is not shown."""
    r.model.on(lambda _: Reply(status=400, body='{"error": {"message": "schlecht 🙈"}}'))
    r.connect()
    r.session()
    session = r.other.session("anderswo 別")
    r.other.prompt(session, PROMPT, run_id="r1")
    r.until_ended("r1")


def deleted_session(r: Recording) -> None:
    """The session that is shown is deleted by another client, while its run is active."""
    r.model.on(lambda _: streamed(30, {10: "never"}))
    r.connect()
    session = r.session("bald weg 👋")
    r.prompt(PROMPT, "r1")
    r.until_text()
    r.other.request("DELETE", f"/sessions/{session}").ok()
    r.until(lambda view: not view.current)


def title_changed(r: Recording) -> None:
    """A session gets its title from its prompt, and then a better one from somebody else."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    session = r.session()
    r.prompt("Prüfe 漢字 und 🧪\nund mehr", "r1")
    r.until_ended("r1")
    r.other.request("PUT", f"/sessions/{session}", {"title": "Besser 改善 ✨"}).ok()
    r.until(lambda view: any(each.title.startswith("Besser") for each, _ in view.sessions))


def archived_and_taken_back(r: Recording) -> None:
    """Two sessions are put aside by somebody else, the shown one among them; one is taken back. None of them goes."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    other = r.other.session("beiseite 📦")
    session = r.session("Ablage 書庫")
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    for session_id in (other, session):
        r.other.request("PUT", f"/sessions/{session_id}", {"archived": True}).ok()
    r.other.request("PUT", f"/sessions/{other}", {"archived": False, "title": "wieder da 🎉"}).ok()
    r.until(lambda view: any(each.title.startswith("wieder") for each, _ in view.sessions))


def gap_with_an_archived_session(r: Recording) -> None:
    """The shown session is put aside while events are missed: it is loaded with the others, and stays."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    session = r.session("Ablage 書庫")
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    r.disconnect()
    r.other.request("PUT", f"/sessions/{session}", {"archived": True}).ok()
    r.connect("77.1")


def undo(r: Recording) -> None:
    """The newest turn is taken back, with its file."""
    write = Call(name="write", input={"file_path": "größe.txt", "content": "漢字\n"})
    r.model.on(
        lambda request: (
            steps(Reply(text="", tools=(write,)), streamed(2))(request) if "schreib" in request.prompt else streamed(2)
        )
    )
    r.connect()
    session = r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    r.prompt("schreib es auf ✍️", "r2", yolo=True)
    r.until_ended("r2")
    r.other.request("POST", f"/sessions/{session}/undo", {}).ok()
    r.catch_up()


def fork(r: Recording) -> None:
    """A session goes on from one of its messages in a session of its own, which is then shown."""
    r.model.on(lambda _: streamed(2))
    r.connect()
    session = r.session("Stamm 🌳")
    for run_id in ("r1", "r2"):
        r.prompt(PROMPT, run_id)
        r.until_ended(run_id)
    message = r.workspace.messages(session)[1]["id"]
    forked = r.workspace.request("POST", f"/sessions/{session}/fork", {"message_id": message}).ok()["id"]
    r.open(forked)
    r.prompt("weiter im Zweig 🌿", "r3")
    r.until_ended("r3")


def summarise(r: Recording) -> None:
    """The conversation is replaced by a summary, which is a message of its own."""
    r.model.on(lambda _: streamed(3))
    r.connect()
    session = r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    run_id = r.workspace.request("POST", f"/agent/sessions/{session}/summarize").ok()["run_id"]
    r.until_ended(run_id)
    r.prompt("und nun? 次", "r2")
    r.until_ended("r2")


def presence(r: Recording) -> None:
    """Another client attaches, looks at the session, and leaves; a third stays."""
    r.connect()
    session = r.session("Treffpunkt 🤝")
    bo = r.other.stream()
    r.until(lambda view: r.other.client_id in view.clients)
    path = f"/current-session?client_id={r.other.client_id}"
    r.other.request("POST", path, {"session_id": session}).ok()
    third = r.join("Cy 星", "api")
    staying = third.stream()
    r.until(lambda view: third.client_id in view.clients)
    bo.close()
    r.until(lambda view: r.other.client_id not in view.clients)
    r.also_close(staying)


def others_are_there_already(r: Recording) -> None:
    """Whoever attaches is sent who else is there, and again after a break, in which somebody left."""
    session = r.other.session("Treffpunkt 🤝")
    bo = r.other.stream()
    path = f"/current-session?client_id={r.other.client_id}"
    r.other.request("POST", path, {"session_id": session}).ok()
    third = r.join("Cy 星", "api")
    r.also_close(third.stream())
    r.connect()
    r.open(session)
    r.until(lambda view: {r.other.client_id, third.client_id} <= view.clients.keys())
    r.disconnect()
    bo.close()
    r.connect()
    r.until(lambda view: third.client_id in view.clients and r.other.client_id not in view.clients)
