"""What recorded changes add up to: by file and turn, with names that changed and what cannot be undone."""

from __future__ import annotations

from covey.lifecycle import changes
from covey.lifecycle.undo import NOT_COMPARABLE, NOT_KEPT, NOT_RESTORABLE, UNSURE, FileStep
from covey.protocol.changes import MadeBy, Maker, Origin


def step(
    before: str | None,
    after: str | None,
    path: str = "/p/a",
    run_id: str = "r",
    *,
    made_by: MadeBy = "command",
    label: str = "make",
    kept: bool = True,
    sure: bool = True,
    modes: tuple[int, int] = (0, 0),
) -> FileStep:
    origin = Origin(made_by, label, modes[1], sure)
    return FileStep(run_id, f"m{run_id}{before}", path, before, after, modes[0], kept, origin)


def statuses(*steps: FileStep) -> dict[str, str | None]:
    return {path: changes.status(chain) for path, chain in changes.by_file(steps, ()).items()}


def test_a_file_is_what_its_first_and_its_last_change_make_it() -> None:
    assert statuses(step(None, "1"), step("1", "2")) == {"/p/a": "added"}
    assert statuses(step("1", "2"), step("2", None)) == {"/p/a": "deleted"}
    assert statuses(step("1", "2"), step("2", "3")) == {"/p/a": "modified"}
    assert statuses(step("1", None), step(None, "2")) == {"/p/a": "modified"}


def test_what_came_and_went_again_is_no_change() -> None:
    assert statuses(step(None, "1"), step("1", None)) == {}
    assert statuses(step("1", "2"), step("2", "1")) == {}


def test_a_file_that_became_executable_is_modified() -> None:
    chain = [step("1", "1", modes=(0o644, 0o755))]
    assert (changes.status(chain), changes.became_executable(chain)) == ("modified", True)
    assert changes.became_executable([step("1", "2", modes=(0o755, 0o644))]) is False
    assert changes.became_executable([step("1", "2", modes=(0o600, 0o644))]) is None


def test_what_was_undone_and_records_without_a_path_do_not_count() -> None:
    steps = [step(None, "1", run_id="gone"), step("1", "2", "/p/b"), step(None, None, "")]
    assert list(changes.by_file(steps, {"gone"})) == ["/p/b"]


def test_files_are_in_the_order_of_their_paths() -> None:
    assert list(changes.by_file([step("1", "2", f"/p/{name}") for name in "cab"], ())) == ["/p/a", "/p/b", "/p/c"]


def test_a_chain_is_cut_by_turns_and_by_commands_of_people() -> None:
    chain = [step("1", "2"), step("2", "3"), step("3", "4", run_id=""), step("4", "5", run_id=""), step("5", "6")]
    assert [[(s.before, s.after) for s in turn] for turn in changes.by_turn(chain)] == [
        [("1", "2"), ("2", "3")],
        [("3", "4")],
        [("4", "5")],
        [("5", "6")],
    ]


def test_a_file_with_another_name_and_the_same_content_is_renamed() -> None:
    files = changes.by_file([step("1", None, "/p/old"), step(None, "1", "/p/new"), step("2", "3", "/p/x")], ())
    assert changes.renamed(files) == {"/p/new": "/p/old"}


def test_which_of_several_twins_was_renamed_is_not_guessed_at() -> None:
    files = changes.by_file([step("1", None, "/p/old"), step(None, "1", "/p/new"), step(None, "1", "/p/other")], ())
    assert changes.renamed(files) == {}


def test_each_maker_is_named_once_and_in_order() -> None:
    chain = [step("1", "2", label="b"), step("2", "3", made_by="tool", label="edit"), step("3", "4", label="b")]
    assert changes.makers(chain) == (Maker(made_by="command", label="b"), Maker(made_by="tool", label="edit"))


def test_it_is_said_why_a_change_cannot_be_undone() -> None:
    assert changes.why_not_undone([step("1", "2")]) == ""
    assert changes.why_not_undone([step("1", "2", run_id="")]) == changes.OWN_COMMAND
    assert changes.why_not_undone([step("unread:before:9", "2", kept=False)]) == NOT_RESTORABLE
    assert changes.why_not_undone([step(None, "unread:after:9")]) == NOT_COMPARABLE
    assert changes.why_not_undone([step("1", "2", sure=False)]) == UNSURE
    assert changes.why_not_undone([step("1", "2", made_by="tool", kept=False)]) == NOT_KEPT
    assert changes.why_not_undone([step("1", "2", made_by="tool"), step("2", "3", sure=False)]) == UNSURE
