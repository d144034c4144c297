"""Change the user's own files: add a permission rule, trust a directory. Comments and order stay as they were.

Each change is read again before it is put in place: if it is not the old content and exactly the change, nothing is
written. It is put in place in one step, and two that come at once wait for each other. Blocks; call it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, assert_never

from covey.config.check import check
from covey.config.expand import expand
from covey.config.load import (
    MAX_FILE_BYTES,
    Trusted,
    blaming,
    config_dir,
    parse,
    read_text,
    read_trusted,
    trusted_directories,
)
from covey.config.schema import ConfigError, Files
from covey.config.toml_text import Item, Table, header_of, inline, with_items, with_value, without_item
from covey.machine.locks import locked
from covey.machine.replace import replace_file
from covey.permissions.reach import Reach

RuleKind = Literal["allow", "ask", "deny"]

LOCK_SECONDS = 5.0
"""A change takes milliseconds. A process that holds the lock for longer is stuck, or in a debugger."""

TRUST_HEADER = "# Directories whose covey.toml counts in full. `covey trust` writes this file.\n"


def rule_lines(project: str, kind: RuleKind, rules: Sequence[str], reach: Reach = Reach.WORKSPACE) -> str:
    """What to write into config.toml for rules that hold in one directory."""
    return _table_lines(project, kind, [_entry(rule, reach) for rule in rules])


def asked_lines(project: str, asked: Sequence[tuple[str, str]]) -> str:
    """The same for what calls have asked: each rule with what its call asks for (`PermissionRequest.asks_for`)."""
    reaches: dict[str, Reach] = {reach.wish: reach for reach in Reach}
    return _table_lines(project, "allow", [_entry(rule, reaches[wish]) for rule, wish in asked])


def _table_lines(project: str, kind: RuleKind, entries: Sequence[Item]) -> str:
    return f"{header_of(_rules_table(project))}\n{kind} = [{', '.join(map(inline, entries))}]"


def _entry(rule: str, reach: Reach) -> Item:
    """A rule as an item of the list: a table, if it lets commands get further."""
    match reach:
        case Reach.WORKSPACE:
            return _in_file(rule)
        case Reach.NETWORK:
            return {"rule": _in_file(rule), "network": True}
        case Reach.EVERYTHING:
            return {"rule": _in_file(rule), "sandbox": "off"}
        case _:
            assert_never(reach)


def _rules_table(project: str) -> Table:
    return ("projects", project, "permissions")


def _in_file(rule: str) -> str:
    """In the file a dollar begins a variable; a rule is meant as it is."""
    return rule.replace("$", "$$")


def add_permission_rule(
    environ: Mapping[str, str],
    project: Path,
    kind: RuleKind,
    rules: Sequence[str],
    *,
    reach: Reach = Reach.WORKSPACE,
) -> Path:
    """Write rules for one directory into the user's own config.toml, and give its path.

    Those that are there already stay alone. Raises ConfigError, and changes nothing, when the file cannot be read,
    changed or written.
    """
    path = config_dir(environ) / "config.toml"
    directory = str(project.resolve())
    table = _rules_table(directory)

    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        wanted = deepcopy(old)
        permissions: dict[str, Any] = wanted
        for name in table:
            permissions = permissions.setdefault(name, {})
        present = permissions.get(kind, [])
        known = expand(present, environ, [])
        entries = [_entry(rule, reach) for rule in dict.fromkeys(rules)]
        new = [entry for entry in entries if expand(entry, environ, []) not in known]
        if not new:
            return text, old
        permissions[kind] = [*present, *new]
        return with_items(text, table, kind, new), wanted

    advice = f"Write it there yourself:\n{rule_lines(directory, kind, rules, reach)}"
    change_file(path, lambda content: check(expand(content, environ, []), Files), change, advice)
    return path


def set_value(environ: Mapping[str, str], section: str, key: str, value: str | float | bool) -> Path:
    """Give one plain key of the user's own config.toml a value, and give the path of the file. Raises ConfigError."""
    path = config_dir(environ) / "config.toml"
    # A text that is typed is meant as it is: in the file a dollar begins a variable.
    entry = _in_file(value) if isinstance(value, str) else value

    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        wanted = deepcopy(old)
        wanted.setdefault(section, {})[key] = entry
        return (text if wanted == old else with_value(text, (section,), key, entry)), wanted

    advice = f"Write it there yourself: {key} under {header_of((section,))}."
    change_file(path, lambda content: check(expand(content, environ, []), Files), change, advice)
    return path


