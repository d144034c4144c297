"""Files of a workspace as clients find and read them."""

from __future__ import annotations

from covey.protocol.messages import Wire


class FoundFile(Wire, frozen=True):
    """A file whose path fits what somebody has typed."""

    path: str
    """From the workspace's directory."""
    places: tuple[int, ...] = ()
    """Which characters of the path were typed, as code points."""


class FoundFiles(Wire, frozen=True):
    files: tuple[FoundFile, ...]
    """The best first."""
    is_partial: bool = False
    """The workspace has more files than could be listed."""


class FileContent(Wire, frozen=True):
    """A text file of the workspace, or a part of it."""

    path: str
    text: str
    size: int
    """Bytes of the whole file."""
    is_cut: bool = False
    """There is more of it than was sent."""
