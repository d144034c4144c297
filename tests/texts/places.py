"""A home and a project in it, with skills, commands and agents where a test puts them."""

from __future__ import annotations

from pathlib import Path

from covey.context.texts import Texts, read_texts


class Places:
    """`home` is the user's; `project` is a repository with a directory `part` in it, which is the workspace."""

    def __init__(self, directory: Path) -> None:
        self.home = directory.resolve() / "home"
        self.project = directory.resolve() / "project"
        self.root = self.project / "part"
        self.root.mkdir(parents=True)
        self.home.mkdir()
        (self.project / ".git").mkdir()
        self.environ = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}

    def read(self, *, trusted: bool = True, previous: Texts | None = None) -> Texts:
        return read_texts(self.root, self.environ, trusted=trusted, previous=previous)

    def skill(self, name: str, text: str = "", *, base: Path | None = None, body: str = "Do it.") -> Path:
        text = text or f"---\nname: {name}\ndescription: How to {name}.\n---\n{body}\n"
        return put((base or self.root / ".agents") / "skills" / name / "SKILL.md", text)

    def command(self, name: str, text: str, *, base: Path | None = None) -> Path:
        return put((base or self.home / ".claude") / "commands" / f"{name}.md", text)

    def agent(self, name: str, text: str, *, base: Path | None = None) -> Path:
        return put((base or self.home / ".claude") / "agents" / f"{name}.md", text)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
