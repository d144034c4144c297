"""Bytes of a terminal → inputs, and facts about it. Pure and incremental: the time is given, and nothing raises.

Whatever is no key, no mouse and no text is an answer of the terminal, late or unasked, and is never typed in. Text that
comes at once and has line ends inside was pasted, also where the terminal does not say so: nothing of it is a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.tui.inputs import FocusChange, Key, Mouse, Paste, TerminalInput
from covey.tui.terminal import key_names
from covey.tui.terminal.answers import fact_of_csi, fact_of_string
from covey.tui.terminal.facts import TerminalFact

Decoded = TerminalInput | TerminalFact

ESCAPE_PATIENCE_S = 0.05
"""How long after an ESC more of a sequence may come; then it was the key. As long as vim waits."""
ANSWER_PATIENCE_S = 1.0
"""How long after the beginning of a sequence the rest may come over a slow line. Until then it is not text."""
BURST_S = 0.03
"""Text that comes so soon after a paste that was not announced still belongs to it."""
BURST_CHARACTERS = 128
"""Nobody types so much at once: from here on text is given as one paste instead of many keys."""
LONGEST_SEQUENCE = 4096
"""Answers are shorter. The rest of a longer one is passed over, and not kept."""
LONGEST_PASTE = 1 << 26
"""64 MiB. What is beyond it is dropped, so that a terminal that never ends a paste costs no more."""

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_BREAKS_PASTE = (b"\x03", b"\x1b[99;5u")
"""Ctrl-C, if it comes alone: so one gets out of a paste whose end was lost."""
_CSI = re.compile(rb"\x1b\[([0-?]*)([ -/]*)([@-~])")
_CSI_BEGUN = re.compile(rb"\x1b\[[0-?]*[ -/]*")
_SGR_MOUSE = re.compile(rb"\x1b\[<([^Mm\x00-\x1f]{0,64})([Mm])")
_SGR_MOUSE_BEGUN = re.compile(rb"\x1b\[<[^Mm\x00-\x1f]{0,64}\Z")
_STRING = re.compile(rb"\x1b([\]P_^X])([^\x00-\x1f]*)(?:\x1b\\|\x07)")
"""OSC, DCS, APC, PM and SOS. One that a control character breaks off is none."""
_STRING_BEGUN = re.compile(rb"\x1b[\]P_^X][^\x00-\x1f]*\x1b?\Z")
_STRING_LEFT = re.compile(rb"[^\x00-\x1f]*(?:\x1b\\|\x07)?")
_TEXT = re.compile(rb"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
"""Text with line ends and tabs."""
_BEGUN_CHARACTER = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


class Decoder:
    def __init__(self) -> None:
        self._pending = b""
        """The beginning of a sequence or of a character."""
        self._paste: list[bytes] | None = None
        self._paste_bytes = 0
        self._is_in_long_string = False
        self._pasted_until = float("-inf")
        """Until when plain text is more of a paste that was not announced."""

    @property
    def patience_s(self) -> float | None:
        """How long to wait for the rest of what has begun before `expire` is called. None: nothing has begun."""
        if self._paste is not None or not (self._pending or self._is_in_long_string):
            return None
        is_perhaps_a_key = self._pending.startswith(b"\x1b") and len(self._pending) <= 2
        return ESCAPE_PATIENCE_S if is_perhaps_a_key else ANSWER_PATIENCE_S

    def feed(self, data: bytes, now: float) -> list[Decoded]:
        """What has come by now. `data` is all that could be read at once."""
        decoded: list[Decoded] = []
        if self._paste is not None and data in _BREAKS_PASTE:
            decoded += self._end_paste()
        data, self._pending = self._pending + data, b""
        at = 0
        while at < len(data):
            if self._paste is not None:
                at = self._take_paste(data, at, decoded)
            elif self._is_in_long_string:
                at = self._pass_over_string(data, at)
            elif data[at] == 0x1B:
                at = self._take_sequence(data, at, decoded)
            elif found := _TEXT.match(data, at):
                at = self._take_text(data, at, found.end(), now, decoded)
            else:
                decoded.append(key_names.of_control(data[at]))
                at += 1
        return _without_passed_drags(decoded)

    def expire(self) -> list[Decoded]:
        """Nothing more has come: an ESC was the key, alt was held, or an answer was broken off."""
        pending, self._pending, self._is_in_long_string = self._pending, b"", False
        if pending == b"\x1b":
            return [Key("escape")]
        if len(pending) == 2 and pending[0] == 0x1B:
            if pending[1] == 0x1B:
                return [Key("escape"), Key("escape")]
            key = key_names.of_char(chr(pending[1]), alt=True)
            return [key] if key else []
        return []

    # ── pastes ──

    def _take_paste(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        end = data.find(_PASTE_ENDS, at)
        if end >= 0:
            self._add_to_paste(data[at:end])
            decoded += self._end_paste()
            return end + len(_PASTE_ENDS)
        kept = _begun_at_end(data, at, _PASTE_ENDS)
        self._add_to_paste(data[at : len(data) - kept])
        self._pending = data[len(data) - kept :]
        return len(data)

    def _add_to_paste(self, piece: bytes) -> None:
        assert self._paste is not None
        piece = piece[: LONGEST_PASTE - self._paste_bytes]
        self._paste.append(piece)
        self._paste_bytes += len(piece)

    def _end_paste(self) -> list[Decoded]:
        text = _unified(b"".join(self._paste or []).decode("utf-8", "replace"))
        self._paste, self._paste_bytes, self._pending = None, 0, b""
        return [Paste(text)] if text else []

    # ── text ──

    def _take_text(self, data: bytes, at: int, end: int, now: float, decoded: list[Decoded]) -> int:
        """Keys, or a paste that was not announced."""
        if end == len(data) and (begun := _BEGUN_CHARACTER.search(data, max(at, end - 4))):
            self._pending = begun[0]
            end -= len(begun[0])
        text = data[at:end].decode("utf-8", "ignore")
        if _is_burst(text) or now <= self._pasted_until:
            self._pasted_until = now + BURST_S
            decoded.append(Paste(_unified(text)))
            return end + len(self._pending)
        ended = text.rstrip("\r\n\t")
        if len(ended) >= BURST_CHARACTERS:
            decoded.append(Paste(ended))
            text = text[len(ended) :]
        for char in text:
            key = key_names.of_control(ord(char)) if char in "\r\n\t" else key_names.of_char(char)
            if key:
                decoded.append(key)
        return end + len(self._pending)

    # ── sequences ──

    def _take_sequence(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        """One that begins with the ESC here; gives where the next thing begins."""
        follows = data[at + 1 : at + 2]
        if not follows:
            self._pending = data[at:]
            return len(data)
        if follows == b"[":
            return self._take_csi(data, at, decoded)
        if follows == b"O":
            return self._take_ss3(data, at, decoded)
        if follows in b"]P_^X":
            return self._take_string(data, at, decoded)
        if follows == b"\x1b":
            return self._take_double_escape(data, at, decoded)
        return self._take_alt(data, at, decoded)

    def _take_csi(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        if data.startswith(_PASTE_BEGINS, at):
            self._paste = []
            return at + len(_PASTE_BEGINS)
        if mouse := _SGR_MOUSE.match(data, at):
            decoded += _mouse(mouse[1], is_release=mouse[2] == b"m")
            return mouse.end()
        if _SGR_MOUSE_BEGUN.match(data, at):
            return self._wait_for_rest(data, at)
        if data.startswith(b"\x1b[M", at):  # a mouse in the form before SGR: three bytes, whatever they are
            return at + 6 if len(data) >= at + 6 else self._wait_for_rest(data, at)
        if data.startswith(b"\x1b[[", at):  # f1 to f5 of the Linux console
            decoded += [Key(f"f{data[at + 3] - 64}")] if data[at + 3 : at + 4] in (b"A", b"B", b"C", b"D", b"E") else []
            return at + 4 if len(data) >= at + 4 else self._wait_for_rest(data, at)
        if found := _CSI.match(data, at):
            decoded += _csi(found[1].decode("ascii"), found[2].decode("ascii"), chr(found[3][0]))
            return found.end()
        begun = _CSI_BEGUN.match(data, at)
        assert begun is not None  # it begins with ESC [
        return self._wait_for_rest(data, at) if begun.end() == len(data) else begun.end()

    def _take_ss3(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        if len(data) < at + 3:
            return self._wait_for_rest(data, at)
        letter = chr(data[at + 2])
        if name := key_names.LETTERS.get(letter):
            decoded.append(Key(name))
        elif "j" <= letter <= "y":  # the keypad in application mode
            decoded += [key] if (key := key_names.of_char(chr(ord(letter) - 64))) else []
        else:
            decoded.append(Key("alt+shift+o"))
            return at + 2
        return at + 3

    def _take_string(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        if found := _STRING.match(data, at):
            decoded += fact_of_string(chr(found[1][0]), found[2].decode("utf-8", "replace"))
            return found.end()
        if len(data) - at <= LONGEST_SEQUENCE and _STRING_BEGUN.match(data, at):
            return self._wait_for_rest(data, at)
        return self._pass_over_string(data, at + 2)

    def _pass_over_string(self, data: bytes, at: int) -> int:
        """To its end, or to the control character that breaks it off, with which something else begins."""
        found = _STRING_LEFT.match(data, at)
        assert found is not None  # it may be empty
        if found.end() == len(data) - 1 and data.endswith(b"\x1b"):
            self._pending, self._is_in_long_string = b"\x1b", True
            return len(data)
        self._is_in_long_string = found.end() == len(data) and data[-1] != 7 and not data.endswith(b"\x1b\\")
        return found.end()

    def _take_double_escape(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        """Escape twice, or alt with a key that has a sequence, as some terminals send it."""
        if data[at + 2 : at + 3] in (b"[", b"O"):
            before = len(decoded)
            end = self._take_sequence(data, at + 1, decoded)
            if self._pending:
                self._pending = data[at:]
            elif len(decoded) == before + 1 and isinstance(key := decoded[before], Key) and "+" not in key.name:
                decoded[before] = Key(f"alt+{key.name}")
            else:
                decoded.insert(before, Key("escape"))  # and an answer right after it
            return end
        if len(data) == at + 2:
            return self._wait_for_rest(data, at)
        decoded.append(Key("escape"))
        return at + 1

    def _take_alt(self, data: bytes, at: int, decoded: list[Decoded]) -> int:
        byte = data[at + 1]
        if byte < 0x20 or byte == 0x7F:
            decoded.append(key_names.of_control(byte, alt=True))
            return at + 2
        length = 1 + (byte >= 0xC2) + (byte >= 0xE0) + (byte >= 0xF0)
        if len(data) < at + 1 + length and _BEGUN_CHARACTER.match(data, at + 1):
            return self._wait_for_rest(data, at)
        char = data[at + 1 : at + 1 + length].decode("utf-8", "ignore")
        key = key_names.of_char(char, alt=True) if len(char) == 1 else None
        decoded += [key] if key else []
        return at + 1 + (length if key else 1)

    def _wait_for_rest(self, data: bytes, at: int) -> int:
        if len(data) - at <= LONGEST_SEQUENCE:
            self._pending = data[at:]
        return len(data)


def _is_burst(text: str) -> bool:
    """More than one line at once: a person who types sends enter last, if at all."""
    inside = text.rstrip("\r\n")
    return "\r" in inside or "\n" in inside


def _unified(text: str) -> str:
    """Terminals send a carriage return for a line end that is pasted."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _begun_at_end(data: bytes, at: int, mark: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of the mark."""
    longest = min(len(mark) - 1, len(data) - at)
    return next((count for count in range(longest, 0, -1) if data.endswith(mark[:count])), 0)


