"""What is switched on in a terminal while it is ours, what switches it off again, and what it is asked. As bytes."""

from __future__ import annotations

_KEYBOARD = 1 | 4
"""Kitty protocol: keys that legacy bytes cannot tell apart, and what a key is on a Latin layout. Not all keys as
sequences: terminals lose text of input methods with that."""
_ON = (
    "\x1b[?1049h"  # a screen of our own: the one before comes back
    "\x1b[22;2t"  # keep the title
    "\x1b[?7l"  # a row that is full does not go on in the next
    "\x1b[?25l"
    "\x1b[?2004h"  # pastes are marked
    "\x1b[?1004h"  # focus
    "\x1b[?2031h"  # changes of the colour scheme
    f"\x1b[>{_KEYBOARD}u"
    "\x1b[>4;1m"  # modifyOtherKeys, where the kitty protocol is not known: shift+enter in tmux
    "\x1b[m"  # some read the sequence before as a colour
)
_MOUSE_ON = "\x1b[?1000h\x1b[?1002h\x1b[?1006h"
_MOUSE_OFF = "\x1b[?1006l\x1b[?1002l\x1b[?1000l"
_OFF = (
    "\x1b[?2026l"
    f"{_MOUSE_OFF}"
    "\x1b[>4;0m"
    "\x1b[<u"
    "\x1b[?2031l\x1b[?1004l\x1b[?2004l"
    "\x1b]8;;\x1b\\"
    "\x1b[m\x1b[r\x1b[?7h"
    "\x1b]2;\x1b\\\x1b[23;2t"
    "\x1b[?25h"
    "\x1b[?1049l"
)
OFF = _OFF.encode()
MOUSE_ON, MOUSE_OFF = _MOUSE_ON.encode(), _MOUSE_OFF.encode()
BREAK = b"\x18"
"""Ends a sequence that was written only in part."""
QUESTIONS = (
    b"\x1b[?2026$p"  # synchronized output
    b"\x1b]11;?\x1b\\"  # the background
    b"\x1b[>q"  # name and version
    b"\x1b[c"  # every terminal answers this one, after the others
)
UNASKED = ("", "dumb", "linux")
"""Kinds of terminals (`TERM`) that would show the questions, or know no answer."""


def on(*, mouse: bool) -> bytes:
    return (_ON + _MOUSE_ON * mouse).encode()
