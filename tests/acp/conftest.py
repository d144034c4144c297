"""A home whose model does what an editor has to show: files, commands, questions, plans, agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acp.editor import Editor
from tests.cli.conftest import Home, home

__all__ = ["home"]
"""A project of one's own on the server of `shared_home`, as for commands."""
LONG_COMMAND = "touch " + " ".join(f"file-{number}" for number in range(300))


def _one_thing(number: int) -> list[dict[str, str]]:
    return [{"content": f"thing {number}", "status": "pending", "active_form": "doing"}]


SCRIPT: dict[str, Any] = {
    "replies": [
        {"when": "Write a summary that replaces it", "steps": [[{"text": "A summary."}]]},
        {"when": "hang", "steps": [[{"text": "one two "}, {"hang": True}]]},
        {
            "when": "many steps",
            "steps": [
                *([{"tool": "todos", "input": {"todos": _one_thing(number)}}] for number in range(105)),
                [{"text": "That was all."}],
            ],
        },
        {"when": "very long", "steps": [[{"text": "0123456789" * 100, "repeat": 4000}]]},
        {"when": "without end", "steps": [[{"text": "word ", "repeat": 100_000, "delay_ms": 20}]]},
        {"when": "slowly", "steps": [[{"text": "word ", "repeat": 60, "delay_ms": 20}]]},
        {
            "when": "make a file",
            "steps": [
                [{"text": "I make it."}, {"tool": "bash", "input": {"command": "touch made"}}],
                [{"text": "Done."}],
            ],
        },
        {
            "when": "long command",
            "steps": [[{"tool": "bash", "input": {"command": LONG_COMMAND}}], [{"text": "Done."}]],
        },
        {
            "when": "write notes",
            "steps": [
                [{"tool": "write", "input": {"file_path": "notes.md", "content": "# Notes\n"}}],
                [{"text": "Written."}],
            ],
        },
        {
            "when": "print",
            "steps": [[{"tool": "bash", "input": {"command": "echo working; sleep 60"}}], [{"text": "."}]],
        },
        {
            "when": "ask me",
            "steps": [
                [
                    {
                        "tool": "question",
                        "input": {
                            "questions": [
                                {"type": "yes_no", "question": "Shall I?"},
                                {
                                    "type": "single_choice",
                                    "question": "Which?",
                                    "choices": [{"label": "red"}, {"label": "blue"}],
                                },
                                {"type": "free_text", "question": "Why?"},
                            ]
                        },
                    }
                ],
                [{"text": "Thank you."}],
            ],
        },
        {
            "when": "plan it",
            "steps": [
                [
                    {"reasoning": "What is there to do?"},
                    {
                        "tool": "todos",
                        "input": {
                            "todos": [
                                {"content": "look", "status": "completed", "active_form": "looking"},
                                {"content": "change", "status": "in_progress", "active_form": "changing"},
                            ]
                        },
                    },
                ],
                [{"text": "That is the plan."}, {"usage": [100, 20]}],
            ],
        },
        {
            "when": "send an agent",
            "steps": [[{"tool": "agent", "input": {"prompt": "look at the secret"}}], [{"text": "It has looked."}]],
        },
        {
            "when": "look at the secret",
            "steps": [[{"tool": "view", "input": {"file_path": "/etc/hostname"}}], [{"text": "I saw it."}]],
        },
        {"when": "echo", "steps": [[{"tool": "mcp__My-Tools__echo", "input": {"text": "hi"}}], [{"text": "Echoed."}]]},
        {"when": "too much", "steps": [[{"text": "and so on"}, {"finish": "max_tokens"}]]},
        {"when": "fail", "steps": [[{"text": "half an answer"}, {"error": "the model broke"}]]},
        {"steps": [[{"text": "You said: ${prompt}"}]]},
    ]
}
CONFIG = """
[models]
large = "scripted/default"
[providers.scripted]
type = "scripted"
script = "{script}"
models = [{{ id = "default", context_window = 10000000 }}, {{ id = "other" }}]
"""


class EditorHome(Home):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        script = directory / "script.json"
        script.write_text(json.dumps(SCRIPT))
        self.config.write_text(CONFIG.format(script=script))
        commands = directory / ".claude" / "commands"
        commands.mkdir(parents=True)
        (commands / "greet.md").write_text("---\ndescription: Say hello\nargument-hint: WHO\n---\nGreet $ARGUMENTS\n")


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = EditorHome(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Home]:
    """For tests that do something to the server."""
    made = EditorHome(tmp_path)
    yield made
    made.close()


StartEditor = Callable[..., Editor]


@pytest.fixture
def start() -> Iterator[StartEditor]:
    """Starts editors, and ends them."""
    editors: list[Editor] = []

    def started(home: Home, capabilities: dict[str, Any] | None = None, **options: Any) -> Editor:
        editors.append(Editor(home, capabilities, **options))
        return editors[-1]

    yield started
    for editor in editors:
        editor.close()
