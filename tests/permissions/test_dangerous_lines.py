"""No line of a frozen corpus of dangerous lines is run unasked. It was written by somebody who had not read the judge.

Only judged here, never run: `python -m tests.sandbox.corpus_runner` runs them, without the judge.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections import Counter
from pathlib import Path

import pytest

from covey.permissions.judge import Rules, Verdict, decide
from covey.tools.bash import BashParams, bash_tool
from covey.tools.processes import LocalProcesses
from tests.permissions.dangerous_project import CORPUS, HARMS, DangerousLine, DangerousProject, dangerous_lines

LINES = dangerous_lines()
HARMLESS_AS_RUN: dict[str, str] = {}
"""Lines that may be allowed all the same, each with the reason. There is none."""
INSIDE = ({"@OUT@": "src", "@MARK@": "pwned"}, {"@OUT@": "./src", "@MARK@": "src/pwned"})
"""Places in the workspace: with them a line cannot be asked about merely because a path leads out."""
ORDINARY = (
    "ls -la; pwd; head -3 src/*.py",
    "git status && git log -p",
    "cat README.md | sort | uniq -c",
    "grep -rn hello src",
    'find . -name "*.py"',
    "awk -F, '{print $2}' data.csv",
    "for f in one two; do echo hello; wc -l data.csv; done",
)
"""What is allowed there: else nothing would be shown by the others being asked about."""


class Judge:
    """The bash tool's own judgement in the project that the lines are about, with its links on the disk."""

    def __init__(self, project: DangerousProject) -> None:
        self.project = project
        self._tool, self._context = bash_tool(LocalProcesses()), project.context({})
        self._rules = Rules(root=str(project.root))

    def verdict(self, line: str, *, plan: bool = False) -> Verdict:
        intent = self._tool.intent(BashParams(self.project.filled(line)), self._context)
        return decide(intent, self._rules, frozenset(), skip=plan, plan=plan)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    base = tmp_path_factory.mktemp("corpus").resolve()
    project = DangerousProject(base)
    project.make_outside(("one", "two"))
    project.make_workspace({"PATH": os.environ["PATH"], "HOME": str(base)})
    return Judge(project)


def of(harm: str) -> list[DangerousLine]:
    return [line for line in LINES if line.harm == harm and line.line not in HARMLESS_AS_RUN]


def moved_inside(line: str, places: dict[str, str]) -> str:
    for word, place in {**places, "@WMARK@": "made", "@SOCK@": "src/s.sock"}.items():
        line = line.replace(word, place)
    return line


def test_the_corpus_is_as_it_was_frozen() -> None:
    content = gzip.decompress(CORPUS.read_bytes())
    assert hashlib.sha256(content).hexdigest() == "54808380c672fa70dc4ea3d0d512fcb0ccd5cfb0fcd5b229af8189c54f1bbf54"
    assert len({line.line for line in LINES}) == len(LINES) == 5803
    assert set(Counter(line.harm for line in LINES)) == set(HARMS)
    assert HARMLESS_AS_RUN.keys() <= {line.line for line in LINES}


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_allowed_in_the_same_workspace(judge: Judge, line: str) -> None:
    assert judge.verdict(line) is Verdict.ALLOW


@pytest.mark.parametrize("harm", HARMS)
def test_no_dangerous_line_is_run_unasked(judge: Judge, harm: str) -> None:
    assert [line.line for line in of(harm) if judge.verdict(line.line) is Verdict.ALLOW] == []


@pytest.mark.parametrize("harm", HARMS)
def test_no_dangerous_line_is_run_in_plan_mode(judge: Judge, harm: str) -> None:
    assert [line.line for line in of(harm) if judge.verdict(line.line, plan=True) is not Verdict.DENY] == []


@pytest.mark.parametrize("harm", [harm for harm in HARMS if harm != "read"])  # that is no harm inside
@pytest.mark.parametrize("places", INSIDE)
def test_they_are_asked_about_also_if_all_their_paths_are_inside(
    judge: Judge, harm: str, places: dict[str, str]
) -> None:
    lines = (moved_inside(line.line, places) for line in of(harm))
    assert [line for line in lines if judge.verdict(line) is Verdict.ALLOW] == []


def test_a_read_outside_is_not_allowed_because_its_target_is_missing(tmp_path: Path) -> None:
    """The links are in the workspace, and what they lead to is not there (yet)."""
    project = DangerousProject(tmp_path.resolve())
    project.make_workspace({"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    judge = Judge(project)
    assert [line.line for line in of("read") if judge.verdict(line.line) is Verdict.ALLOW] == []
