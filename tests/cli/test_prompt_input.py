"""What goes into a prompt."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from covey.cli import prompt_input
from covey.cli.exits import UsageError
from covey.cli.prompt_input import read_attachments, read_prompt, unseen


def test_words_are_joined_and_stdin_comes_first() -> None:
    assert read_prompt(["review", "this"], None) == "review this"
    assert read_prompt(["review"], io.BytesIO(b"a diff\n")) == "a diff\n\nreview"
    assert read_prompt([], io.BytesIO(b"only\nthis\n")) == "only\nthis"
    assert read_prompt(["only this"], io.BytesIO(b"\n")) == "only this"
    assert read_prompt([], None) == ""


def test_bytes_that_are_no_text_do_not_stop_it() -> None:
    assert read_prompt([], io.BytesIO(b"a\xffb")) == "a\ufffdb"


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\x00\x00", b"\xff\xfe\xfd" * 10, b"text \x00 text"])
def test_23_what_is_no_text_is_refused_on_stdin_with_what_to_do(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"is no text.*-a FILE"):
        read_prompt(["what is it?"], io.BytesIO(content))


def test_23_attachments_that_no_model_sees_are_named(tmp_path: Path) -> None:
    contents = {"a.py": b"x", "a.sql": b"select 1", "a.png": b"\x89PNG", "core": b"\x00", "a.pdf": b"%PDF\x00"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert unseen(read_attachments([str(tmp_path / name) for name in contents])) == ["core", "a.pdf"]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.py", b"x = 1", "text/x-python"),
        ("a.png", b"\x89PNG", "image/png"),
        ("README", "höre".encode(), "text/plain"),
        ("core", b"\x00\x01", "application/octet-stream"),
        ("other", b"\xff\xfe", "application/octet-stream"),
        ("a.json", b"{}", "application/json"),
        ("a.sql", b"select 1", "text/plain"),
        ("a.pdf", b"%PDF\x00", "application/pdf"),
    ],
)
def test_attachments_know_what_they_are(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(content)
    (attachment,) = read_attachments([str(tmp_path / name)])
    assert (attachment.file_name, attachment.mime_type, attachment.content) == (name, kind, content)
    assert attachment.file_path == str(tmp_path / name)


def test_attachments_that_cannot_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_attachments([str(tmp_path / "none")])
    with pytest.raises(UsageError, match="Is a directory"):
        read_attachments([str(tmp_path)])
    monkeypatch.setattr(prompt_input, "MAX_ATTACHED_BYTES", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    (tmp_path / "half").write_bytes(b"x" * 6)
    with pytest.raises(UsageError, match="larger"):
        read_attachments([str(tmp_path / "big")])
    with pytest.raises(UsageError, match="together"):
        read_attachments([str(tmp_path / "half"), str(tmp_path / "half")])
