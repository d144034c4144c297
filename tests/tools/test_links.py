"""Where the paths of a command line really lead, in a workspace with links of all kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, judge, session_rule
from covey.permissions.links import LINK
from covey.tools import links
from covey.tools.links import WorkspaceLinks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace: links that stay, links that leave, and a secret that a link renames."""
    root = (tmp_path / "a[b]*").resolve()
    outside = tmp_path / "outside"
    for directory in (root / "src" / "deep", root / "docs", root / "out", outside / "dir"):
        directory.mkdir(parents=True)
    for file in (
        root / "a.py",
        root / "src" / "b.py",
        root / "docs" / "c.md",
        outside / "secret",
        outside / "dir" / "f",
    ):
        file.write_text("x")
    (root / ".env").write_text("KEY=1")
    (root / "server.key").write_text("KEY")
    targets: dict[str, Path | str] = {
        "link": outside / "secret",
        "dangling": outside / "nothing",
        "dir": outside / "dir",
        "same": "a.py",
        "source": "src",
        "src/deep/top": root,
        "notes": ".env",
        "out/log": outside / "log",
        "loop": "loop",
    }
    for name, target in targets.items():
        (root / name).symlink_to(target)
    return root


def tag(root: Path, line: str, *, cwd: str = "", allow: tuple[str, ...] = ()) -> str:
    intent = Intent("bash", "execute", line, cwd=cwd, links=WorkspaceLinks(root))
    return judge(intent, Rules(allow=allow, root=str(root)), frozenset(), skip=False).tag


@pytest.mark.parametrize(
    "line",
    [
        "cat a.py src/b.py",
        "cat same source/b.py",
        "cat source/../a.py",
        "cat *.py src/*.py s*/b.py",
        "cat nothing nothing/*",
        "cat loop",
        "ls . ./",
        "ls ..a",
        "cd src && cat b.py deep/../b.py",
        "grep -R x src/b.py docs",
        "ls -R src",
        "du -a src",
        "grep -r x .",
        "find . -type f -exec cat {} +",
        "find . -exec echo {} \\;",
        "find docs -exec cat {} \\;",
        "ls -RL docs",
        "echo *ink s*",
        "for x in *; do echo; done",
        "diff docs src/b.py",
        "cat *",
        "grep -n x docs/*",
    ],
)
def test_a_line_whose_paths_stay_in_the_workspace_is_not_asked_about(root: Path, line: str) -> None:
    (root / "link").unlink()
    assert tag(root, line.replace("cat *", "cat [!d]*.py")) == "harmless"


@pytest.mark.parametrize(
    "line",
    [
        "cat link",
        "cat src/../link",
        "cat {root}/link",
        "cat dangling",
        "cat dir/f",
        "cat dir/../secret",
        "cat src/deep/top/../outside/secret",
        "cat */f",
        "cat di[r]/f",
        "cat {root}/*/f",
        "ls dir",
        "echo dir/*",
        "cat < link",
        "cd dir && cat f",
        "cd source && cat b.py",
        "cd src && cat deep/top/link",
        "grep -R x .",
        "diff -r . src",
        "grep -R x src",
        "du -aL src/deep",
        "ls -RL src",
        "find . -name link -exec cat {{}} +",
        "find . ! -type f -exec cat {{}} +",
        "find . -type d -exec cat {{}}/link \\;",
        "test -e dir/f",
        "head -n1 l*",
    ],
)
def test_a_line_that_follows_a_link_out_of_the_workspace_is_asked_about(root: Path, line: str) -> None:
    assert tag(root, line.format(root=str(root).replace("[", "\\[").replace("*", "\\*"))) == LINK


def test_a_secret_is_one_under_every_name(root: Path) -> None:
    (root / "keys").mkdir()
    (root / "keys" / "my.pem").write_text("KEY")
    for line in ("cat notes", "cat *otes", "cat server.k[e]y", "cat keys/m*", "cat *er.key"):
        assert tag(root, line) == "secret", line
    assert tag(root, "cat keys/*") == "harmless", "a search through all files is not about secrets in particular"


def test_what_a_link_leads_to_is_not_written_because_of_a_rule_about_the_link(root: Path) -> None:
    assert tag(root, "ls > out/new", allow=("write:out/**",)) == "allow-rule"
    assert tag(root, "ls > out/log", allow=("write:out/**",)) == "writes"


def test_paths_are_seen_from_the_directory_of_the_command(root: Path) -> None:
    assert tag(root, "cat ../link", cwd=str(root / "src")) == LINK
    assert tag(root, "cat ../a.py", cwd=str(root / "src")) == "harmless"
    assert tag(root, "cat link", cwd=str(root / "src")) == "harmless", "there is none here"


def test_a_rule_covers_a_command_whatever_its_links_are_and_always_offers_one(root: Path) -> None:
    intent = Intent("bash", "execute", "cat link", links=WorkspaceLinks(root))
    assert session_rule(intent, Rules(root=str(root))) == ("bash:cat link",)
    assert tag(root, "cat link", allow=("bash:cat link",)) == "allow-rule"
    assert tag(root, "cat link; cat dir/f", allow=("bash:cat link",)) == LINK


def test_what_would_take_too_long_is_asked_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        (root / "docs" / f"{number}.md").touch()
    assert tag(root, "cat docs/*") == "harmless"
    assert tag(root, "grep -R x docs") == "harmless"
    monkeypatch.setattr(links, "ENTRIES_LIMIT", 30)
    assert tag(root, "cat docs/*") == LINK
    assert tag(root, "grep -R x docs") == LINK
    assert tag(root, "cat docs/c.md") == "harmless"


def test_plan_mode_refuses_what_leaves_by_a_link(root: Path) -> None:
    intent = Intent("bash", "execute", "cat link", links=WorkspaceLinks(root))
    assert judge(intent, Rules(root=str(root)), frozenset(), skip=True, plan=True).verdict is Verdict.DENY
