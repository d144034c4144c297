"""What the face keeps on disk: drafts, so that none can be lost, and earlier prompts.

A draft has a file of its own for each session and process: two windows on one session do not overwrite each other's.
It is written with each change, and taken over by the next window when its process is gone.
"""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from covey.tui.face.composer import HISTORY_SHOWN, Draft, PromptToken

HISTORY_BYTES = 2_000_000
"""A history that is longer is written anew, with what is still shown of it."""
LONGEST_KEPT = 100_000
"""Characters of a prompt in the history: a paste that is longer is cut there, and whole in its session."""


class Keeper:
    """The files of one process, for one workspace."""

    def __init__(self, directory: Path, workspace_path: str, pid: int | None = None) -> None:
        self._place = sha256(workspace_path.encode("utf-8", "replace")).hexdigest()[:16]
        self._drafts = directory / "drafts"
        self._history = directory / "history" / f"{self._place}.jsonl"
        self._pid = pid or os.getpid()

    # ── drafts ──

    def save_draft(self, session_id: str, draft: Draft) -> None:
        """An empty one leaves no file. It is replaced in one step: a crash leaves the one before, or this one."""
        path = self._drafts / f"{self._name(session_id)}.{self._pid}.json"
        with suppress(OSError):
            if not draft.text:
                path.unlink(missing_ok=True)
                return
            self._drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = path.with_suffix(".new")
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(_written(draft), file)
            made.replace(path)

    def take_draft(self, session_id: str) -> Draft | None:
        """The newest draft of a process that is gone; its file goes when it has been written again under our name."""
        left = [path for path in self._drafts.glob(f"{self._name(session_id)}.*.json") if not self._is_alive(path)]
        for path in sorted(left, key=lambda each: each.stat().st_mtime, reverse=True):
            with suppress(OSError, ValueError, KeyError, TypeError):
                draft = _read(json.loads(path.read_text("utf-8")))
                self.save_draft(session_id, draft)
                if path.name != f"{self._name(session_id)}.{self._pid}.json":
                    path.unlink()
                return draft
        return None

    def _name(self, session_id: str) -> str:
        """Ids come from a server: only what is a plain name becomes one."""
        safe = session_id if session_id.isalnum() else sha256(session_id.encode()).hexdigest()[:16]
        return safe if session_id else f"new-{self._place}"

    def _is_alive(self, path: Path) -> bool:
        with suppress(ValueError, OSError):
            pid = int(path.suffixes[-2].removeprefix("."))
            if pid == self._pid:
                return False
            os.kill(pid, 0)
            return True
        return False

    # ── earlier prompts ──

    def history(self) -> tuple[str, ...]:
        found: list[str] = []
        with suppress(OSError):
            for line in self._history.read_text("utf-8", "replace").splitlines():
                with suppress(ValueError):
                    if isinstance(text := json.loads(line), str):
                        found.append(text)
        return tuple(found[-HISTORY_SHOWN:])

    def add_history(self, text: str) -> None:
        with suppress(OSError):
            self._history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._history.exists() and self._history.stat().st_size > HISTORY_BYTES:
                kept = "".join(f"{json.dumps(each)}\n" for each in self.history()[-HISTORY_SHOWN // 2 :])
                self._history.write_text(kept, "utf-8")
            descriptor = os.open(self._history, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(f"{json.dumps(text[:LONGEST_KEPT])}\n")


def _written(draft: Draft) -> dict[str, Any]:
    tokens = {
        char: {
            "kind": token.kind,
            "label": token.label,
            "text": token.text,
            "mime_type": token.mime_type,
            "data": base64.b64encode(token.data).decode(),
        }
        for char, token in draft.tokens.items()
    }
    return {"text": draft.text, "tokens": tokens}


def _read(data: dict[str, Any]) -> Draft:
    tokens = {
        char: PromptToken(
            "file" if each["kind"] == "file" else "paste",
            str(each["label"]),
            str(each["text"]),
            str(each["mime_type"]),
            base64.b64decode(each["data"]),
        )
        for char, each in dict(data["tokens"]).items()
    }
    return Draft(str(data["text"]), tokens)
