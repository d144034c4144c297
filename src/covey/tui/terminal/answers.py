"""What terminals answer to questions → facts. An answer that tells nothing of use is dropped here."""

from __future__ import annotations

import re

from covey.tui.terminal.facts import (
    Background,
    DeviceAttributes,
    SynchronizedOutput,
    TerminalFact,
    TerminalName,
)

SYNCHRONIZED = 2026
_COLOR = re.compile(r"11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_LONGEST_NAME = 80


def fact_of_csi(given: str, between: str, last: str) -> list[TerminalFact]:
    """An answer that begins with `CSI ?`, `CSI >` or `CSI =`."""
    numbers = tuple(int(part) for part in re.findall(r"\d{1,7}", given))
    match given[:1], between, last, numbers:
        case "?", "$", "y", (mode, state) if mode == SYNCHRONIZED:
            return [SynchronizedOutput(state in (1, 2, 3))]
        case "?", "", "c", _:
            return [DeviceAttributes(numbers)]
        case "?", "", "n", (997, scheme) if scheme in (1, 2):
            return [Background(is_light=scheme == 2)]
    return []


def fact_of_string(kind: str, text: str) -> list[TerminalFact]:
    """An answer between `OSC`, `DCS`, `APC`, `PM` or `SOS` and its end."""
    if kind == "]" and (found := _COLOR.match(text)):
        red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
        return [Background(is_light=0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)]
    if kind == "P" and text.startswith(">|"):
        return [TerminalName(text[2:][:_LONGEST_NAME])]
    return []
