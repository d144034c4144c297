"""Completion as people get it: the scripts in the shells that they are for. What is not installed is not tried."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import WAIT_S, Home

needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")


@pytest.fixture
def env(home: Home, tmp_path: Path) -> dict[str, str]:
    """With `covey` on the path, and a home without anybody's settings of a shell."""
    program = tmp_path / "covey"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m covey "$@"\n')
    program.chmod(0o755)
    return {**home.env, "PATH": f"{tmp_path}:{home.env['PATH']}", "ZDOTDIR": str(tmp_path), "TERM": "dumb"}


@needs_fish
def test_34_fish_completes_commands_options_and_what_the_server_knows(home: Home, env: dict[str, str]) -> None:
    home.covey("run", "--run-id", "fish-run", "hello")
    lines = ["ru", "runs wa", "run --acc", "run --sandbox ", "runs wait fish", "run -m scr", "config s", "completion z"]
    lines += ["help ru", "help runs wa", "config set permissions.san", "config set permissions.sandbox r"]
    lines += ["config set --json tui.mou", "config set model scr"]
    asked = "".join(f"complete -C 'covey {line}'; echo ++; " for line in lines)
    script = f"covey completion fish | source; {asked}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=home.project, env=env, capture_output=True, text=True, timeout=WAIT_S
    )
    offered = [
        [row.split("\t")[0] for row in block.strip().splitlines()] for block in done.stdout.split("++\n")[: len(lines)]
    ]
    assert offered == [
        ["run", "runs"],
        ["wait"],
        ["--accept-edits"],
        ["auto", "off", "required"],
        ["fish-run"],
        ["scripted/default"],
        ["set", "show"],
        ["zsh"],
        ["run", "runs"],
        ["wait"],
        ["permissions.sandbox"],
        ["required"],
        ["tui.mouse"],
        ["scripted/default"],
    ], done.stderr


@needs_zsh
@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        ("covey run --acc", "covey run --accept-edits"),
        ("covey runs wai", "covey runs wait"),
        ("covey run -m scr", "covey run -m scripted/default"),
        ("covey config ed", "covey config edit"),
        ("covey run --model=scr", "covey run --model=scripted/default"),
        ("covey jobs out", "covey jobs output"),
        ("covey help runs wai", "covey help runs wait"),
        ("covey config set permissions.sandbox req", "covey config set permissions.sandbox required"),
    ],
)
def test_34_zsh_completes_them_at_a_terminal(home: Home, env: dict[str, str], typed: str, becomes: str) -> None:
    home.covey("run", "hello")
    screen, line = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], cwd=home.project, env=env, stdin=line, stdout=line, stderr=line, start_new_session=True
    )
    try:
        os.write(screen, b"PS1='ready> '; autoload -U compinit; compinit -u; source <(covey completion zsh)\n")
        _until(screen, "ready> ")
        os.write(screen, f"{typed}\t".encode())
        assert becomes in _until(screen, becomes)
    finally:
        shell.kill()
        shell.wait()
        os.close(screen)
        os.close(line)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["config", "s"], ["show", "set"]),
        (["run", "--model", "=", "scr"], ["scripted/default"]),
        (["run", "--model", "="], ["scripted/default"]),
        (["run", "--model=scr"], ["--model=scripted/default"]),
        (["help", "ru"], ["run", "runs"]),
        (["help", "runs", "wa"], ["wait"]),
        (["help", "run", ""], []),
        (["config", "set", "permissions.san"], ["permissions.sandbox"]),
        (["config", "set", "permissions.sandbox", ""], ["auto", "required", "off"]),
        (["config", "set", "permissions.sandbox", "off", ""], []),
        (["config", "set", "model", "scr"], ["scripted/default"]),
        (["runs", "wait", ""], ["bash-run"]),
        (["runs", "wait", "bash-run", ""], []),
        (["runs", "wait", "--json", ""], ["bash-run"]),
    ],
)
def test_34_bash_completes_the_first_argument_and_values_behind_an_equals_sign(
    home: Home, env: dict[str, str], words: list[str], offered: list[str]
) -> None:
    home.covey("run", "--run-id", "bash-run", "hello")
    script = (
        'source <(covey completion bash); COMP_WORDS=(covey "$@"); COMP_CWORD=$#; _covey; '
        'for each in "${COMPREPLY[@]}"; do echo "$each"; done'
    )
    command = ["bash", "--norc", "-c", script, "bash", *words]
    done = subprocess.run(command, cwd=home.project, env=env, capture_output=True, text=True, timeout=WAIT_S)
    found = [each for each in done.stdout.split() if words[0] != "runs" or each == "bash-run"]
    assert found == offered, done.stderr


def _until(screen: int, text: str) -> str:
    """What is shown, once this is. A shell draws its line anew as it likes, so blanks at its ends do not count."""
    shown, deadline = "", time.monotonic() + WAIT_S
    while text not in shown.replace("\r", "").replace("\x07", ""):
        assert time.monotonic() < deadline, f"{text!r} was not shown, only {shown!r}"
        if select.select([screen], [], [], 0.1)[0]:
            shown += os.read(screen, 65536).decode("utf-8", "replace")
    return shown.replace("\r", "").replace("\x07", "")
