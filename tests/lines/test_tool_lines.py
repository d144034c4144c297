"""A formatter for each tool: what a call does, what came of it, and the footer of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from covey.lines.calls import call_line
from covey.lines.diffs import beginning, diff_lines, near_changes, read_diff
from covey.lines.footer import RunFacts, footer_line
from covey.lines.line import Span
from covey.lines.results import Shown, result_lines, telling_line, wanted_line
from covey.lines.todos import SpokenTodos
from covey.lines.widths import width
from covey.lines.words import counted, dollars, lasted, size
from covey.protocol.endings import CallEnd, closing_result
from covey.protocol.messages import ToolCall, ToolResult

WIDE = Shown(80, root="/project")


def call(name: str, **params: Any) -> ToolCall:
    return ToolCall(id="c1", name=name, input=json.dumps(params), finished=True)


def result(content: str = "", *, is_error: bool = False, name: str = "bash", **metadata: Any) -> ToolResult:
    return ToolResult(
        tool_call_id="c1",
        name=name,
        content=content,
        metadata=json.dumps(metadata) if metadata else "",
        is_error=is_error,
    )


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/new.py\n+z\n*** End Patch"
BEGUN = json.dumps({"patch": PATCH})[:60]
MOVED = "patch src/a.py, b.py, src/new.py and 2 more"


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (call("bash", command="pytest -q"), "$ pytest -q"),
        (call("bash", command="cd x\nmake\nls", working_dir="/project/src"), "$ cd x  … 2 more lines  (in src)"),
        (call("bash", command="serve", background=True), "$ serve  (in the background)"),
        (call("view", file_path="/project/a.py", offset=10, limit=31), "read a.py:10-40"),
        (call("view", file_path="a.py", limit=5), "read a.py:1-5"),
        (call("view", file_path="a.py", offset=7), "read a.py from line 7"),
        (call("view", file_path="/other/a.py"), "read /other/a.py"),
        (call("edit", file_path="/project/src/a.py", old_string="x"), "edit src/a.py"),
        (call("multiedit", file_path="a.py", edits=[]), "edit a.py"),
        (call("write", file_path="a.py", content="x"), "write a.py"),
        (call("apply_patch", patch=PATCH), "patch src/a.py, src/new.py"),
        (call("apply_patch", patch=PATCH.replace("@@", "*** Move to: /project/b.py\n@@") + PATCH), MOVED),
        (call("apply_patch", input=PATCH), "patch src/a.py, src/new.py"),
        (call("apply_patch", patch="nothing of the kind"), "patch"),
        (
            ToolCall(id="c", name="apply_patch", input=json.dumps({"patch": PATCH})[:60], finished=False),
            "patch src/a.py",
        ),
        (ToolCall(id="c", name="bash", input='{"command": "cd x\\nma', finished=False), "$ cd x"),
        (call("grep", pattern="def test_", path="tests", include="*.py"), 'grep "def test_" in tests *.py'),
        (call("glob", pattern="**/*.py"), "find **/*.py"),
        (call("ls"), "list ."),
        (call("fetch", url="https://a.b/c"), "fetch https://a.b/c"),
        (call("download", url="https://a.b/c", file_path="c"), "download https://a.b/c → c"),
        (call("agent", prompt="Find\nall uses"), "agent Find all uses"),
        (call("todos", todos=[{"content": "x", "status": "pending"}]), "todos (1 item)"),
        (call("question", questions=[{"question": "Shall I?"}]), "ask Shall I?"),
        (call("job_output", job_id="j1"), "output of job j1"),
        (
            call("mcp_db_query", sql="select 1", limit=5, deep={"a": [1]}),
            'mcp_db_query sql=select 1 limit=5 deep={"a":[1]}',
        ),
        (ToolCall(id="c", name="bash", input="{not json", finished=True), "$ "),
        (ToolCall(id="c", name="x\x1b[2J\ny", input="[1]", finished=True), "x[2J y"),
    ],
)
def test_a_call_is_shown_as_what_it_does(made: ToolCall, shown: str) -> None:
    assert call_line(made, "/project").text == shown


DIFF = "--- a.py\n+++ a.py\n@@ -3,3 +3,3 @@\n one\n-old\tx\n+new\tx\n two\n@@ -40,1 +40,2 @@\n last\n+more\n"


def shown(made: ToolCall, came: ToolResult, seconds: float | None = 0.1, how: Shown = WIDE) -> list[str]:
    return [line.text for line in result_lines(made, came, seconds, how)]


def test_an_edit_shows_what_it_changed() -> None:
    came = result("Edited", name="edit", diff=DIFF, additions=2, removals=1, file_path="/project/a.py")
    assert shown(call("edit", file_path="/project/a.py"), came) == [
        "✓ edit a.py +2 −1",
        "    4 - old x",
        "    4 + new x",
        "      ⋮",
        "   41 + more",
    ]
    assert diff_lines(DIFF, 80)[1].spans == (Span("    4 ", "dim"), Span("+ new x", "added"))


TWO_FILES = (
    "--- src/a.py\n+++ src/a.py\n@@ -4,3 +4,3 @@\n one\n--- old\n+++ new\n two\n"
    "--- src/new.py\n+++ src/new.py\n@@ -0,0 +1,1 @@\n+z\n\\ No newline at end of file\n"
)


def test_a_patch_shows_what_it_changed_in_each_file_and_takes_no_header_for_a_line() -> None:
    came = result("Applied", name="apply_patch", diff=TWO_FILES, additions=2, removals=1, files=[])
    assert shown(call("apply_patch", patch=PATCH), came) == [
        "✓ patch src/a.py, src/new.py +2 −1",
        "  src/a.py",
        "    5 - -- old",
        "    5 + ++ new",
        "  src/new.py",
        "    1 + z",
        "      \\ No newline at end of file",
    ]


@pytest.mark.parametrize("cut", range(0, len(TWO_FILES), 7))
def test_a_diff_that_is_read_in_two_pieces_is_the_same(cut: int) -> None:
    at = TWO_FILES.rfind("\n", 0, cut) + 1
    first, place = read_diff(TWO_FILES, 0, max(at - 1, 0), beginning(TWO_FILES))
    rest, _ = read_diff(TWO_FILES, at, len(TWO_FILES), place)
    assert first + rest == read_diff(TWO_FILES, 0, len(TWO_FILES), beginning(TWO_FILES))[0]


def test_a_file_whose_diff_was_cut_short_is_followed_by_the_next_one() -> None:
    cut = "--- a\n+++ a\n@@ -1,9 +1,9 @@\n-x\n... the rest of the diff is left out\n--- b\n+++ b\n@@ -1 +1 @@\n-y\n+z\n"
    texts = [line.text for line in diff_lines(cut, 60)]
    assert texts == ["  a", "    1 - x", "      ... the rest of the diff is left out", "  b", "    1 - y", "    1 + z"]


def test_a_long_diff_is_cut_short_unless_all_is_wanted() -> None:
    long = "@@ -0,0 +1,30 @@\n" + "".join(f"+line {n} {'x' * 100}\n" for n in range(30))
    lines = diff_lines(long, 40)
    assert [line.text for line in lines][-1] == "      … 22 more lines"
    assert max(width(line.text) for line in lines) <= 40
    assert len(diff_lines(long, 40, limit=None)) == 30


def test_a_command_shows_its_end_and_how_it_ended() -> None:
    came = result("1\n2\n3\n4\n\nexit code 0", exit_code=0)
    assert shown(call("bash", command="count"), came, 1.24) == ["✓ $ count  (1.2 s)", "  │ 2", "  │ 3", "  │ 4"]
    failed = result("boom\n\nThe exit code is 2.", exit_code=2)
    assert shown(call("bash", command="make"), failed) == ["✗ $ make  exit code 2", "  │ boom"]
    nothing = result("(no output)\n\nThe exit code is 0.", exit_code=0)
    assert shown(call("bash", command="true"), nothing) == ["✓ $ true"]


def test_a_line_that_was_drawn_over_itself_is_shown_as_it_was_left() -> None:
    came = result("\rprogress 10%\rprogress 20%\n\x1b[32mend\x1b[0m\n\nexit code 0", exit_code=0)
    assert [row.text for row in result_lines(call("bash", command="x"), came, None, WIDE)[1:]] == [
        "  │ progress 20%",
        "  │ end",
    ]


def test_lines_that_only_separate_do_not_stand_for_a_failure() -> None:
    ruler = "-" * 70
    said = f"{'=' * 70}\nFAIL: test_add\n{ruler}\nAssertionError: -1 != 3\n\n{ruler}\nRan 1 test\n\nFAILED (failures=1)"
    lines = shown(call("bash", command="test"), result(f"{said}\n\nexit code 1", exit_code=1))
    assert lines[1:] == ["  │ AssertionError: -1 != 3", "  │ Ran 1 test", "  │ FAILED (failures=1)"]
    assert shown(call("bash", command="x"), result("----\n\nexit code 0", exit_code=0))[1:] == ["  │ ----"]
    table = result("+--+\n----- a\n\nexit code 0", exit_code=0)
    assert shown(call("bash", command="x"), table)[1:] == ["  │ +--+", "  │ ----- a"]


def test_what_a_language_server_finds_wrong_with_a_change_is_below_it() -> None:
    found = "".join(f"\n- line {n}: error: Undefined name" for n in range(1, 6))
    came = result(f"Created a.py (2 lines).\n\nDiagnostics of a.py as it is now:{found}", diff="@@ -0,0 +1 @@\n+x\n")
    lines = shown(call("write", file_path="a.py"), came)
    assert lines[2:] == [*(f"  │ line {n}: error: Undefined name" for n in (1, 2, 3)), "  │ and 2 more"]
    whole = shown(call("write", file_path="a.py"), came, how=Shown(80, verbose=True))
    assert len(whole) == 7 and whole[-1] == "  │ line 5: error: Undefined name"


def test_what_the_sandbox_refused_comes_with_what_could_be_allowed() -> None:
    sandbox = {"denied": {"what": "The network is closed. The user can allow it.", "offer": "Allow network once"}}
    lines = shown(call("bash", command="curl x"), result("no\n\nexit 1", exit_code=1, sandbox=sandbox), how=Shown(100))
    assert lines[-1] == "  sandbox: The network is closed. If you are asked again, you can allow network once."


def test_what_a_command_wrote_to_a_place_of_its_own_is_said_not_to_be_there() -> None:
    came = result("(no output)\n\nexit code 0", exit_code=0, sandbox={"unseen": ["/tmp/report.txt"]})
    lines = shown(call("bash", command="echo x > /tmp/report.txt"), came, how=Shown(100))
    said = "sandbox: private to commands, so you do not see what is written there: /tmp/report.txt"
    assert lines[1:] == [f"  {said}"]


@pytest.mark.parametrize(
    ("made", "came", "headline"),
    [
        (call("grep", pattern="x"), result(name="grep", matches=1), '✓ grep "x"  1 match'),
        (call("glob", pattern="*"), result(name="glob", count=12), "✓ find *  12 files"),
        (call("ls"), result(name="ls", entries=3), "✓ list .  3 entries"),
        (call("view", file_path="a"), result(name="view", lines=214), "✓ read a  214 lines"),
        (call("fetch", url="http://a"), result(name="fetch", status=200, bytes=1234), "✓ fetch http://a  200, 1.2 kB"),
        (call("grep", pattern="def "), result(name="grep", matches=2), '✓ grep "def "  2 matches'),
        (call("grep", pattern="\ta\n"), result(name="grep", matches=0), r'✓ grep "\ta\n"  0 matches'),
    ],
)
def test_counts_are_beside_the_call(made: ToolCall, came: ToolResult, headline: str) -> None:
    assert shown(made, came)[0] == headline


def test_a_command_that_is_left_running_is_not_done_and_shows_nothing_that_is_meant_for_the_model() -> None:
    started = result("Started job-1. Read its output with job_output.", job_id="job-1")
    assert shown(call("bash", command="x", background=True), started) == ["● $ x  (in the background)  job-1"]
    moved = result("(no output yet)\n\nNot finished after 1 s: …", job_id="job-4", exit_code=None)
    made = call("bash", command="x")
    assert shown(made, moved) == ["● $ x  goes on in the background as job-4"]
    assert shown(made, moved, how=Shown(80, plain=True)) == ["left running: $ x  goes on in the background as job-4"]
    printed = result("so far\n\nNot finished after 1 s: …", job_id="job-4", exit_code=None)
    assert shown(made, printed)[1:] == ["  │ so far"]


def test_where_todos_are_read_out_only_those_that_changed_are_said() -> None:
    spoken, how = SpokenTodos(), Shown(80, plain=True)

    def said(*todos: tuple[str, str]) -> list[str]:
        listed = [{"content": content, "status": status} for content, status in todos]
        came = result(name="todos", todos=listed)
        return [row.text for row in result_lines(call("todos", todos=listed), came, None, how, spoken)]

    first = said(("read", "in_progress"), ("write", "pending"))
    assert first == ["done: todos (2 items)", "under way: read", "to do: write"]
    second = said(("read", "completed"), ("write", "pending"))
    assert second == ["done: todos (2 items)", "done: read"]
    assert said(("write", "pending")) == ["done: todos (1 item)"]


def test_todos_are_a_checklist() -> None:
    todos = [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "in_progress"},
        {"content": "a very long thing to do", "status": "pending"},
    ]
    lines = shown(call("todos", todos=todos), result(name="todos", todos=todos), how=Shown(20))
    assert lines == ["✓ todos (3 items)", "  ☑ read", "  ▸ write", "  ☐ a very long", "    thing to do"]


def test_an_error_shows_the_line_that_tells_why() -> None:
    assert shown(call("view", file_path="x"), result("No such file.\nmore", is_error=True, name="view")) == [
        "✗ read x  failed",
        "  │ No such file.",
    ]
    assert telling_line("Traceback (most recent call last):\n  x\nValueError: bad") == "ValueError: bad"
    assert telling_line("No such file.\nAn error, too") == "No such file."
    assert telling_line("running\nstill\nfatal: not found\n") == "fatal: not found"
    assert telling_line("") == ""


def test_what_was_denied_did_not_fail_and_shows_what_the_person_said() -> None:
    made = call("bash", command="make")
    words = "The user denied this call. Do not try it again."
    assert shown(made, result(words, is_error=True, denied="person")) == ["✗ $ make  denied"]
    with_words = result(f"{words} The user says: use just", is_error=True, denied="person")
    assert shown(made, with_words) == ["✗ $ make  denied", "  │ use just"]
    by_nobody = result("This call needs a permission, and a lot for the model.", is_error=True, denied="nobody")
    assert shown(made, by_nobody) == ["✗ $ make  denied", "  │ nobody could be asked"]
    by_rule = result("The rule bash:make forbids it.", is_error=True, denied="rule")
    assert shown(made, by_rule) == ["✗ $ make  denied", "  │ The rule bash:make forbids it."]


def test_a_cancelled_call_says_so_and_nothing_else() -> None:
    came = result(CallEnd.CANCELLED.words, is_error=True)
    assert shown(call("bash", command="x"), came) == ["✗ $ x  cancelled"]
    never = result(CallEnd.NOT_BEGUN.words, is_error=True)
    assert shown(call("bash", command="x"), never) == ["✗ $ x  not run"]


def test_all_of_a_result_is_shown_to_whoever_wants_it() -> None:
    content = "\n".join(f"line {n}" for n in range(20))
    lines = shown(call("agent", prompt="x"), result(content, name="agent"), how=Shown(80, verbose=True))
    assert len(lines) == 21 and lines[-1] == "  │ line 19"


def test_for_a_screen_reader_a_call_is_one_line_in_words() -> None:
    plain = Shown(200, plain=True)
    made = call("bash", command="make")
    assert wanted_line(made, plain).text == "next: $ make", "it may still have to be asked about"
    assert shown(made, result("a\nall fine\n\nexit 0", exit_code=0), 2, plain) == ["done: $ make  (2.0 s): all fine"]
    assert shown(made, result("a\nbroke\n\nexit 1", exit_code=1), None, plain) == ["failed: $ make  exit code 1: broke"]


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_nothing_is_wider_than_the_screen(columns: int) -> None:
    how = Shown(columns, verbose=False)
    wide = "日本語" * 40
    for made, came in (
        (call("bash", command=wide), result(f"{wide}\n\nexit 0", exit_code=0)),
        (
            call("edit", file_path=wide),
            result(name="edit", diff=f"@@ -1 +1 @@\n-{wide}\n+{wide}\n", additions=1, removals=1),
        ),
        (call("view", file_path=wide), result(wide, is_error=True)),
    ):
        assert max(width(line.text) for line in result_lines(made, came, 1, how)) <= columns


def test_the_footer_names_the_model_where_there_is_room() -> None:
    facts = RunFacts("x", 1, 0.4, model="claude-opus-5-5")
    assert footer_line(facts, 80).text == 'session x · claude-opus-5-5 · 1 step · 0.4 s · covey run -C "…"'
    assert footer_line(facts, 60).text == 'session x · 1 step · 0.4 s · covey run -C "…"'


def test_the_footer_says_what_it_took_and_what_is_next() -> None:
    facts = RunFacts("4r6Q", steps=12, seconds=41.2, cost=0.25, files=2)
    full = 'session 4r6Q · 12 steps · 41 s · $0.25 · 2 files changed · covey run -C "…" · covey undo'
    assert footer_line(facts, 100).text == full
    assert footer_line(facts, 60).text == "session 4r6Q · 12 steps · 41 s · $0.25 · 2 files changed"
    assert footer_line(RunFacts("x", 1, 0.4), 80).text == 'session x · 1 step · 0.4 s · covey run -C "…"'


def test_small_words() -> None:
    assert [lasted(seconds) for seconds in (0.04, 9.9, 12.3, 75, 130, 7300)] == [
        *("0.0 s", "9.9 s", "12 s", "75 s", "2 min 10 s", "2 h 1 min"),
    ]
    assert (counted(1, "match", "matches"), counted(2, "match", "matches")) == ("1 match", "2 matches")
    assert (dollars(1.5), dollars(0.0012), size(10), size(1500), size(2_500_000)) == (
        *("$1.50", "$0.0012", "10 B", "1.5 kB", "2.5 MB"),
    )


def test_what_a_cancelled_command_had_printed_stays_on_the_screen() -> None:
    made = call("bash", command="make")
    printed = "\n".join(f"line {number}" for number in range(9))
    for output, below in ((printed, ["  │ line 6", "  │ line 7", "  │ line 8"]), ("", [])):
        cut = closing_result(made, CallEnd.CANCELLED, output)
        assert shown(made, cut) == ["✗ $ make  cancelled", *below]


def test_a_question_that_nobody_answered_is_not_done() -> None:
    call = ToolCall(
        id="c", name="question", input='{"questions": [{"type": "yes_no", "question": "Shall I?"}]}', finished=True
    )
    nobody, answered = (
        ToolResult(tool_call_id="c", name="question", content=content, metadata=metadata, is_error=False)
        for content, metadata in (("Nobody answered.", '{"answers": null}'), ("1. Yes", '{"answers": ["yes"]}'))
    )
    (row, *_) = result_lines(call, nobody, None, Shown(80))
    assert row.text.startswith("· ") and row.text.endswith("nobody answered")
    assert result_lines(call, nobody, None, Shown(80, plain=True))[0].text.startswith("not answered: ")
    assert result_lines(call, answered, None, Shown(80))[0].text.startswith("✓ ")


def test_lines_that_stay_as_they_are_are_left_out_with_a_mark_and_no_other_is() -> None:
    diff = "@@ -1,7 +1,7 @@\n a\n b\n-c\n+C\n d\n e\n f\n-g\n+G\n@@ -20,2 +20,3 @@\n t\n+u\n v\n\\ No newline\n"
    lines, _ = read_diff(diff, 0, len(diff), beginning(diff))
    kept = {n: "|".join(f"{each.sign}{each.text}" for each in near_changes(lines, n)) for n in (0, 1)}
    assert kept == {0: "-c|+C|@|-g|+G|@|+u|@|\\ No newline", 1: " b|-c|+C| d|@| f|-g|+G|@| t|+u| v|\\ No newline"}