def _csi(given: str, between: str, last: str) -> Sequence[Decoded]:
    if given[:1] in ("?", ">", "=") or between:
        return fact_of_csi(given, between, last)
    if not given and last in ("I", "O"):
        return [FocusChange(last == "I")]
    groups = [[_number(part) for part in group.split(":")] for group in given.split(";")]
    numbers = [group[0] for group in groups]
    modifiers, event = _modifiers(groups[1]) if len(groups) > 1 else (0, 1)
    key: Key | None = None
    if last == "Z":
        key = Key("shift+tab")
    elif event == 3 or min(numbers) < 0:
        return []
    elif last == "u":
        key = _kitty(groups, modifiers)
    elif last == "~" and numbers[0] == 27 and len(numbers) == 3:
        key = key_names.of_code(numbers[2], 0, 0, modifiers, "")
    elif last == "~" and (name := key_names.NUMBERS.get(numbers[0])):
        key = key_names.named(name, modifiers)
    elif last in "ABCDFHPQRS" and numbers[0] in (0, 1):
        key = key_names.named(key_names.LETTERS[last], modifiers)
    return [key] if key else []


def _kitty(groups: list[list[int]], modifiers: int) -> Key | None:
    code, shifted, base = (*groups[0], 0, 0)[:3]
    text = ""
    if len(groups) > 2:
        codes = [c for c in groups[2] if 32 <= c < 0x110000 and not 0x7F <= c < 0xA0 and not 0xD800 <= c < 0xE000]
        text = "".join(map(chr, codes))
    return key_names.of_code(code, shifted, base, modifiers, text)


