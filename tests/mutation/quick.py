"""The tests of some modules, without pytest: `python -m tests.mutation.quick tests.lifecycle.test_undo_rules …`.

For tests of pure functions, of which a thousand take a tenth of a second so. Tests that want a fixture are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import signature
from itertools import product
from typing import Any


def run(modules: Sequence[str]) -> int:
    """How many tests ran; the first that fails raises what it raises."""
    count = 0
    for name in modules:
        for function in vars(import_module(name)).values():
            if callable(function) and getattr(function, "__name__", "").startswith("test_"):
                for arguments in _cases(function):
                    function(**arguments)
                    count += 1
    return count


def _cases(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """The arguments of a test, as `pytest.mark.parametrize` gives them."""
    tables = []
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            names, values = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            tables.append([dict(zip(names, [row] if len(names) == 1 else row, strict=True)) for row in values])
    given = {name for table in tables for name in table[0]}
    if not hasattr(function, "hypothesis") and given != set(signature(function).parameters):
        return
    for rows in product(*tables):
        yield {name: value for row in rows for name, value in row.items()}


if __name__ == "__main__":
    assert run(sys.argv[1:]), "no test was found"
