"""`covey trust`: which directories may set everything with their covey.toml, and what of it may be started."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from covey.cli import common, doctor_texts, exits
from covey.cli.approval_text import in_short, says_yes
from covey.cli.listing import tell
from covey.cli.screen import plain
from covey.config.approvals import approval_of, approve, entries_of, judge_entries
from covey.config.edit import distrust, trust
from covey.config.hooks import hooks_in_project
from covey.config.load import PROJECT_FILE, keys_that_need_trust, trusted_directories
from covey.config.schema import ConfigError
from covey.lines.plain_text import visible


def main(args: argparse.Namespace) -> int:
    directory = Path(common.working_directory(args.directory)).expanduser().resolve()
    try:
        if args.list:
            return _list()
        code = _remove(directory) if args.remove else _add(directory, yes=args.yes)
    except ConfigError as error:
        common.complain(error.message)
        return exits.FAILED
    if code == exits.OK:
        common.reload_servers(args, str(directory))
    return code


def _add(directory: Path, *, yes: bool) -> int:
    if not directory.is_dir():
        raise exits.UsageError(f"{directory} is not a directory")
    is_new = trust(os.environ, directory)
    tell(f"{directory} is {'now' if is_new else 'already'} trusted.")
    for name, path in _texts_of(directory):
        tell(f"Its {name} is used from now on: {path}")
    if not (directory / PROJECT_FILE).exists():
        tell(f"It has no {PROJECT_FILE}; if it gets one, that counts in full.")
        return _approve(directory, yes=yes)
    try:
        keys = keys_that_need_trust(directory, os.environ)
    except ConfigError as error:
        common.complain(f"{error.message}\nUntil this is corrected, nothing can be run there.")
        return exits.OK
    if keys:
        tell(f"What its {PROJECT_FILE} sets now counts: {', '.join(keys)}.")
    else:
        tell(f"Its {PROJECT_FILE} sets nothing that would need it.")
    return _approve(directory, yes=yes)


def _texts_of(directory: Path) -> list[tuple[str, Path]]:
    """Skills, commands and agents of the project, and their files: words, which need no approval of their own."""
    used = doctor_texts.look(directory, os.environ)["used"]
    inside = [each for each in used if Path(each["path"]).is_relative_to(directory)]
    return [(f"{each['kind']} {each['name']}", Path(each["path"]).relative_to(directory)) for each in inside]


def _approve(directory: Path, *, yes: bool) -> int:
    """Ask about each thing that the directory's files name and nobody has approved as it is now."""
    found = hooks_in_project(directory)
    for line in (*found.left_out, *(f"{section}: of this file only hooks are read" for section in found.ignored)):
        common.complain(f"not taken over: {visible(line)}")
    left = 0
    for judged in judge_entries(entries_of(directory, os.environ), directory, os.environ):
        if judged.is_approved:
            continue
        request = approval_of(judged, directory)
        if yes or says_yes(request):
            approve(os.environ, directory, (judged.digest,))
            tell(f"Approved: {in_short(request)}")
        else:
            left += 1
            common.complain(f"not approved, and not used: {in_short(request)}")
    if left and not sys.stdin.isatty():
        common.complain("Approve what is left at a terminal with `covey trust`, or all of it with `covey trust --yes`.")
    return exits.OK


def _remove(directory: Path) -> int:
    if not distrust(os.environ, directory):
        common.complain(f"{directory} was not trusted; `covey trust --list` shows which are.")
        return exits.FAILED
    tell(f"{directory} is no longer trusted.")
    return exits.OK


def _list() -> int:
    trusted = trusted_directories(os.environ)
    for directory in trusted:
        print(plain(directory) + ("" if os.path.isdir(directory) else "  (is not there)"))
    if not trusted:
        common.note("No directory is trusted yet.")
    return exits.OK
