"""Commands that may be allowed with any further words, because those can only choose what of the project is run.

A prefix is offered for programs of a list, and for no other. What is on it takes names of files, tests and checks; its
arguments hold neither code nor another command to run. So `python`, `make` (`--eval`), `cargo` (`--config`) and `go`
(`-exec`) are not on it; of `make` the very command can be allowed. A script of `npm` may have further words after `--`,
where they are the script's own, and none before it (`--node-options`). That the project's own tests and scripts do
whatever they do is meant.
"""

from __future__ import annotations

import re
from dataclasses import replace

from covey.permissions.judge import Intent, Rules, is_covered
from covey.permissions.lines import spell
from covey.permissions.rules import escape
from covey.permissions.shell import SimpleCommand, Unparsed, parse

_PYTHON_MODULES = ("pytest", "unittest", "mypy", "black", "isort", "ruff check", "ruff format")
PREFIXES: tuple[tuple[str, ...], ...] = tuple(
    tuple(prefix.split())
    for prefix in (
        *("pytest", "mypy", "black", "isort", "ruff check", "ruff format", "pyright", "rspec", "rubocop"),
        *("tsc", "rustfmt", "gofmt", "git add", "git commit"),
        *(f"{python} -m {module}" for python in ("python", "python3") for module in _PYTHON_MODULES),
        *(f"uv run {module}" for module in _PYTHON_MODULES),
        *(f"poetry run {module}" for module in _PYTHON_MODULES),
    )
)
"""As they are typed. A command of the list by its path, such as `./pytest`, is another program."""
_SCRIPT = re.compile(r"npm (test|run [A-Za-z0-9_][A-Za-z0-9_:.-]*)(?= -- |$)")


def prefix_rules(intent: Intent, rules: Rules) -> tuple[str, ...]:
    """Rules that allow the command of this intent with any further words; none if that could be any command.

    For a line with one command that is not harmless: of several, nobody would see which one becomes how wide.
    """
    line = parse(intent.subject) if intent.tool == "bash" else None
    if line is None or isinstance(line, Unparsed):
        return ()
    bare = Rules(root=rules.root)
    doubtful = [
        command
        for command in line.commands
        if command.words and command.parent < 0 and not is_covered(replace(intent, subject=spell(command.words)), bare)
    ]
    offered = _offered(doubtful[0]) if len(doubtful) == 1 else ()
    return offered if offered and is_covered(intent, replace(bare, allow=offered)) else ()


def _offered(command: SimpleCommand) -> tuple[str, ...]:
    texts = tuple(word.text for word in command.words)
    if script := _SCRIPT.match(" ".join(texts)):
        return (f"bash:{escape(script[0])}", f"bash:{escape(script[0])} -- *")
    known = next((prefix for prefix in PREFIXES if texts[: len(prefix)] == prefix), ())
    prefix = escape(" ".join(known))
    return (f"bash:{prefix}", f"bash:{prefix} *") if prefix else ()
