"""Every command at a real terminal, with text of a model that wants to drive it: nothing but plain text arrives."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.cli.main import build_parser
from covey.cli.terminal_text import TerminalStream, escaped_json, json_text, one_line, plain
from tests.cli.conftest import SCRIPT, WAIT_S, Home

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[31m",
    "c1": "\x9b31m\x90q\x9c\x85",
    "back": "safe\rfake\b\b",
    "direction": "\u202egnp.exe\u202c\u2066x\u2069",
    "zero width": "a\u200bb\u2060c\ufeffd\u00ade\u200df",
    "lines": "\u2028\u2029\x0b\x0c",
    "tags": "\U000e0041",
}
HOSTILE = "BEGIN " + " ".join(ATTACKS.values()) + " END"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
OWN = re.compile(r"\r\x1b\[K|\x1b\[\d+A\r\x1b\[J|\x1b\[[0-9;]{1,12}m")
"""What Covey draws itself: it erases rows that it has drawn, and gives colours."""
SCRIPTED = {
    "replies": [
        {
            "when": "attack",
            "steps": [
                [
                    {"text": HOSTILE},
                    {"tool": f"ba{HOSTILE}\nFAKE LINE", "input": {}},
                    {
                        "tool": "bash",
                        "input": {"command": f"printf '%s' '{HOSTILE}'; cat nothing", "description": HOSTILE},
                    },
                    {"tool": "write", "input": {"file_path": "a\u202e\x9b\nFAKE FILE.txt", "content": HOSTILE}},
                    {"tool": "view", "input": {"file_path": f"/none/{HOSTILE}\nFAKE"}},
                ],
                [{"text": f"{HOSTILE}\nlast"}],
            ],
        },
        {"when": "break", "steps": [[{"error": f"broke {HOSTILE}\nFAKE LINE"}]]},
        *SCRIPT["replies"],
    ]
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A project in which a hostile model has answered: in its messages, tools, files, title and errors."""
    directory = tmp_path_factory.mktemp("attacked")
    home = Home(directory)
    (directory / "script.json").write_text(json.dumps(SCRIPTED))
    home.covey("run", "--yolo", "attack")
    home.covey("run", f"break {HOSTILE}")
    for session in home.sessions():
        home.covey("sessions", "rename", session["id"], f"{HOSTILE}\nFAKE LINE")
    yield home
    home.close()


def on_terminal(home: Home, *args: str) -> str:
    """All that a command sends to a terminal, as it is."""
    screen, line = pty.openpty()
    process = subprocess.Popen(
        home.command(*args),
        cwd=home.project,
        env=home.env,
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
    )
    os.close(line)
    seen, deadline = b"", time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        ready, _, _ = select.select([screen], [], [], 0 if ended else 0.1)
        if ready:
            try:
                data = os.read(screen, 65536)
            except OSError:  # its other end is closed
                break
            seen += data
        elif ended:
            break
    process.kill()
    process.wait()
    os.close(screen)
    return seen.decode("utf-8").replace("\r\n", "\n")


def sent(home: Home, *args: str) -> str:
    seen = OWN.sub("", on_terminal(home, *args))
    assert not (found := FORBIDDEN.search(seen)), f"{found[0]!r} in {seen!r}"
    assert "\nFAKE LINE" not in seen, f"a line of its own in {seen!r}"
    return seen


COMMANDS = [
    ("run", "--yolo", "attack"),
    ("run", "attack"),
    ("run", "--json", "--yolo", "attack"),
    ("run", "--stream-json", "--yolo", "attack"),
    ("run", "break"),
    ("run", "--json", "break"),
    ("run", "-s", f"no {HOSTILE}", "x"),
    ("sessions",),
    ("sessions", "--json"),
    ("sessions", "show", "{id}"),
    ("sessions", "show", "{id}", "--json"),
    ("sessions", "export", "{id}"),
    ("sessions", "export", "{id}", "--json"),
    ("sessions", "rename", "{id}", f"{HOSTILE}\nFAKE LINE"),
    ("sessions", "show", f"none{HOSTILE}"),
    ("sessions", "--grep", "last"),
    ("stats", "--by", "directory"),
    ("runs", "--all"),
    ("runs", "--all", "--json"),
    ("runs", "--all", "--everywhere"),
    ("runs", "wait", f"none{HOSTILE}"),
    ("jobs",),
    ("logs",),
    ("mcp",),
    ("config",),
    ("diff",),
    ("undo", "--dry-run", "-s", "{id}"),
    ("undo", "--dry-run", "--json", "-s", "{id}"),
    ("fork", "--json", "-s", "{id}"),
    ("status",),
    ("status", "--json"),
    ("models",),
    ("models", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("trust", "--list"),
    ("config",),
    ("config", "set", f"key{HOSTILE}", "x"),
    ("logs",),
    ("jobs",),
    ("diff", "{id}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:40])
def test_no_command_sends_anything_raw_to_a_terminal(attacked: Home, command: tuple[str, ...]) -> None:
    session = next(found["id"] for found in attacked.sessions() if found["message_count"] > 2)
    assert sent(attacked, *(word.replace("{id}", session) for word in command)).strip()


SILENT = {"serve", "stop", "init", "login", "logout", "help", "completion", "acp", "web", "nodes", "store"}
"""Commands that show no text of a model, a project or a server alone; what `acp` prints is for a program."""


def test_every_command_is_among_them() -> None:
    (commands,) = [action.choices for action in build_parser()._actions if action.dest == "command"]
    assert commands
    assert set(commands) - {command for command, *_ in COMMANDS} == SILENT


def test_what_is_exported_into_a_pipe_is_as_it_was_written(attacked: Home) -> None:
    session = next(found["id"] for found in attacked.sessions() if found["message_count"] > 2)
    exported = attacked.covey("sessions", "export", session).stdout
    assert HOSTILE.replace("\r", "\n") in exported, "read as text, each line end is one"


def test_json_says_the_same_to_a_program() -> None:
    assert json.loads(json_text({"a": HOSTILE})) == {"a": HOSTILE}
    assert not FORBIDDEN.search(json_text({"a": HOSTILE}))
    assert escaped_json('"\U000e0041\x9b"') == r'"\udb40\udc41\u009b"'


def test_text_of_people_stays_as_it_is(tmp_path: Path) -> None:
    for text in ("é ä 漢字 עברית العربية\t\n", "👩\u200d👩\u200d👧 👍🏽 ❤\ufe0f", "می\u200cخواهم", "क्\u200dष"):
        assert plain(text) == text
    assert plain("pay\u200dpal a\u200cb") == "paypal ab"
    assert one_line(" a\n\nb\tc\u2028d\x1b[1m ") == "a b cd[1m"
    with (tmp_path / "out").open("w+") as file:
        stream = TerminalStream(file)
        assert stream.write("a\x1bb") == 3
        stream.writelines(["\x9b", "c\n"])
        stream.flush()
        file.seek(0)
        assert file.read() == "abc\n"
