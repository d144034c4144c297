"""Codes that terminals send for keys → the names by which the key table knows them. Pure tables and their reading."""

from __future__ import annotations

from covey.tui.inputs import Key

LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
LETTERS |= {"P": "f1", "Q": "f2", "R": "f3", "S": "f4", "M": "enter", "I": "tab"}
"""The last letter of `CSI …` or `SS3 …`. The last two come from a keypad in application mode, after SS3 only."""
NUMBERS = {1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end"}
NUMBERS |= {code: f"f{number}" for number, code in enumerate((11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24), 1)}
NUMBERS |= {code: f"f{number}" for number, code in enumerate((25, 26, 28, 29, 31, 32, 33, 34), 13)}
"""The number of `CSI number ~`."""
_NAMED = {9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 8: "backspace"}
_KEYPAD = dict(zip(range(57399, 57414), "0123456789./*-+", strict=True)) | {57415: "=", 57416: ","}
"""Keys of the keypad that type something, in the kitty protocol."""
_FUNCTIONAL = {57376 + number: f"f{13 + number}" for number in range(12)} | {57414: "enter"}
_FUNCTIONAL |= dict(
    zip(
        range(57417, 57427),
        ("left", "right", "up", "down", "pageup", "pagedown", "home", "end", "insert", "delete"),
        strict=True,
    )
)
_PRIVATE = range(57344, 63744)
"""Where the kitty protocol puts keys that type nothing: those without a name here are not for us."""
_CONTROLS = {0: "space", 28: "\\", 29: "]", 30: "^", 31: "_"}
_SHIFT, _ALT, _CTRL = 1, 2, 4
_UNKNOWN_TO_US = 8 | 16 | 32
"""Super, hyper and meta: shortcuts of the desktop, none of ours."""


def named(name: str, modifiers: int = 0) -> Key | None:
    """A key that is known by a word, with the modifiers of its sequence (the number there less one)."""
    if modifiers & _UNKNOWN_TO_US:
        return None
    if name == "space" and not modifiers & (_CTRL | _ALT):
        return Key("space", " ")
    return Key(_with(name, modifiers))


def of_control(byte: int, *, alt: bool = False) -> Key:
    """One of the 33 control characters. Line feed is ctrl+j: enter is a carriage return."""
    modifiers = _ALT if alt else 0
    if byte in (9, 13, 27, 127, 8):
        return Key(_with(_NAMED[byte], modifiers))
    return Key(_with(_CONTROLS.get(byte) or chr(byte + 96), modifiers | _CTRL))


def of_char(char: str, *, alt: bool = False) -> Key | None:
    """A character as it came. With alt it types nothing."""
    if not char.isprintable():
        return None
    if not alt:
        return Key("space" if char == " " else char, char)
    if char.isalpha() and char.isupper():
        return Key(_with(char.lower(), _ALT | _SHIFT))
    return Key(_with("space" if char == " " else char, _ALT))


def of_code(code: int, shifted: int, base: int, modifiers: int, text: str) -> Key | None:
    """A key of the kitty protocol, or of modifyOtherKeys: its code, what it is with shift, and on a Latin layout."""
    if modifiers & _UNKNOWN_TO_US:
        return None
    if name := _NAMED.get(code) or _FUNCTIONAL.get(code):
        return named(name, modifiers)
    if char := _KEYPAD.get(code):
        return of_char(char) if not modifiers & (_ALT | _CTRL) else Key(_with(char, modifiers))
    if code in _PRIVATE or code < 32:
        return Key(text, text) if text and code == 0 else None
    if modifiers & (_ALT | _CTRL):
        return _shortcut(code, shifted, base, modifiers)
    if not text:
        text = _char(shifted) or _char(code).upper() if modifiers & _SHIFT else _char(code)
    return Key("space" if text == " " else text, text) if text and text.isprintable() else None


def _shortcut(code: int, shifted: int, base: int, modifiers: int) -> Key | None:
    """On a layout without Latin letters the letter is the one that the key has on a Latin one."""
    char = _char(base) if code > 127 and 32 < base < 127 else _char(code)
    if not char or not char.isprintable():
        return None
    if modifiers & _SHIFT and not char.isalpha() and _char(shifted):
        # ctrl+_ is typed with shift on most keyboards: the sign counts, not how one gets it.
        char, modifiers = _char(shifted), modifiers & ~_SHIFT
    elif char.isalpha() and char.isupper():
        char, modifiers = char.lower(), modifiers | _SHIFT
    return Key(_with(char, modifiers))


def _char(code: int) -> str:
    """'' for what is no character."""
    return chr(code) if 32 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def _with(name: str, modifiers: int) -> str:
    ctrl, alt, shift = modifiers & _CTRL, modifiers & _ALT, modifiers & _SHIFT
    return f"{'ctrl+' * bool(ctrl)}{'alt+' * bool(alt)}{'shift+' * bool(shift)}{name}"
