"""Where in a workspace its user is, and how its files are called from there."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from itertools import takewhile

from covey.client.connect import is_text


def cwd_in(root: str) -> str:
    """The current directory from the root of the workspace; '' at the root, outside of it, and if it is gone."""
    try:
        path = posixpath.relpath(os.getcwd(), os.path.realpath(root))
    except OSError:
        return ""
    return path if path != "." and path.split("/")[0] != ".." and is_text(path) else ""


def seen_from(cwd: str, path: str, places: Sequence[int] = ()) -> tuple[str, tuple[int, ...]]:
    """A path of the workspace as it is written in `cwd`, and where its characters at `places` are then."""
    if not cwd:
        return path, tuple(places)
    ours, theirs = cwd.split("/"), path.split("/")[:-1]
    pairs = zip(ours, theirs, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    left_out = sum(len(name) + 1 for name in theirs[:shared])
    before = "../" * (len(ours) - shared)
    moved = tuple(place - left_out + len(before) for place in places if place >= left_out)
    return before + path[left_out:], moved
