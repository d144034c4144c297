"""docs/TERMINAL.md says what the key table does, and shows pictures that are there."""

from __future__ import annotations

import re

from covey.config.face_settings import TuiSettings
from tests.support.terminal_page import PAGE, written


def test_the_page_has_the_keys_as_they_are() -> None:
    page = PAGE.read_text("utf-8")
    assert written(page) == page, "run `python -m tests.support.terminal_page`"


def test_every_setting_is_on_the_page_and_every_picture_is_there() -> None:
    page = PAGE.read_text("utf-8")
    assert [name for name in TuiSettings.__struct_fields__ if f"{name} = " not in page] == []
    pictures = re.findall(r"\]\((screens/[^)]+)\)", page)
    assert len(pictures) >= 2
    assert [name for name in pictures if not (PAGE.parent / name).is_file()] == []