def _modifiers(group: list[int]) -> tuple[int, int]:
    """The bits, and whether it was pressed (1), repeated (2) or released (3)."""
    return max(group[0], 1) - 1, group[1] if len(group) > 1 and group[1] else 1


def _number(text: str) -> int:
    """-1 for what is none; nothing is 0."""
    return int(text) if text.isdigit() and len(text) < 8 else -1 if text else 0


_BUTTONS = {0: "left", 1: "middle", 2: "right"}


def _mouse(given: bytes, *, is_release: bool) -> list[Decoded]:
    numbers = [_number(part) for part in given.decode("latin-1").split(";")]
    if len(numbers) != 3 or numbers[0] < 0 or not (0 < numbers[1] < 10_000 and 0 < numbers[2] < 10_000):
        return []
    code, column, row = numbers[0], numbers[1] - 1, numbers[2] - 1
    with_shift = bool(code & 4)
    if code & 64:
        if code & 3 > 1 or is_release:  # to the side
            return []
        return [Mouse("wheel_down" if code & 1 else "wheel_up", row, column, "none", with_shift)]
    button = code & 3
    if button == 3 or code >= 128:
        return []
    action = "release" if is_release else "drag" if code & 32 else "press"
    return [Mouse(action, row, column, _BUTTONS[button], with_shift)]  # type: ignore[arg-type]


def _without_passed_drags(decoded: list[Decoded]) -> list[Decoded]:
    """Of places that a drag has passed at once only the last one counts."""
    return [
        each
        for each, after in zip(decoded, [*decoded[1:], None], strict=False)
        if not (_is_drag(each) and _is_drag(after))
    ]


def _is_drag(each: Decoded | None) -> bool:
    return isinstance(each, Mouse) and each.action == "drag"
