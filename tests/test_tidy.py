"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES = 60
"""What fits on a screen: all of a function is read at once, or it is not understood."""
MODULE_LINES = 400
"""What fits into one sitting. A file that grows past this holds two ideas."""

RULES = range(1, 19)
SCENARIOS = range(1, 26)

PYTHON = sorted(path for folder in ("src", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*.py"))
PROSE = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "src/**/*.md", "Makefile", ".ci/*") for path in ROOT.glob(pattern)
)
MACHINE_PATH = re.compile(r"(?<![\w.~$}/])/(?:work|root|Users)/")
"""A place on somebody's machine. In /home live people that examples are about."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def long_functions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{node.name} has {lines} lines"


def prints(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"print in line {node.lineno}"


def may_print(path: str) -> bool:
    """Commands talk to people; the rest of the program talks to a log. Tests and benchmarks are commands too."""
    return path.startswith(("src/covey/cli/", "tests/", "bench/", "examples/"))


def complaints(path: str, source: str) -> list[str]:
    """What is untidy about one Python file."""
    tree = ast.parse(source)
    found = list(long_functions(tree))
    if (lines := source.count("\n")) > MODULE_LINES:
        found.append(f"{lines} lines")
    if tree.body and not ast.get_docstring(tree):
        found.append("no module docstring")
    if not may_print(path):
        found += prints(tree)
    return found + untidy_words(source)


def untidy_words(text: str) -> list[str]:
    """What neither code nor prose may hold."""
    unfinished = re.findall(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", text)
    return unfinished + MACHINE_PATH.findall(text)


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_each_python_file_is_tidy(path: Path) -> None:
    assert complaints(name_of(path), path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", PROSE, ids=name_of)
def test_each_text_is_finished_and_knows_no_machine(path: Path) -> None:
    assert untidy_words(path.read_text("utf-8")) == []


def public_classes(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_two_public_classes_have_the_same_name() -> None:
    sources = [path.read_text("utf-8") for path in PYTHON if path.is_relative_to(ROOT / "src")]
    counts = Counter(name for source in sources for name in public_classes(source))
    assert not {name for name, count in counts.items() if count > 1}


def test_public_classes_are_found() -> None:
    source = "class A: ...\nclass _B: ...\n\n@final\nclass C(A):\n    class D: ...\n\ndef f():\n    class E: ...\n"
    assert list(public_classes(source)) == ["A", "C"]


def test_every_rule_and_scenario_has_a_test_with_its_name() -> None:
    named = {name for path in PYTHON if "tests" in path.parts for name in named_by(path.read_text("utf-8"))}
    wanted = {f"r{number}" for number in RULES} | {f"s{number}" for number in SCENARIOS}
    assert named <= wanted, "a test names a rule or a scenario that does not exist"
    assert not wanted - named, "without a test that has their name"


def named_by(source: str) -> Iterator[str]:
    """`r4` for test_r4_..., `s6` for test_scenario_06_..."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = re.match(r"test_(r|s(?=cenario_))(?:cenario_)?0?(\d+)_", node.name)
            if found:
                yield "".join(found.groups())


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("src/covey/a.py", '"""Doc."""\nx = 1\n', []),
        ("tests/__init__.py", "", []),
        ("src/covey/a.py", "x = 1\n", ["no module docstring"]),
        ("src/covey/a.py", '"""Doc."""\n' + "x = 1\n" * 400, ["401 lines"]),
        ("src/covey/a.py", '"""Doc."""\ndef f():\n' + "    x = 1\n" * 60, ["f has 61 lines"]),
        ("src/covey/a.py", '"""Doc."""\nasync def f():\n' + "    x = 1\n" * 59, []),
        ("src/covey/a.py", '"""Doc."""\nprint(1)\n', ["print in line 2"]),
        ("src/covey/cli/a.py", '"""Doc."""\nprint(1)\n', []),
        ("src/covey/a.py", '"""Doc."""\n# TO' + "DO later\n", ["TO" + "DO"]),
        ("src/covey/a.py", '"""Doc."""\nx = "/wo' + 'rk/main/x"\n', ["/wo" + "rk/"]),
        ("src/covey/a.py", '"""In ~/wo' + "rk/x, a/ro" + "ot/b and $HOME/wo" + 'rk/c."""\n', []),
    ],
)
def test_untidiness_is_found(path: str, source: str, found: list[str]) -> None:
    assert complaints(path, source) == found


def test_names_of_tests_are_read() -> None:
    names = ["test_r4_x", "test_scenario_06_y", "test_scenario_25_z", "test_round_3_times", "test_s3_x", "r5_helper"]
    assert list(named_by("\n".join(f"async def {name}(): ..." for name in names))) == ["r4", "s6", "s25"]
