"""The bash tool: what it hands to the machine, what it tells the model, what it asks a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from covey.permissions.judge import Intent
from covey.sandbox.policy import Mode, Policy
from covey.tools.base import ToolContext, ToolFailed
from covey.tools.bash import BashParams, bash_tool
from covey.tools.output import Output
from covey.tools.processes import Completed, LocalProcesses

pytestmark = pytest.mark.anyio


class FakeProcesses:
    """Notes what is asked for and answers with `completed`."""

    def __init__(self, completed: Completed | Exception = Completed(0, "")) -> None:  # noqa: B008
        self.completed = completed
        self.asked: dict[str, Any] = {}

    async def run_command(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        timeout_s: float | None,
        output_limit: int = 0,
        output: Output | None = None,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> Completed:
        self.asked = {"command": command, "cwd": cwd, "env": env, "tag": tag, "timeout_s": timeout_s}
        if isinstance(self.completed, Exception):
            raise self.completed
        return self.completed


async def test_a_command_runs_in_the_root_without_a_terminal(context: ToolContext) -> None:
    fake = FakeProcesses()
    await bash_tool(fake).run(BashParams(command="ls"), context)
    assert fake.asked["command"] == "ls"
    assert fake.asked["cwd"] == context.root
    assert fake.asked["tag"] == f"{context.process_tag}/c1"
    assert fake.asked["timeout_s"] == 120
    assert fake.asked["env"]["HOME"] == context.env["HOME"]
    assert fake.asked["env"]["PAGER"] == "cat"
    assert fake.asked["env"]["GIT_TERMINAL_PROMPT"] == "0"
    assert fake.asked["env"]["TERM"] == "dumb"
    assert "CI" not in fake.asked["env"], "with it, package managers refuse to update lock files"


async def test_a_strange_call_id_makes_a_plain_tag(context: ToolContext) -> None:
    fake = FakeProcesses()
    await bash_tool(fake).run(BashParams(command="ls"), replace(context, call_id="call/1\0=é" + "x" * 100))
    assert fake.asked["tag"] == f"{context.process_tag}/" + ("call_1___" + "x" * 100)[:64]


async def test_it_may_run_in_a_directory_below_the_root(context: ToolContext, root: Path) -> None:
    (root / "sub").mkdir()
    fake = FakeProcesses()
    await bash_tool(fake).run(BashParams(command="ls", working_dir="sub"), context)
    assert fake.asked["cwd"] == root / "sub"


@pytest.mark.parametrize("directory", ["..", "/", "link", "missing", "file", "~nobody-by-this-name/x"])
async def test_it_does_not_run_anywhere_else(context: ToolContext, root: Path, directory: str) -> None:
    (root / "link").symlink_to("/tmp")
    (root / "file").touch()
    fake = FakeProcesses()
    with pytest.raises(ToolFailed):
        await bash_tool(fake).run(BashParams(command="ls", working_dir=directory), context)
    assert fake.asked == {}


@pytest.mark.parametrize(
    ("completed", "content", "is_error"),
    [
        (Completed(0, "hello\n"), "hello\n\nexit code 0", False),
        (Completed(0, ""), "(no output)\n\nexit code 0", False),
        (Completed(1, "2 failed\n"), "2 failed\n\nexit code 1", False),
        (Completed(-9, ""), "(no output)\n\nexit code 137 (ended by SIGKILL)", False),
        (Completed(-40, ""), "(no output)\n\nexit code 168 (ended by signal 40)", False),
        (
            Completed(None, "so far\n", timed_out=True),
            "so far\n\nNot finished after 120 s: the command and all its processes were ended.",
            True,
        ),
    ],
)
async def test_the_model_reads_output_and_how_it_ended(
    context: ToolContext, completed: Completed, content: str, is_error: bool
) -> None:
    output = await bash_tool(FakeProcesses(completed)).run(BashParams(command="x"), context)
    assert (output.content, output.is_error) == (content, is_error)
    assert output.metadata["exit_code"] == completed.exit_code


async def test_the_model_reads_no_escape_sequences_and_the_last_state_of_a_progress_bar(context: ToolContext) -> None:
    command = r"for i in 10 20 30; do printf '\rprogress %s%%' $i; done; echo; printf '\033[31mred\033]0;t\007\nend'"
    output = await bash_tool(LocalProcesses()).run(BashParams(command=command), context)
    assert output.content == "progress 30%\nred\nend\n\nexit code 0"


@pytest.mark.parametrize("error", [FileNotFoundError("no bash"), ValueError("embedded null byte")])
async def test_what_cannot_start_is_a_failed_call(context: ToolContext, error: Exception) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await bash_tool(FakeProcesses(error)).run(BashParams(command="x"), context)


async def test_an_empty_command_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="empty"):
        await bash_tool(FakeProcesses()).run(BashParams(command=" \n"), context)


def test_a_person_is_asked_about_the_command_not_about_what_the_model_says_of_it(context: ToolContext) -> None:
    bash = bash_tool(FakeProcesses())
    params = BashParams(command="rm -rf \\\n  build", description="List files", working_dir="sub")
    assert bash.intent(params, context) == Intent("bash", "execute", params.command, cwd=str(context.root / "sub"))
    assert bash.describe(params, context) == "rm -rf \\ build (in sub)"
    assert bash.preview(params, context)["command"] == params.command


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"command": 5},
        {"command": "x", "timeout_s": 0},
        {"command": "x", "timeout_s": 601},
        {"command": "x", "timeout": 5},
        {"command": "x", "timeout_s": "soon"},
    ],
)
def test_wrong_parameters_are_refused_with_their_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed, match=r"The input of bash is not valid: .*Correct it"):
        bash_tool(FakeProcesses()).decode(json.dumps(wrong))


@pytest.mark.parametrize("text", ["", "null", "[", '"\ud800"', "[" * 10_000])
def test_input_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed):
        bash_tool(FakeProcesses()).decode(text)


async def test_on_the_real_machine(context: ToolContext, root: Path) -> None:
    output = await bash_tool(LocalProcesses()).run(
        BashParams(command="cat; pwd; sleep 60 >/dev/null 2>&1 & exit 3"), context
    )
    assert (output.content, output.is_error) == (f"{root}\n\nexit code 3", False)


async def test_a_long_output_is_cut_in_its_middle(context: ToolContext) -> None:
    output = await bash_tool(LocalProcesses()).run(BashParams(command="seq 1 100000"), context)
    assert output.content.startswith("1\n2\n")
    assert output.content.endswith("100000\n\nexit code 0")
    assert "bytes are left out here" in output.content
    assert len(output.content) < 31_000


async def test_all_of_a_long_output_is_in_a_file_that_the_result_names(context: ToolContext, tmp_path: Path) -> None:
    context = replace(context, spill_dir=tmp_path / "spill" / "s1")
    output = await bash_tool(LocalProcesses()).run(BashParams(command="seq 1 100000"), context)
    (file,) = (tmp_path / "spill" / "s1").iterdir()
    assert file.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))
    assert output.content.endswith(f"[All of it is in {file}: view it with offset, or search it.]\nexit code 0")
    assert len(output.content) < bash_tool(LocalProcesses()).result_limit


async def test_an_output_that_can_be_shown_leaves_no_file(context: ToolContext, tmp_path: Path) -> None:
    context = replace(context, spill_dir=tmp_path / "spill")
    output = await bash_tool(LocalProcesses()).run(BashParams(command="seq 1 100"), context)
    assert output.content.endswith("100\n\nexit code 0")
    assert not (tmp_path / "spill").exists()


async def test_a_command_in_the_background_is_told_to_whoever_is_asked(context: ToolContext) -> None:
    bash, params = bash_tool(FakeProcesses()), BashParams(command="make watch", background=True)
    assert bash.describe(params, context) == "make watch (left running in the background)"
    assert bash.intent(params, context) == Intent("bash", "execute", "make watch", harmless=False)
    with pytest.raises(ToolFailed, match="no background jobs here"):
        await bash.run(params, context)
