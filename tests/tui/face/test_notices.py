"""What is said of others, of oneself and of the model, and that it covers nothing."""

from __future__ import annotations

from msgspec import structs

from covey.protocol.events import QuestionItem
from covey.tui.face.composer import Composer
from covey.tui.face.editor import Editor
from covey.tui.face.facts import RunEnded, Said, Unsendable
from covey.tui.face.state import FaceState
from tests.client.values import some_workspace
from tests.tui.face.desk import Desk, a_batch, a_prompt, a_run, a_session, an_end


def test_who_dropped_a_prompt_from_the_queue_is_said_in_every_window() -> None:
    desk = Desk()
    desk.event(a_run())
    for by, words in (("kim", "kim dropped"), ("ann", "you dropped"), (None, "somebody dropped")):
        dropped = {"cancelled_by": "queue_remove", "cancelled_by_client": by, "ended_at": 999.0}
        desk.event(a_run("r2", "cancelled", 2, "then write a changelog", **dropped))
        desk.feed(RunEnded(an_end("r2", cancelled=True)))
        assert f"{words} “then write a changelog” from the queue" in desk.text


def test_one_s_own_prompt_in_the_queue_is_yours_and_others_have_names() -> None:
    desk = Desk()
    desk.event(a_run())
    desk.event(a_run("r2", "queued", 2, "mine", posted_by="ann"))
    desk.event(a_run("r3", "queued", 3, "hers", posted_by="kim", parked_by="ann"))
    desk.look()
    assert "you · waits" in desk.text
    assert "kim · you edit it" in desk.text


def test_a_notice_covers_no_key_and_a_long_one_is_whole() -> None:
    desk = Desk(60, 20)
    keys = desk.screen[-1]
    desk.feed(Said("short"))
    assert "─ short ─" in desk.text
    long = "a sentence that is much longer than this window is wide, " * 3
    desk.feed(Said(long))
    assert " ".join(long.split()) in " ".join(desk.text.split())
    assert desk.screen[-1] == keys


def test_what_went_wrong_is_read_to_its_end_in_a_narrow_window_too() -> None:
    desk = Desk(38, 24)
    why = "no usable model is configured. Log in to a provider, or name one in the configuration. " * 5
    desk.feed(Unsendable("hello", why, new_mode="plan"))
    assert why.strip() in " ".join(desk.text.split())
    assert desk.draft == "hello" and desk.state.new_mode == "plan"


def test_what_a_model_does_is_told_apart_by_what_comes() -> None:
    desk = Desk()
    desk.event(a_run(waiting_on="model"))
    desk.look()
    assert "thinks" in desk.screen[0]
    desk.event(structs.replace(a_prompt("m2", "r1", "So it"), role="assistant"))
    assert "writes" in desk.screen[0]


def test_a_run_that_asks_waits_for_people_and_nothing_turns() -> None:
    desk = Desk()
    desk.event(a_run(waiting_on="tool:question"))
    desk.event(a_batch(QuestionItem(id="i", type="yes_no", question="shall I?")))
    desk.look()
    assert "? waits for you" in desk.screen[0]
    before = desk.now
    assert (desk.face.wakes_at(before + 5) or before + 99) >= before + 6, "only its clock goes on"


def test_things_to_do_of_which_all_are_done_are_shown_only_when_asked_for() -> None:
    desk = Desk()
    done = {"content": "look", "status": "completed"}
    desk.event(a_session(todos=(done, {"content": "mend", "status": "pending"})))
    desk.look()
    assert "todos 1/2 ▸ mend" in desk.text
    desk.event(a_session(todos=(done, done)))
    desk.look()
    assert "todos" not in desk.text
    desk.keys("ctrl+t")
    assert "todos 2/2" in desk.text


def test_a_prompt_that_was_given_before_the_session_was_there_counts_as_sent_when_it_is() -> None:
    typed = Composer().with_editor(Editor().insert("and then"))
    starting = FaceState(unsent="fix it", composers={"": typed})
    joined = starting.joined("s1")
    assert (joined.unsent, joined.session_id, joined.composer) == ("", "s1", typed)
    assert starting.joined("").unsent == "fix it"


def test_the_welcome_says_why_no_model_can_be_asked() -> None:
    desk = Desk(session="")
    workspace = some_workspace()
    mistake = "/home/ann/.config/covey/config.toml: models.big: unknown key"
    config = structs.replace(workspace.config, models={}, model_problem=mistake)
    desk.view.workspace = structs.replace(workspace, config=config)
    assert mistake in desk.text
    assert "/login" not in desk.text, "a key would not help"
