"""A process that puts the terminal in order if ours is killed without being asked (`kill -9`, out of memory).

It is a shell that waits for a line and costs less than a megabyte. If the line comes we have done it ourselves.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from covey.tui.terminal.modes import OFF

SHELL = "/bin/sh"
_SCRIPT = r"""
trap '' INT TERM HUP TSTP TTOU TTIN QUIT PIPE
read -r said
[ "$said" = done ] && exit
printf %b "$1"
case $(stty -a <&3) in *-opost*) stty "$0" <&3 2>/dev/null || stty sane <&3 ;; esac
"""
"""Standard input is the pipe, the other three the terminal. First the screen: a shell is about to write its prompt.
Without output processing the terminal is still in the mode that we had set; else a shell has set its own."""


class ModeGuard:
    def __init__(self, tty: int, attributes: list[Any]) -> None:
        """From now on; `attributes` are those from before. Without a shell there is none."""
        theirs, self._ours = os.pipe()
        self._pid = 0
        script = [
            SHELL,
            "-c",
            _SCRIPT,
            stty_words(attributes),
            OFF.decode().replace("\\", "\\\\").replace("\x1b", "\\033"),
        ]
        actions = [(os.POSIX_SPAWN_DUP2, theirs, 0), *((os.POSIX_SPAWN_DUP2, tty, number) for number in (1, 2, 3))]
        with suppress(OSError):
            # In a group of its own: what is sent to ours, such as ctrl+c, is not for it.
            self._pid = os.posix_spawn(SHELL, script, {"PATH": os.defpath}, file_actions=actions, setpgroup=0)
        os.close(theirs)

    def dismiss(self) -> None:
        """The terminal is in order."""
        with suppress(OSError):
            os.write(self._ours, b"done\n")
        os.close(self._ours)
        if self._pid:
            with suppress(OSError):
                os.waitpid(self._pid, os.WNOHANG)


def stty_words(attributes: list[Any]) -> str:
    """As `stty -g` writes them on Linux. Elsewhere `stty` does not know the form, and what is sane is set."""
    flags, characters = attributes[:4], attributes[6]
    codes = [code if isinstance(code, int) else code[0] for code in characters]
    return ":".join(f"{number:x}" for number in [*flags, *codes])
