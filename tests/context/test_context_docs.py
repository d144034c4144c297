"""The page about context is true: its numbers are those of the code, and what it points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covey.context import files, git, mentions
from covey.lifecycle import history

DOCS = Path(__file__).parents[2] / "docs"
PAGE = " ".join((DOCS / "CONTEXT.md").read_text("utf-8").split())


@pytest.mark.parametrize(
    "text",
    [
        f"A file may have {files.MAX_FILE_BYTES // 1024} KiB, all of them together {files.MAX_TOTAL_BYTES // 1024} KiB",
        f"short status ({git.MAX_CHANGES} lines)",
        f"up to {mentions.MAX_TEXT_BYTES // 1024} KiB, cut at the end of a line",
        f"the names in the directory, up to {mentions.MAX_ENTRIES}",
        f"WebP, up to {mentions.MAX_IMAGE_BYTES // 1024 // 1024} MiB",
        f"At most {mentions.MAX_MENTIONS} mentions count, with {mentions.MAX_TOTAL_TEXT_BYTES // 1024} KiB of text "
        f"and {mentions.MAX_TOTAL_IMAGE_BYTES // 1024 // 1024} MiB of pictures",
    ],
)
def test_the_numbers_are_right(text: str) -> None:
    assert text in PAGE
    assert (git.GIT_SECONDS, git.MAX_COMMITS) == (2, 3)  # these are written as words


def test_r18_the_notes_are_those_that_the_model_reads() -> None:
    assert history.STOPPED_NOTE in PAGE
    for note, word in ((history.FAILED_NOTE, "Failed"), (history.CUT_OFF_NOTE, "Cut off")):
        assert note == history.STOPPED_NOTE.replace("Stopped by the user", word)
        assert f'"{word}"' in PAGE


def test_what_is_pointed_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)", (DOCS / "CONTEXT.md").read_text("utf-8")):
        assert (DOCS / target).exists(), target
    for template in re.findall(r"`(\w+\.md)`", PAGE):
        if template.islower():
            assert (Path(files.__file__).parent / template).exists(), template
