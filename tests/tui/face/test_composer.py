"""The prompt: editing, pastes, history, suggestions, and where it goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.tui.face import lists
from covey.tui.face.composer import Draft, PromptToken, Suggestion, draft_of, from_draft
from covey.tui.face.editing import edited
from covey.tui.face.editor import Editor, row_of, typed, wrapped
from covey.tui.face.effects import (
    Do,
    EditQueued,
    FindFiles,
    GoToSession,
    OpenEditor,
    Post,
    ReadFile,
    RunOwnCommand,
    SaveDraft,
    SaveHistory,
)
from covey.tui.face.facts import DraftFound, Edited, EditTooLate, FileRead, FilesFound, QueuedChanged
from covey.tui.keeping import Keeper
from tests.tui.face.desk import Desk, a_run

TEXTS = st.text(st.sampled_from("ab \n日👩‍👧é_-"), max_size=40)
EDITS = (
    *("left", "right", "word_left", "word_right", "line_start", "line_end", "select_left", "select_right"),
    *("select_all", "delete_left", "delete_right", "kill_word", "kill_word_right", "kill_line", "kill_start"),
    *("yank", "undo_edit", "redo_edit"),
)
INTENTS = st.sampled_from(EDITS)
KEEPING = [("escape", "escape"), ("ctrl+c",), ("up",), ("ctrl+r", "escape"), ("ctrl+s", "escape")]


@given(TEXTS, st.lists(INTENTS | st.sampled_from(["x", "\n"]), max_size=20))
def test_no_edit_leaves_the_text_or_breaks_a_character(text: str, intents: list[str]) -> None:
    editor = Editor(text, len(text))
    for intent in intents:
        editor = edited(editor, intent) or editor.insert(intent)
        assert 0 <= editor.caret <= len(editor.text)
    while editor.past:
        editor = editor.undone()
    assert editor.text == text


@given(TEXTS, st.integers(2, 12))
def test_rows_hold_the_whole_text_and_the_caret_is_on_one_of_them(text: str, columns: int) -> None:
    rows = wrapped(text, columns)
    assert "".join(text[row.start : row.end] for row in rows) == text.replace("\n", "")
    for caret in range(len(text) + 1):
        row = rows[row_of(rows, caret)]
        assert row.start <= caret <= row.end


@given(st.text())
def test_what_is_typed_or_pasted_has_no_control_characters(text: str) -> None:
    assert all(char in "\n\t" or char.isprintable() or ord(char) > 0x9F for char in typed(text))


def test_row_17_a_megabyte_is_one_token_and_is_sent_whole() -> None:
    desk = Desk()
    text = "\n".join(f"line {number} 日本" for number in range(80_000))
    assert len(text) > 1_000_000
    desk.write("look: ")
    desk.paste(text)
    assert len(desk.draft) == len("look: ") + 1
    assert "[paste 1: 80000 lines]" in desk.text
    desk.keys("enter")
    [post] = desk.did(Post)
    assert post.text == f"look: {text}"


def test_a_token_opens_to_its_text_and_is_deleted_as_a_whole() -> None:
    desk = Desk()
    desk.paste("x\n" * 20)
    desk.keys("ctrl+o")
    assert desk.draft == "x\n" * 20
    desk.keys("ctrl+_", "backspace")
    assert desk.draft == ""
    desk.keys("ctrl+_")
    assert "[paste 1: 20 lines]" in desk.text


def test_row_18_nothing_in_a_paste_is_a_key() -> None:
    desk = Desk()
    desk.paste("y\r?\r\n/quit\r!ls\x1b\x03")
    assert desk.did(Post) == desk.did(Do) == []
    assert desk.draft == "y\n?\n/quit\n!ls"
    assert desk.state.overlay is None


@pytest.mark.parametrize("name", ["shift+enter", "alt+enter", "ctrl+enter", "ctrl+j"])
def test_row_20_a_new_line_by_every_key_that_people_know(name: str) -> None:
    desk = Desk()
    desk.keys("a", name, "b")
    assert (desk.draft, desk.did(Post)) == ("a\nb", [])


def test_row_20_a_backslash_and_enter_is_a_new_line() -> None:
    desk = Desk()
    desk.keys("a", "\\", "enter", "b", "enter")
    assert desk.did(Post) == [Post("a\nb")]


def test_row_34_going_up_and_down_keeps_the_draft() -> None:
    desk = Desk()
    for prompt in ("one", "two"):
        desk.write(prompt)
        desk.keys("enter")
    desk.write("my draft")
    desk.keys("up", "up")
    assert desk.draft == "one"
    desk.keys("down", "down")
    assert desk.draft == "my draft"


@pytest.mark.parametrize(
    "keys", [("escape", "escape"), ("ctrl+c",), ("up",), ("ctrl+r", "escape"), ("ctrl+s", "escape")]
)
def test_row_34_no_key_loses_the_draft(keys: tuple[str, ...]) -> None:
    desk = Desk()
    desk.write("earlier")
    desk.keys("enter")
    desk.write("my draft")
    desk.keys(*keys)
    saved = [effect.draft.text for effect in desk.did(SaveDraft)][-1]
    kept = [effect.text for effect in desk.did(SaveHistory)]
    assert saved == "my draft" or "my draft" in kept
    assert desk.did(Do) == []


def test_row_34_a_draft_is_on_disk_with_each_key_and_comes_back_after_a_crash(tmp_path: Path) -> None:
    pasted, file = PromptToken("paste", "paste 1: 2 lines", "a\nb"), PromptToken("file", "x", data=b"\0")
    tokens = {"\U000f0000": pasted, "\U000f0001": file}
    dead = Keeper(tmp_path, "/home/ann/feed", pid=2**22 + 1)
    dead.save_draft("s1", Draft("half a \U000f0000\U000f0001", tokens))
    heir = Keeper(tmp_path, "/home/ann/feed")
    found = heir.take_draft("s1")
    assert found is not None
    assert draft_of(from_draft(found)) == Draft("half a \U000f0000\U000f0001", tokens)
    assert Keeper(tmp_path, "/home/ann/feed").take_draft("s1") == found, "it is the heir's now, and still on disk"
    heir.save_draft("s1", Draft("", {}))
    assert list((tmp_path / "drafts").iterdir()) == []


def test_row_34_two_windows_on_one_session_do_not_take_each_others_draft(tmp_path: Path) -> None:
    other = Keeper(tmp_path, "/p", pid=1)
    other.save_draft("s1", Draft("hers", {}))
    assert Keeper(tmp_path, "/p").take_draft("s1") is None


def test_row_34_a_damaged_draft_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "drafts").mkdir()
    (tmp_path / "drafts" / "s1.4194305.json").write_text("{]")
    assert Keeper(tmp_path, "/p").take_draft("s1") is None


def test_a_draft_found_on_disk_does_not_overwrite_what_was_typed_meanwhile() -> None:
    desk = Desk()
    desk.write("typed")
    desk.feed(DraftFound("s1", "from disk", ()))
    assert desk.draft == "typed"


def test_each_session_has_its_own_draft() -> None:
    desk = Desk()
    desk.write("first")
    desk.view.sessions.show("s2")
    desk.look()
    assert desk.draft == ""
    desk.view.sessions.show("s1")
    desk.look()
    assert desk.draft == "first"


def test_the_line_end_after_a_paste_is_no_line_of_it() -> None:
    desk = Desk()
    desk.paste("a line\n" * 300)
    assert "[paste 1: 300 lines]" in desk.text


# ── while it works ──


def test_while_it_works_enter_steers_and_tab_queues_and_the_footer_says_so() -> None:
    desk = Desk()
    desk.event(a_run())
    desk.look()
    assert "⏎ steer   ⇥ queue   esc esc cancel   alt+i interrupt" in desk.screen[-1]
    desk.resize(60, 20)
    assert "esc esc cancel" in desk.screen[-1], "how to stop it is said on a narrow screen too"
    desk.resize(100, 30)
    desk.write("one")
    desk.keys("enter")
    desk.write("two")
    desk.keys("tab")
    desk.write("three")
    desk.keys("alt+i")
    assert [(post.text, post.mode) for post in desk.did(Post)] == [
        ("one", "fold"),
        ("two", "own_turn"),
        ("three", "interrupt"),
    ]


def test_when_idle_a_prompt_has_no_mode() -> None:
    desk = Desk()
    desk.write("go")
    desk.keys("enter")
    assert desk.did(Post) == [Post("go")]


def test_row_35_a_queued_prompt_is_parked_while_it_is_edited_and_the_draft_comes_back() -> None:
    desk = Desk()
    desk.event(a_run())
    desk.event(a_run("r2", "queued", 2, "then this"))
    desk.look()
    desk.write("my draft")
    [parked] = desk.keys("alt+up")
    assert parked == EditQueued("s1", "r2", {"park": True}, "edit")
    desk.feed(QueuedChanged("r2", "edit", "then this"))
    assert desk.draft == "then this"
    desk.write("!")
    [change] = desk.keys("enter")
    assert change == EditQueued("s1", "r2", {"prompt": "then this!", "unpark": True}, "edited")
    desk.feed(QueuedChanged("r2", "edited", "then this!"))
    assert desk.draft == "my draft"


def test_row_35_too_late_is_said_and_what_was_written_is_kept() -> None:
    desk = Desk()
    desk.event(a_run("r2", "queued", 2, "then this"))
    desk.look()
    desk.keys("alt+up")
    desk.feed(QueuedChanged("r2", "edit", "then this"))
    desk.write(" and more")
    desk.keys("enter")
    desk.feed(EditTooLate("r2", "it runs"))
    assert "too late: it has begun" in desk.text
    assert desk.draft == "then this and more"


def test_escape_leaves_a_queued_prompt_as_it_was_and_lets_it_go_on() -> None:
    desk = Desk()
    desk.event(a_run("r2", "queued", 2, "then this"))
    desk.look()
    desk.keys("alt+up")
    desk.feed(QueuedChanged("r2", "edit", "then this"))
    desk.write("x")
    assert EditQueued("s1", "r2", {"unpark": True}) in desk.keys("escape")
    assert desk.draft == ""


# ── what else can be written ──


def test_a_slash_suggests_commands_and_one_without_words_is_done_at_once() -> None:
    desk = Desk()
    desk.write("/ne")
    assert "/new" in desk.text
    assert desk.keys("enter")[-1] == GoToSession("")


def test_an_unknown_command_is_not_sent_to_the_model() -> None:
    desk = Desk()
    desk.write("/frobnicate it")
    desk.keys("enter")
    assert desk.did(Post) == []
    assert "no command /frobnicate" in desk.text
    assert desk.draft == "/frobnicate it"


def test_files_are_found_by_the_server_and_a_late_answer_is_ignored() -> None:
    desk = Desk()
    desk.write("see @fe")
    assert desk.did(FindFiles)[-1] == FindFiles("fe")
    desk.feed(FilesFound("f", (Suggestion("wrong"),)))
    assert "wrong" not in desk.text
    desk.feed(FilesFound("fe", (Suggestion("src/feed.py"),)))
    desk.keys("tab")
    assert desk.draft == "see @src/feed.py "


def test_a_command_of_ones_own_is_shared_and_with_two_marks_is_not() -> None:
    desk = Desk()
    desk.write("!git log")
    assert "your own command" in desk.text
    desk.keys("enter")
    desk.write("!!env")
    desk.keys("enter")
    assert desk.did(RunOwnCommand) == [RunOwnCommand("git log", True), RunOwnCommand("env", False)]


def test_a_picture_that_is_dropped_comes_along_and_another_path_is_text() -> None:
    desk = Desk()
    assert desk.paste("'/tmp/a\\ b.png'") == [ReadFile("/tmp/a b.png", "'/tmp/a\\ b.png'")]
    token = PromptToken("file", "a b.png, 1 kB", "/tmp/a b.png", "image/png", b"\x89PNG")
    desk.feed(FileRead(token))
    desk.write(" what is it?")
    desk.keys("enter")
    [post] = desk.did(Post)
    assert (post.text, post.files) == ("[a b.png, 1 kB] what is it?", (token,))
    desk.feed(FileRead(None, "/tmp/none.png"))
    assert desk.draft == "/tmp/none.png"


def test_the_external_editor_gets_the_prompt_with_its_pastes_and_gives_it_back() -> None:
    desk = Desk()
    desk.paste("x\n" * 20)
    assert desk.keys("ctrl+g") == [OpenEditor("x\n" * 20)]
    desk.feed(Edited("short now"))
    assert desk.draft == "short now"


def test_the_caret_stands_where_the_next_letter_goes_also_behind_wide_ones() -> None:
    desk = Desk(width=40)
    desk.write("日本")
    frame = desk.face.frame(desk.now)
    assert frame.cursor is not None
    row, column = frame.cursor
    assert frame.rows[row].text.startswith(" > 日本")
    assert column == 3 + 4


def test_what_is_typed_at_the_list_of_a_first_start_is_the_prompt_and_no_filter() -> None:
    desk = Desk(session="")
    desk.face.state = replace(desk.state, overlay=lists.start())
    desk.write("fix the tset")
    desk.keys("backspace", "backspace", "backspace")
    desk.paste("est")
    assert desk.draft == "fix the test"
    assert "Look around first" in desk.text and "nothing fits" not in desk.text
    assert "What you type is kept below, as your first prompt." in desk.text
    cursor = desk.face.frame(desk.now).cursor
    assert cursor and desk.screen[cursor[0]].strip() == "> fix the test"
    desk.keys("down", "down", "down", "enter")
    assert desk.draft == "fix the test" and desk.state.overlay is None
