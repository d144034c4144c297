"""The three files of a configuration, and the environment in which they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from covey.config.load import Loaded, load
from covey.config.schema import ConfigError

LOCAL = '[providers.local]\ntype = "openai-compatible"\nbase_url = "http://127.0.0.1:8080/v1"\n'


@dataclass
class Files:
    """The three files, and the environment in which they are read."""

    base: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environ["XDG_CONFIG_HOME"] = str(self.base / "config")
        self.user = self.base / "config" / "covey" / "config.toml"
        self.trusted = self.base / "config" / "covey" / "trusted.toml"
        self.project = self.base / "project" / "covey.toml"
        self.extra = self.base / "extra.toml"
        self.user.parent.mkdir(parents=True)
        self.project.parent.mkdir()

    def trust(self) -> None:
        self.trusted.write_text(f"directories = ['{self.project.parent.resolve()}']")

    def load(self, *, extra: bool | None = None) -> Loaded:
        wanted = self.extra.exists() if extra is None else extra
        return load(self.project.parent, self.extra if wanted else None, self.environ)

    def refused(self, *, extra: bool | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(extra=extra)
        return str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
