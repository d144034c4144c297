"""Every one of the 102 failures of other systems has a test that is named after it, or a line that says why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
DOCUMENT = FOLDER.parents[1] / "docs" / "RELIABILITY.md"

COUNTS = {"A": 23, "B": 15, "C": 12, "D": 12, "E": 15, "F": 9, "G": 8, "H": 4, "I": 4}
STATEMENTS = {f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)}


def named() -> set[str]:
    """A4 for test_a4_..."""
    names = [
        node.name
        for path in FOLDER.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {found[1].upper() for name in names if (found := re.match(r"test_([a-i]\d+)_", name))}


def explained() -> set[str]:
    """The rows of the document's table that begin with the number of a statement."""
    return set(re.findall(r"^\| ([A-I]\d+) \|", DOCUMENT.read_text("utf-8"), re.MULTILINE))


def test_each_statement_has_a_test_or_a_reason() -> None:
    assert len(STATEMENTS) == 102
    assert named() | explained() == STATEMENTS


def test_no_statement_has_both() -> None:
    assert named() & explained() == set()
