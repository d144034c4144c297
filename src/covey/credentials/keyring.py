"""The system's keyring, by the programs that come with it: `secret-tool` (Secret Service), `security` (macOS).

A key goes to them by a pipe, never as an argument, which everybody on the machine can see. They are never taken from
the project.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from covey.credentials.accounts import CredentialsError
from covey.credentials.command import first_line, own_environment
from covey.machine.programs import CannotRun, Ran, find_program, run_bounded

SERVICE = "covey"
WAIT_S = 30.0
"""A locked keyring asks its user for a password first."""
MAX_OUTPUT = 64 * 1024


class Keyring(Protocol):
    """Where keys are kept by the system. All of it blocks, and raises CredentialsError."""

    def get(self, provider: str, account: str) -> str:
        """The key; empty if it is not there."""
        ...

    def put(self, provider: str, account: str, key: str) -> None: ...

    def remove(self, provider: str, account: str) -> None: ...


def find_keyring(environ: Mapping[str, str], project: Path) -> Keyring | None:
    """The keyring of this system; None if there is none that a program can reach."""
    search = environ.get("PATH", os.defpath)
    if sys.platform == "darwin" and (program := find_program("security", search, project)):
        return Security(program, environ)
    if program := find_program("secret-tool", search, project):
        return SecretTool(program, environ)
    return None


@dataclass(frozen=True)
class _Program:
    path: str
    environ: Mapping[str, str]

    def _run(self, *arguments: str, given: str = "") -> Ran:
        try:
            return run_bounded(
                [self.path, *arguments],
                env=own_environment(self.environ),
                timeout_s=WAIT_S,
                limit=MAX_OUTPUT,
                given=given.encode(),
            )
        except CannotRun as failure:
            raise CredentialsError(f"the keyring cannot be used: {self.path} {failure}") from None

    def _failed(self, ran: Ran) -> CredentialsError:
        why = first_line(ran.errors) or f"it ended with code {ran.exit_code}"
        return CredentialsError(f"the keyring cannot be used: {self.path}: {why}")


class SecretTool(_Program):
    """The Secret Service of GNOME, KDE and others, over D-Bus."""

    def get(self, provider: str, account: str) -> str:
        ran = self._run("lookup", *_attributes(provider, account))
        if ran.exit_code and first_line(ran.errors):
            raise self._failed(ran)
        return ran.output.decode("utf-8", "replace").strip()

    def put(self, provider: str, account: str, key: str) -> None:
        label = f"--label=Covey: {provider} ({account})"
        ran = self._run("store", label, *_attributes(provider, account), given=key)
        if ran.exit_code:
            raise self._failed(ran)

    def remove(self, provider: str, account: str) -> None:
        ran = self._run("clear", *_attributes(provider, account))
        if ran.exit_code and first_line(ran.errors):  # without a word: there was nothing to remove
            raise self._failed(ran)


def _attributes(provider: str, account: str) -> list[str]:
    return ["service", SERVICE, "provider", provider, "account", account]


_NOT_FOUND = 44
"""How `security` ends if there is no such item."""


class Security(_Program):
    """The keychain of macOS."""

    def get(self, provider: str, account: str) -> str:
        ran = self._run("find-generic-password", "-s", SERVICE, "-a", f"{provider}/{account}", "-w")
        if ran.exit_code not in (0, _NOT_FOUND):
            raise self._failed(ran)
        return ran.output.decode("utf-8", "replace").strip() if ran.exit_code == 0 else ""

    def put(self, provider: str, account: str, key: str) -> None:
        # As a command that it reads, and in hexadecimal: nothing in it has to be quoted.
        item = f'-s {SERVICE} -a "{provider}/{account}"'
        ran = self._run("-i", given=f"add-generic-password -U {item} -X {key.encode().hex()}\n")
        if ran.exit_code:
            raise self._failed(ran)

    def remove(self, provider: str, account: str) -> None:
        ran = self._run("delete-generic-password", "-s", SERVICE, "-a", f"{provider}/{account}")
        if ran.exit_code not in (0, _NOT_FOUND):
            raise self._failed(ran)
