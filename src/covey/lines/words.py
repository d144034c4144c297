"""Small words of the display: counts, times, money, sizes, names."""

from __future__ import annotations

from covey.lines.plain_text import one_line


def counted(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def lasted(seconds: float) -> str:
    """A span of time, as exactly as it matters."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def so_far(seconds: float) -> str:
    """A span of time that still grows: in whole seconds, so that it changes once in each."""
    return f"{int(seconds)} s" if seconds < 60 else lasted(int(seconds))


def dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.01 else f"${amount:.4f}"


def size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def called(name: str | None, me: str) -> str:
    """A name for people; one's own, here or in another window, is `you`."""
    return "you" if name and name == me else one_line(name or "")