def trust(environ: Mapping[str, str], directory: Path) -> bool:
    """Let the covey.toml of this very directory count in full. False: it did already."""
    wanted = str(directory.resolve())
    if wanted in trusted_directories(environ):
        return False
    _change_trust(environ, lambda text: with_items(text or TRUST_HEADER, (), "directories", [wanted]), add=wanted)
    return True


def distrust(environ: Mapping[str, str], directory: Path) -> bool:
    """Trust this directory no more. False: it was not trusted."""
    unwanted = str(directory.resolve())
    if unwanted not in trusted_directories(environ):
        return False
    change_approved(environ, directory, remove=read_trusted(environ).digests(directory))
    _change_trust(environ, lambda text: without_item(text, (), "directories", unwanted), remove=unwanted)
    return True


def change_approved(
    environ: Mapping[str, str], directory: Path, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> None:
    """Change which digests are approved in a directory: see `approvals.py`. Raises ConfigError."""
    place = str(directory.resolve())
    table = ("approved", place)

    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        listed = old.get("approved", {}).get(place, {}).get("digests", [])
        new = [digest for digest in dict.fromkeys(add) if digest not in listed]
        gone = [digest for digest in listed if digest in remove]
        if not new and not gone:
            return text, old
        for digest in gone:
            text = without_item(text, table, "digests", digest)
        if new:
            text = with_items(text or TRUST_HEADER, table, "digests", new)
        kept = [digest for digest in listed if digest not in gone]
        return text, {**old, "approved": {**old.get("approved", {}), place: {"digests": [*kept, *new]}}}

    path = config_dir(environ) / "trusted.toml"
    change_file(path, lambda old: check(old, Trusted), change, "Change its list of what is approved yourself.")


def _change_trust(environ: Mapping[str, str], edit: Callable[[str], str], *, add: str = "", remove: str = "") -> None:
    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        listed = [entry for entry in old.get("directories", []) if entry not in (add, remove)]
        wanted = {**old, "directories": [*listed, *([add] if add else [])]}
        return (text if wanted == old else edit(text)), wanted

    path = config_dir(environ) / "trusted.toml"
    change_file(path, lambda old: check(old, Trusted), change, "Change its list of directories yourself.")


def change_file(
    path: Path,
    must_be_right: Callable[[dict[str, Any]], None],
    change: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]],
    advice: str,
) -> None:
    """Read, change, compare, replace. `change` gives the new text, and what reading it must give."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(path.parent / ".lock", LOCK_SECONDS):
            text = read_text(path)
            with blaming(path):
                old = parse(text or "")
                must_be_right(old)
                new_text, wanted = change(text or "", old)
                must_be_right(wanted)
                _compare(new_text, wanted, advice)
                content = new_text.encode()
                if len(content) > MAX_FILE_BYTES:
                    raise ConfigError(f"cannot become larger than {MAX_FILE_BYTES} bytes; remove something first")
            if new_text != text:
                # Links of the user stay, and lead to the new file.
                replace_file(path.resolve(), content, mode=0o600, sync=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise ConfigError(f"{path}: cannot be changed: {getattr(error, 'strerror', None) or error}. {advice}") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: cannot be changed: this is not text that can be written") from None


def _compare(new_text: str, wanted: dict[str, Any], advice: str) -> None:
    try:
        found = parse(new_text)
    except ConfigError as error:
        raise ConfigError(f"cannot be changed without breaking it ({error}). {advice}") from None
    if found != wanted:
        raise ConfigError(f"is written in a way that cannot be changed safely. {advice}")
