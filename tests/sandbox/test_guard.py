"""What is put back, and what is left alone."""

from __future__ import annotations

from pathlib import Path

from covey.sandbox.guard import Guard


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_did_not_change_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "h").write_text("h")
    before = (tmp_path / "config").stat()
    guard = Guard([f"{tmp_path}/config", f"{tmp_path}/hooks", f"{tmp_path}/nothing"])
    assert guard.restore() == ()
    assert (tmp_path / "config").stat() == before


def test_a_file_comes_back_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("a")
    file.chmod(0o640)
    for change in (lambda: file.write_text("b"), file.unlink, lambda: file.chmod(0o777)):
        guard = Guard([str(file)])
        change()
        assert guard.restore() == (str(file),)
        assert file.read_text() == "a" and file.stat().st_mode & 0o777 == 0o640


def test_what_came_into_being_is_set_aside_and_not_deleted(tmp_path: Path) -> None:
    guard = Guard([f"{tmp_path}/covey.toml"])
    (tmp_path / "covey.toml").write_text("x")
    (tmp_path / "covey.toml.set-aside").write_text("older")
    assert guard.restore() == (f"{tmp_path}/covey.toml",)
    assert names(tmp_path) == ["covey.toml.1.set-aside", "covey.toml.set-aside"]


def test_a_directory_of_hooks_comes_back(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "kept").write_text("k")
    (hooks / "lost").write_text("l")
    guard = Guard([str(hooks)])
    (hooks / "kept").write_text("changed")
    (hooks / "lost").unlink()
    (hooks / "new").write_text("n")
    assert guard.restore() == (str(hooks),)
    assert names(hooks) == ["kept", "lost", "new.set-aside"]
    assert (hooks / "kept").read_text() == "k" and (hooks / "lost").read_text() == "l"


def test_a_directory_that_became_a_link_is_a_directory_again(tmp_path: Path) -> None:
    hooks, elsewhere = tmp_path / "hooks", tmp_path / "elsewhere"
    hooks.mkdir()
    elsewhere.mkdir()
    (hooks / "h").write_text("h")
    guard = Guard([str(hooks)])
    hooks.rename(tmp_path / "moved")
    hooks.symlink_to(elsewhere)
    assert guard.restore() == (str(hooks),)
    assert names(hooks) == ["h"] and not hooks.is_symlink()
    assert names(elsewhere) == []


def test_nothing_is_written_where_the_way_was_bent(tmp_path: Path) -> None:
    git, victim = tmp_path / ".git", tmp_path / "victim"
    git.mkdir()
    victim.mkdir()
    (git / "config").write_text("a")
    guard = Guard([f"{git}/config"])
    git.rename(tmp_path / "old")
    git.symlink_to(victim)
    assert guard.restore() == (f"{git}/config",)
    assert names(victim) == []


def test_what_cannot_be_changed_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a")
    guard = Guard([f"{tmp_path}/config", f"{tmp_path}/commondir"], only_missing=True)
    (tmp_path / "config").write_text("b")
    (tmp_path / "commondir").write_text("c")
    assert guard.restore() == (f"{tmp_path}/commondir",)
    assert (tmp_path / "config").read_text() == "b"
