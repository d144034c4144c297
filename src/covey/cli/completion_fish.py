"""What completes each option and argument, and the script for fish, which names them one by one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from covey.cli.parser import Described
from covey.config.origins import ALIASES, plain_values

WORDS = {"session": "sessions", "run_id": "runs", "model": "models"}
"""Arguments and options whose values the server knows, by their names in the parser."""


def values_of(command: Described) -> dict[str, str]:
    """By option, or '' for the first argument: what completes it."""
    first = command.arguments[0] if command.arguments else None
    found = {"": WORDS[first.dest]} if first and first.dest in WORDS else {}
    if first and first.choices:
        found[""] = _fixed(map(str, first.choices))
    for option in command.options:
        # `--run-id` is for an id that there is not yet.
        known = WORDS.get(option.dest, "") if option.dest != "run_id" else ""
        kind = "files" if option.metavar in ("FILE", "DIR") else known
        if kind and option.nargs != 0:
            found |= dict.fromkeys(option.option_strings, kind)
        elif option.choices:
            found |= dict.fromkeys(option.option_strings, _fixed(map(str, option.choices)))
    return found


def following(commands: list[Described]) -> dict[str, str]:
    """By the words typed so far, without options: what completes the next, where more than the command counts."""
    tops = {command.words[0]: command.names for command in commands if len(command.words) == 1}
    found = {"help": _fixed(tops), **{f"help {top}": _fixed(names) for top, names in tops.items() if names}}
    values = plain_values()
    found["config set"] = _fixed(values)
    for key, fixed in values.items():
        named = ALIASES.get(key, key)
        if kind := _fixed(fixed) if fixed else WORDS["model"] if named.startswith("models.") else "":
            found[f"config set {key}"] = kind
    return found


def _fixed(words: Iterable[str]) -> str:
    return "=" + " ".join(words)


def fish(commands: list[Described]) -> str:
    lines = [line for command in commands for line in _lines(command)]
    further = [
        f"complete -c covey -n '__covey_typed {typed}'{_values(kind)}" for typed, kind in following(commands).items()
    ]
    return "\n".join((_HEAD, *lines, *further, ""))


_HEAD = """\
# covey completion fish: covey completion fish > ~/.config/fish/completions/covey.fish
function __covey_typed --description 'Whether just these words have been typed, whatever options are among them'
    set -l typed
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or set -a typed $word
    end
    test "$typed" = "$argv"
end
complete -c covey -f"""


def _lines(command: Described) -> list[str]:
    *above, name = command.words
    before = "; and ".join(map(_seen, above)) or "__fish_use_subcommand"
    lines = [f"complete -c covey -n {_quoted(before)} -a {name} -d {_quoted(command.help)}"]
    when = f"complete -c covey -n {_quoted('; and '.join(map(_seen, command.words)))}"
    kinds = values_of(command)
    lines += [_option(when, option, kinds.get(option.option_strings[0], "")) for option in command.options]
    if first := kinds.get(""):
        seen = f"; and not {_seen(first[1:])}" if first.startswith("=") else ""
        words = "; and ".join(map(_seen, command.words))
        lines.append(f"complete -c covey -n {_quoted(words + seen)}{_values(first)}")
    return lines


def _seen(word: str) -> str:
    return f"__fish_seen_subcommand_from {word}"


def _option(when: str, option: argparse.Action, kind: str) -> str:
    names = " ".join(f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in option.option_strings)
    # Without -x, fish offers files beside the values.
    values = f"{' -r' if kind == 'files' else ' -x'}{_values(kind)}" if option.nargs != 0 else ""
    return f"{when} {names}{values} -d {_quoted(option.help or '')}"


def _values(kind: str) -> str:
    if kind == "files":
        return " -F"
    if kind.startswith("="):
        return f" -a {_quoted(kind[1:])}"
    return f" -a '(covey completion --words {kind} 2>/dev/null)'" if kind else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
