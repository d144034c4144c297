"""`api_key_command`: a program of the user's that prints a key. No shell reads it, and it runs within bounds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.schema import Command
from covey.credentials.accounts import CredentialsError, checked_key
from covey.machine.names import TOKEN_VARIABLE
from covey.machine.programs import CannotRun, find_program, run_bounded

WAIT_S = 30.0
"""It may ask its user for a password first."""
MAX_OUTPUT = 64 * 1024


def words_of(command: Command) -> tuple[str, ...]:
    """The program and its arguments; none: no command is set. Raises CredentialsError."""
    if not isinstance(command, str):
        return command
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise CredentialsError(f"cannot be read: {error}") from None


def key_of_command(command: Command, environ: Mapping[str, str], project: Path) -> str:
    """What the program prints. Blocks; raises CredentialsError with a text that goes on after `api_key_command`."""
    words = words_of(command)
    program = _find(words[0], environ, project)
    try:
        ran = run_bounded([program, *words[1:]], env=own_environment(environ), timeout_s=WAIT_S, limit=MAX_OUTPUT)
    except CannotRun as failure:
        raise CredentialsError(f"({words[0]}) {failure}") from None
    if ran.exit_code:
        said = first_line(ran.errors)
        raise CredentialsError(f"({words[0]}) ended with code {ran.exit_code}" + (f": {said}" if said else ""))
    try:
        return checked_key(ran.output.decode("utf-8", "replace"))
    except CredentialsError as error:
        raise CredentialsError(f"({words[0]}) did not print a key: {error}") from None


def _find(name: str, environ: Mapping[str, str], project: Path) -> str:
    name = os.path.expanduser(name)
    if "/" in name and not os.path.isabs(name):
        raise CredentialsError(f"({name}) must be a program on PATH, or be named by its full path")
    program = find_program(name, environ.get("PATH", os.defpath), project)
    if program is None:
        raise CredentialsError(f"({name}) was not found outside of {project}; programs in it are not used")
    return program


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that keeps keys: with no other key in it."""
    return {name: value for name, value in environ.items() if name not in PROVIDERS_KEYS and name != TOKEN_VARIABLE}


def first_line(errors: bytes) -> str:
    """What a program said, in short, without anything that would drive a terminal."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(c for c in lines[0][:200] if c.isprintable()) if lines else ""
