"""Which files speak to the model, in which order, how much of them, and whose words they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from covey.config.schema import ContextSettings
from covey.context import files as files_module
from covey.context.files import MAX_FILE_BYTES, MAX_TOTAL_BYTES, ContextFile, read_context_files


class Home:
    """A home with a repository in it, and a directory in that: `~/code/project/part`."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.project = self.path / "code" / "project"
        self.part = self.project / "part"
        self.part.mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.config = self.path / "config" / "covey"
        self.config.mkdir(parents=True)
        self.environ = {"HOME": str(self.path), "XDG_CONFIG_HOME": str(self.path / "config")}

    def read(
        self, root: Path | None = None, names: Sequence[str] | None = None, *, trusted: bool = False
    ) -> tuple[ContextFile, ...]:
        names = ContextSettings().files if names is None else names
        return read_context_files(root or self.part, names, self.environ, trusted=trusted)

    def texts(
        self, root: Path | None = None, names: Sequence[str] | None = None, *, trusted: bool = False
    ) -> list[str]:
        return [file.text for file in self.read(root, names, trusted=trusted)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_outermost_comes_first_and_the_users_own_before_all(home: Home) -> None:
    (home.part / "AGENTS.md").write_text("of the part\n")
    (home.project / "AGENTS.md").write_text("of the project")
    (home.path / "AGENTS.md").write_text("above the repository")
    (home.config / "AGENTS.md").write_text("mine")
    assert home.read() == (
        ContextFile(str(home.config / "AGENTS.md"), "mine", is_own=True),
        ContextFile(str(home.project / "AGENTS.md"), "of the project"),
        ContextFile("AGENTS.md", "of the part"),
    )


def test_names_count_in_their_order_and_each_has_a_local_variant(home: Home) -> None:
    for name in (
        "AGENTS.md",
        "AGENTS.local.md",
        "CLAUDE.md",
        "CRUSH.local.md",
        ".cursorrules",
        ".cursorrules.local.md",
    ):
        (home.part / name).write_text(name)
    assert home.texts() == ["AGENTS.md", "AGENTS.local.md", "CLAUDE.md", "CRUSH.local.md", ".cursorrules"]
    (home.part / "docs").mkdir()
    (home.part / "docs" / "RULES.md").write_text("rules")
    assert home.texts(names=["docs/RULES.md", "CLAUDE.md"]) == ["rules", "CLAUDE.md"]


def test_outside_a_repository_the_home_is_the_end(home: Home) -> None:
    root = home.path / "notes" / "deep"
    root.mkdir(parents=True)
    for directory in (home.path.parent, home.path, root.parent, root):
        if directory != home.path.parent:
            (directory / "AGENTS.md").write_text(directory.name)
    assert home.texts(root) == [home.path.name, "notes", "deep"]
    home.environ["HOME"] = str(home.path / "code")
    assert home.texts(root) == ["deep"]  # neither in a repository nor in the home: nobody else is believed


def test_the_same_text_is_given_once(home: Home) -> None:
    (home.part / "AGENTS.md").write_text("the same\n")
    (home.part / "CLAUDE.md").symlink_to("AGENTS.md")
    (home.part / "GEMINI.md").write_text("the same")
    (home.part / "CRUSH.md").write_text("@AGENTS.md\n")
    (home.part / "COVEY.md").write_text("@./missing.md\n")
    assert [file.name for file in home.read()] == ["AGENTS.md", "COVEY.md"]


def test_long_files_that_differ_only_at_the_end_of_what_is_read_are_two(home: Home) -> None:
    (home.part / "AGENTS.md").write_text("x" * MAX_FILE_BYTES + "a")
    (home.part / "CLAUDE.md").write_text("x" * MAX_FILE_BYTES + "ab")
    assert len(home.read()) == 2


def test_a_long_file_is_cut_and_says_by_how_much(home: Home) -> None:
    (home.part / "AGENTS.md").write_text("é" * MAX_FILE_BYTES)
    (file,) = home.read()
    assert file.text == "é" * (MAX_FILE_BYTES // 2)
    assert file.cut_bytes == MAX_FILE_BYTES


def test_room_is_given_to_what_is_nearest(home: Home) -> None:
    names = ["A.md", "B.md", "C.md"]
    for name in names:
        (home.part / name).write_text(name[0] * MAX_FILE_BYTES)
    (home.part / "C.local.md").write_text("near")
    read = home.read(names=names)
    assert [file.name for file in read] == [*names, "C.local.md"]
    assert [file.cut_bytes for file in read] == [MAX_FILE_BYTES, 4, 0, 0]
    assert sum(len(file.text) for file in read) == MAX_TOTAL_BYTES


def test_there_is_a_bound_for_how_many(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MAX_FILES", 2)
    for name in ("A.md", "B.md", "C.md"):
        (home.part / name).write_text(name)
    assert home.texts(names=["A.md", "B.md", "C.md"]) == ["B.md", "C.md"]


def test_only_regular_text_files_are_read(home: Home) -> None:
    os.mkfifo(home.part / "AGENTS.md")
    (home.part / "CLAUDE.md").mkdir()
    (home.part / "CRUSH.md").write_bytes(b"\x7fELF\0\0")
    (home.part / "GEMINI.md").symlink_to("GEMINI.md")
    (home.part / "COVEY.md").write_text(" \n")
    (home.part / ".cursorrules").write_bytes(b"\xef\xbb\xbfGr\xfc\xdfe")
    assert home.texts() == ["Gr\ufffd\ufffde"]


def test_names_that_lead_elsewhere_are_no_names(home: Home) -> None:
    (home.path / "secret").write_text("s3cret")
    assert home.texts(names=[str(home.path / "secret"), "../../../secret", "", "a\0b"], trusted=True) == []


def test_without_trust_a_link_does_not_lead_out_of_its_directory(home: Home) -> None:
    secret = home.path / "secret"
    secret.write_text("s3cret")
    (home.part / "AGENTS.md").symlink_to(secret)
    (home.part / "inner").mkdir()
    (home.part / "inner" / "real.md").write_text("inside")
    (home.part / "CLAUDE.md").symlink_to("inner/real.md")
    (home.part / "linked").symlink_to(home.path)
    names = ["AGENTS.md", "CLAUDE.md", "linked/secret"]
    assert home.texts(names=names) == ["inside"]
    assert home.texts(names=names, trusted=True) == ["s3cret", "inside"]


def test_the_users_own_file_may_be_a_link(home: Home) -> None:
    (home.path / "dotfiles").write_text("mine")
    (home.config / "AGENTS.md").symlink_to(home.path / "dotfiles")
    (file,) = home.read()
    assert file.is_own and file.text == "mine"
