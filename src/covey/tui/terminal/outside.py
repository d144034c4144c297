"""What goes through the terminal to the desktop: the clipboard, notifications, the bell. As bytes; pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from covey.lines.plain_text import one_line

MOST_COPIED = 74_000
"""Bytes of text that fit into the hundred thousand that terminals take of one sequence."""
_LONGEST_NOTICE = 240
BELL = b"\x07"


def is_remote(env: Mapping[str, str]) -> bool:
    """Programs here would reach the clipboard of this machine, and the user sits at another."""
    return bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY") or env.get("SSH_CLIENT"))


def through_tmux(sequence: bytes) -> bytes:
    """For the terminal around tmux, which hands it on if `allow-passthrough` is on."""
    return b"\x1bPtmux;" + sequence.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"


def clipboard(text: str, env: Mapping[str, str]) -> bytes:
    """OSC 52. Tmux gets both forms: which one arrives depends on how it is set up. b"" if there is too much."""
    given = text.encode("utf-8", "replace")
    if len(given) > MOST_COPIED:
        return b""
    sequence = b"\x1b]52;c;" + b64encode(given) + b"\x07"
    return sequence + through_tmux(sequence) if env.get("TMUX") else sequence


def notice(title: str, body: str, terminal: str, env: Mapping[str, str]) -> bytes:
    """A notification of the desktop where the terminal is known to make one, and the bell, which reaches everything."""
    title, body = (one_line(text)[:_LONGEST_NOTICE] for text in (title, body))
    sequence = _notice(title, body, f"{terminal} {env.get('TERM', '')} {env.get('TERM_PROGRAM', '')}".lower())
    if sequence and env.get("TMUX"):
        sequence = through_tmux(sequence)
    return sequence + BELL


def _notice(title: str, body: str, kind: str) -> bytes:
    if "kitty" in kind:
        return f"\x1b]99;i=covey:d=0;{title}\x1b\\\x1b]99;i=covey:p=body;{body}\x1b\\".encode()
    if any(name in kind for name in ("ghostty", "foot", "rxvt", "wezterm", "konsole", "contour")):
        return f"\x1b]777;notify;{title.replace(';', ',')};{body}\x1b\\".encode()
    if any(name in kind for name in ("iterm", "windows terminal", "vscode", "tmux", "warp")):
        return f"\x1b]9;{title}: {body}\x1b\\".encode()
    return b""
