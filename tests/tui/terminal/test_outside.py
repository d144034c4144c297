"""The clipboard, notifications and the bell, through whatever is between the terminal and the desktop."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path

import pytest

from covey.tui.terminal import outside
from covey.tui.terminal.clipboard import CopyResult, copy, tools
from tests.tui.screen_model import TerminalModel


def _copy(text: str, env: dict[str, str], *, knows_osc52: bool = False) -> tuple[CopyResult, TerminalModel]:
    model = TerminalModel(80, 24)
    done = asyncio.run(copy(text, lambda data: model.feed(data.decode()), env, knows_osc52=knows_osc52))
    return done, model


def _tool(folder: Path, name: str, script: str) -> dict[str, str]:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "DISPLAY": ":9", "WAYLAND_DISPLAY": "w9"}


@pytest.mark.skipif(sys.platform != "linux", reason="the programs are those of Linux")
def test_row_37_only_a_program_that_took_it_makes_it_copied(tmp_path: Path) -> None:
    env = _tool(tmp_path, "wl-copy", f"cat > {tmp_path}/got")
    done, model = _copy("text ü\n", env)
    assert done == CopyResult("copied", "copied with wl-copy")
    assert (tmp_path / "got").read_text() == "text ü\n"
    assert model.copied == []


@pytest.mark.skipif(sys.platform != "linux", reason="the programs are those of Linux")
def test_row_37_a_program_that_fails_is_not_believed(tmp_path: Path) -> None:
    env = _tool(tmp_path, "wl-copy", "exit 1") | _tool(tmp_path, "xclip", "cat > /dev/null; exit 3")
    env |= _tool(tmp_path, "xsel", "exit 1")  # else one that this machine has would be tried
    done, model = _copy("text", env)
    assert done.outcome == "sent" and "asked" in done.message
    assert model.copied == [f"c;{base64.b64encode(b'text').decode()}"]
    done, model = _copy("x" * 100_000, env)
    assert done == CopyResult(
        "failed", "not copied: wl-copy, xclip, xsel failed, and it is too long to ask the terminal"
    )
    assert model.copied == []


def test_row_37_without_any_program_it_is_not_called_copied() -> None:
    done, model = _copy("text", {"PATH": "/nowhere"})
    assert done == CopyResult("sent", "the terminal was asked to copy; it may not know how")
    assert len(model.copied) == 1
    assert _copy("text", {"PATH": "/nowhere"}, knows_osc52=True)[0].message == "the terminal was asked to copy"
    assert _copy("x" * 100_000, {"PATH": "/nowhere"})[0].outcome == "failed"


def test_row_37_over_ssh_the_clipboard_of_the_other_machine_is_not_meant(tmp_path: Path) -> None:
    env = _tool(tmp_path, "wl-copy", f"cat > {tmp_path}/got") | {"SSH_CONNECTION": "1 2 3 4"}
    done, model = _copy("text", env)
    assert done.outcome == "sent" and len(model.copied) == 1
    assert not (tmp_path / "got").exists()


def test_row_37_tmux_gets_it_in_every_form(tmp_path: Path) -> None:
    env = _tool(tmp_path, "tmux", f'echo "$@" > {tmp_path}/asked; cat > {tmp_path}/got') | {"TMUX": "x", "SSH_TTY": "y"}
    done, model = _copy("text", env)
    assert done.outcome == "sent" and "tmux" in done.message
    assert (tmp_path / "asked").read_text() == "load-buffer -w -\n" and (tmp_path / "got").read_text() == "text"
    assert len(model.copied) == 1, "raw, for set-clipboard"
    assert model.passed_on == [f"\x1b]52;c;{base64.b64encode(b'text').decode()}\x07"], "and passed through"


def test_each_desktop_has_its_programs() -> None:
    assert list(tools({}, "darwin")) == [("pbcopy",)]
    assert [tool[0] for tool in tools({"DISPLAY": ":0"}, "linux")] == ["xclip", "xsel"]
    assert list(tools({"WSL_DISTRO_NAME": "x"}, "linux")) == [("clip.exe",)]
    assert list(tools({}, "linux")) == []


@pytest.mark.parametrize(
    ("terminal", "env", "notices"),
    [
        ("kitty(0.35)", {}, ["99;i=covey:d=0;Covey", "99;i=covey:p=body;it is done"]),
        ("", {"TERM": "xterm-ghostty"}, ["777;notify;Covey;it is done"]),
        ("", {"TERM_PROGRAM": "iTerm.app"}, ["9;Covey: it is done"]),
        ("XTerm(380)", {"TERM": "xterm"}, []),
    ],
)
def test_a_notice_takes_the_form_that_the_terminal_knows_and_always_rings(
    terminal: str, env: dict[str, str], notices: list[str]
) -> None:
    model = TerminalModel(80, 24)
    model.feed(outside.notice("Covey", "it\x1b is\n\x07done", terminal, env).decode())
    assert model.notices == notices
    assert model.bells == 1 and model.copied == []


def test_a_notice_reaches_through_tmux_and_so_does_the_bell() -> None:
    model = TerminalModel(80, 24)
    model.feed(outside.notice("a", "b", "tmux 3.4", {"TMUX": "x"}).decode())
    assert model.passed_on == ["\x1b]9;a: b\x1b\\"]
    assert model.bells == 1
