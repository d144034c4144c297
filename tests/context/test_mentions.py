"""`@path` in a prompt brings a file along; whatever else has an @ in it is left alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from covey.context import mentions
from covey.context.mentions import MAX_MENTIONS, MAX_TEXT_BYTES, expand

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 51)))
    (root / "read me.md").write_text("# Read me\n")
    (root / "test").mkdir()
    (root / "README").write_text("readme\n")
    (tmp_path / "secret").write_text("s3cret")
    return root


def names(prompt: str, root: Path) -> list[str]:
    return [attachment.file_path for attachment in expand(prompt, root)]


def text(prompt: str, root: Path) -> str:
    (attachment,) = expand(prompt, root)
    assert attachment.mime_type == "text/plain" and attachment.is_text
    return attachment.content.decode()


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("@src/a.py", ["src/a.py"]),
        ("look at @src/a.py, please", ["src/a.py"]),
        ("look at (@./src/a.py).", ["src/a.py"]),
        ("what is in @README?!", ["README"]),
        ("@README:", ["README"]),
        ("first\n@README\n@src/a.py\n", ["README", "src/a.py"]),
        ("@README and @README and @./README again", ["README"]),
        ('@"read me.md" please', ["read me.md"]),
        ("@src/", ["src/"]),
        ("@src", ["src/"]),
        ("@src/a.py:10-20 and @src/a.py:7.", ["src/a.py:10-20", "src/a.py:7-7"]),
        ("explain:@README", ["README"]),
        ("über@README", []),
        ("write to ann@README or ann@src/a.py", []),
        ("ann@example.com, @ann, @types/node, @", []),
        ("@missing.py @src/b.py @src/a.py:0 @src/a.py:9-3 @test:3", []),
        ("`@README` and \\@README", []),
        ("@../secret @/etc/passwd @~/x @src/../../secret", []),
        ("@property\ndef name(self): ...", []),
    ],
)
def test_what_is_a_mention(prompt: str, expected: list[str], root: Path) -> None:
    assert names(prompt, root) == expected


def test_paths_are_meant_from_where_the_author_was_and_else_from_the_root(root: Path) -> None:
    (root / "src" / "README").write_text("below\n")
    for prompt, expected in {
        "@a.py:3": ["src/a.py:3-3"],
        "@README": ["src/README"],
        "@../README": ["README"],
        "@src/a.py and @test": ["src/a.py", "test/"],
        "@../../secret": [],
    }.items():
        assert [attachment.file_path for attachment in expand(prompt, root, "src")] == expected
    (root / "out").symlink_to(root.parent)
    assert expand("@secret", root, "out") == [], "a link leads nowhere else"
    assert [attachment.file_path for attachment in expand("@README", root, "gone")] == ["README"]


@pytest.mark.parametrize(
    "code",
    [
        "@test\ndef f(): ...",
        "  @test\n  @README\n  async def f(): ...",
        "@test\nclass A: ...",
        "@test\npublic void run() {\n}",
        "@test\nvoid run() {\n}",
        "@test\nexport class A {}",
        "```python\n@test\n@README\n```",
        "~~~\nsee @README\n~~~",
        "```\nnever closed @README",
    ],
)
def test_decorators_in_pasted_code_are_left_alone(code: str, root: Path) -> None:
    """Also where a file happens to have their name."""
    assert names(code, root) == []
    assert names(f"Why does this fail?\n\n{code}", root) == []


def test_what_stands_around_pasted_code_counts(root: Path) -> None:
    assert names("@README\n\n```\n@test\n```\nand @src/a.py", root) == ["README", "src/a.py"]
    assert names("@test\nis where the tests are", root) == ["test/"]


def test_an_absolute_path_may_lead_inside(root: Path) -> None:
    assert names(f"@{root / 'README'}", root) == ["README"]


def test_a_file_comes_whole(root: Path) -> None:
    assert text("@README", root) == "readme\n"


def test_a_range_of_lines(root: Path) -> None:
    assert text("@src/a.py:10-12", root) == "line 10\nline 11\nline 12"
    assert text("@src/a.py:50-99", root) == "line 50"
    assert text("@src/a.py:51", root) == "(There is no line 51: the file has 50 lines.)"


def test_a_directory_is_listed(root: Path) -> None:
    (root / ".git").mkdir()
    os.mkfifo(root / "pipe")
    assert text("@./", root) == "README\npipe\nread me.md\nsrc/\ntest/"
    assert text("@test", root) == "(This directory is empty.)"
    for number in range(mentions.MAX_ENTRIES + 1):
        (root / "test" / f"{number:03}").write_text("")
    assert text("@test", root).endswith("199\n(and 1 more)")


def test_an_image_comes_as_an_image(root: Path) -> None:
    (root / "shot.dat").write_bytes(PNG)
    (image,) = expand("why does @shot.dat look wrong", root)
    assert (image.mime_type, image.content, image.file_path) == ("image/png", PNG, "shot.dat")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"", None),
    ],
)
def test_images_are_known_by_their_first_bytes(content: bytes, kind: str | None) -> None:
    assert mentions.image_type(content) == kind


def test_what_cannot_be_shown_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "program").write_bytes(b"\x7fELF\0")
    assert "binary file of 5 bytes" in text("@program", root)
    os.mkfifo(root / "pipe")
    assert "not a regular file" in text("@pipe", root)
    (root / "a.png").write_bytes(PNG)
    (root / "b.png").write_bytes(PNG)
    monkeypatch.setattr(mentions, "MAX_TOTAL_IMAGE_BYTES", len(PNG))
    first, second = expand("@a.png @b.png", root)
    assert first.content == PNG
    assert b"too large" in second.content


def test_a_long_file_is_cut_at_the_end_of_a_line(root: Path) -> None:
    (root / "long").write_text("0123456\n" * MAX_TEXT_BYTES)
    shown = text("@long", root)
    assert shown.count("\n") == MAX_TEXT_BYTES // 8
    assert shown.endswith("bytes are not shown. View the file for the rest.)") and "0123456\n(" in shown
    (root / "wide").write_text("é" * MAX_TEXT_BYTES)
    assert text("@wide", root).startswith("é" * (MAX_TEXT_BYTES // 2) + "\n(")


def test_all_together_there_is_a_bound(root: Path) -> None:
    for number in range(MAX_MENTIONS + 5):
        (root / f"f{number}").write_text("x" * MAX_TEXT_BYTES)
    found = expand(" ".join(f"@f{number}" for number in range(MAX_MENTIONS + 5)), root)
    assert len(found) == MAX_MENTIONS
    assert sum(len(attachment.content) for attachment in found) < mentions.MAX_TOTAL_TEXT_BYTES + 100 * MAX_MENTIONS
    assert found[-1].content.startswith(b"(65536 of 65536 bytes are not shown.")


def test_a_link_out_of_the_workspace_is_left_alone(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    (root / "up").symlink_to(root.parent)
    (root / "loop").symlink_to("loop")
    (root / "fine").symlink_to("README")
    assert names("@link @up/secret @up @loop @fine", root) == ["README"]


def test_hostile_prompts_are_read_in_time(root: Path) -> None:
    began = time.monotonic()
    many = ("@" * 100_000, "@a" + ")" * 900, "@x\n" * 50_000, "```" * 50_000, "@a:1-" * 30_000, '@"' * 50_000)
    for prompt in (*many, ("@x\n" + " " * 3000) * 60):
        assert names(prompt, root) == []
    assert names("@a\0b @" + "x/" * 400, root) == []
    assert time.monotonic() - began < 60  # a tenth of a second, where nobody else is busy
