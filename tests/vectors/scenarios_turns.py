"""Turns that end by themselves, well or not."""

from __future__ import annotations

import base64

from covey.protocol.events import ToolOutputDelta, updated
from tests.support.fake_model import Call, Reply
from tests.vectors.recording import Recording
from tests.vectors.scripts import LOOK, PROMPT, WORDS, attempts, steps, streamed


def plain_answer(r: Recording) -> None:
    """A prompt and its answer, in several deltas."""
    r.model.on(lambda _: Reply(text=WORDS, chunks=8, delay_ms=5))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def reasoning(r: Recording) -> None:
    """A thought before the answer: two parts of one message grow one after the other."""
    r.model.on(lambda _: Reply(reasoning="考え中 🤔 u\u0308ber", text=WORDS, chunks=4, delay_ms=10))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def tool_calls_side_by_side(r: Recording) -> None:
    """Three calls in one answer, whose results come in the order in which they are ready."""
    (r.server.project / "notes.txt").write_text("ein Zettel 📝\n")
    many = (LOOK, Call(name="grep", input={"pattern": "Zettel"}), Call(name="ls", input={}))
    r.model.on(steps(streamed(2, tools=many), streamed(3)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def live_output(r: Recording) -> None:
    """What a command prints while it runs, in bytes of UTF-8; its result takes the place of it."""
    command = "printf '始まり🚀\\nzwei\\n'; until [ -e go ]; do sleep 0.05; done; printf 'e\u0301 完了 ✅\\n'; rm go"
    r.model.on(steps(Reply(text="", tools=(Call(name="bash", input={"command": command}),)), streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1", yolo=True)
    r.until(lambda view: any("zwei\n" in output.text for output in view.conversation.outputs.values()))
    (r.server.project / "go").touch()
    r.until_ended("r1")


def live_output_goes_on(r: Recording) -> None:
    """What a command has printed so far, while it still runs: overlapping pieces, and one with a hole before it."""
    command = Call(name="bash", input={"command": "until [ -e go ]; do sleep 0.05; done"})
    r.model.on(steps(Reply(text="", tools=(command,)), streamed(2)))
    r.connect()
    session = r.session()
    r.prompt(PROMPT, "r1", yolo=True)
    r.until(lambda view: any(call.finished for m in view.conversation.messages for call in m.tool_calls))
    _print_something(r, session)


def _print_something(r: Recording, session: str) -> None:
    """Made up here: a server sends such pieces only to whoever reads much too slowly, or connects again."""
    message = next(m for m in r.view.conversation.messages if m.tool_calls)
    pieces = [(0, "始まり🚀\n", 0), (9, "🚀\nzwei\n", 0), (19, "e\u0301", 0), (40, "完了 ✅\n", 18)]
    for offset, text, dropped in pieces:
        delta = ToolOutputDelta(
            session_id=session,
            run_id="r1",
            message_id=message.id,
            tool_call_id=message.tool_calls[0].id,
            offset=offset,
            delta=text,
            dropped=dropped,
        )
        r.feed_event(updated(delta))


def job_outlives_its_run(r: Recording) -> None:
    """A command that was left in the background prints when its run has ended, and is shown."""
    command = "until [ -e go ]; do sleep 0.05; done; echo 完了 ✅; sleep 300"
    job = Call(name="bash", input={"command": command, "background": True})
    r.model.on(steps(Reply(text="", tools=(job,)), streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1", yolo=True)
    r.until_ended("r1")
    (r.server.project / "go").touch()
    r.until(lambda view: view.conversation.outputs)


def own_command(r: Recording) -> None:
    """What a person's own command prints while it runs; its message takes the place of it."""
    command = "printf '始まり🚀\\n'; until [ -e go ]; do sleep 0.05; done; rm go; echo 完了 ✅"
    r.connect()
    session = r.session()
    begun = r.workspace.begin("POST", f"/agent/sessions/{session}/shell", {"command": command})
    r.until(lambda view: view.conversation.outputs)
    (r.server.project / "go").touch()
    begun.answer().ok()
    r.until(lambda view: len(view.conversation.messages) == 1)


def structured_output(r: Recording) -> None:
    """A run with a schema: the first answer does not fit, the second does, and its JSON is that of the run."""
    schema = {
        "type": "object",
        "required": ["字"],
        "properties": {"字": {"type": "array", "items": {"type": "string"}}},
    }
    r.model.on(attempts(Reply(text='{"字": "漢"}'), Reply(text='{"字": ["漢", "🧪"]}')))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1", output_schema=schema)
    r.until_ended("r1")


def attachments(r: Recording) -> None:
    """A prompt with a text and a picture."""
    r.model.on(lambda _: streamed(3))
    r.connect()
    r.session()
    files = [("größe.txt", "text/plain", "漢字 🧪".encode()), ("p.png", "image/png", b"\x89PNG\r\n\x1a\n\x00")]
    given = [
        {"file_path": name, "file_name": name, "mime_type": mime, "content": base64.b64encode(data).decode()}
        for name, mime, data in files
    ]
    r.prompt(PROMPT, "r1", attachments=given)
    r.until_ended("r1")


def max_tokens(r: Recording) -> None:
    """An answer that the model's bound cuts off."""
    r.model.on(lambda _: Reply(text=WORDS, chunks=3, finish="length"))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def failed_run(r: Recording) -> None:
    """The provider refuses; the next prompt works, and the session has not failed any more."""
    refusal = Reply(status=400, body='{"error": {"message": "schlechtes Modell 🙈"}}')
    r.model.on(attempts(refusal, streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
    r.prompt("noch einmal", "r2")
    r.until_ended("r2")


def key_refused(r: Recording) -> None:
    """The provider refuses the key: the run failed, and the view knows why."""
    r.model.on(lambda _: Reply(status=401, body='{"error": {"message": "key expired"}}'))
    r.connect()
    r.session()
    r.prompt("hello", "r1")
    r.until_ended("r1")


def retry(r: Recording) -> None:
    """Two refusals that pass, and then the answer: while it waits, the run says so."""
    busy = Reply(status=429, body="{}", headers={"retry-after": "0"})
    r.model.on(attempts(busy, busy, streamed(3)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def waits_for_retry(r: Recording) -> None:
    """A run that waits for its next attempt: its retry is shown."""
    r.model.on(lambda _: Reply(status=429, body="{}", headers={"retry-after": "30"}))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until(lambda view: (record := view.find_run("r1")) and record.retry)


def broken_stream(r: Recording) -> None:
    """The provider's stream breaks in the middle: a whole message takes the text back, and it comes again."""
    r.model.on(attempts(Reply(text=WORDS, chunks=5, ending="cut"), streamed(7)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def todos(r: Recording) -> None:
    """The model writes a list of things to do, and changes it."""
    first = [{"content": "漢字 lesen 📖", "status": "in_progress"}, {"content": "antworten", "status": "pending"}]
    second = [{"content": "漢字 lesen 📖", "status": "completed"}, {"content": "antworten", "status": "in_progress"}]
    calls = [Call(name="todos", input={"todos": each}) for each in (first, second)]
    r.model.on(steps(*(Reply(text="", tools=(call,)) for call in calls), streamed(2)))
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")


def child_agent(r: Recording) -> None:
    """An agent works in a session of its own; the one that is shown gets its report."""
    agent = Call(name="agent", input={"prompt": "Suche 漢字"})

    def answer(request: object) -> Reply:
        prompt = getattr(request, "prompt", "")
        if prompt.startswith("Suche"):
            return Reply(text="Gefunden: 漢字 🔎")
        return steps(Reply(text="", tools=(agent,)), streamed(2))(request)  # type: ignore[arg-type]

    r.model.on(answer)
    r.connect()
    r.session()
    r.prompt(PROMPT, "r1")
    r.until_ended("r1")
