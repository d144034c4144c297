"""What goes into a prompt: words of the command line, stdin, and files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from mimetypes import guess_type
from typing import Any, BinaryIO

import msgspec

from covey.cli.exits import UsageError
from covey.protocol.messages import Attachment
from covey.protocol.requests import MAX_BODY_BYTES

MAX_ATTACHED_BYTES = MAX_BODY_BYTES * 3 // 4 - 1024 * 1024
"""Base64 makes three bytes four; the rest of the body has a megabyte."""
MAX_SCHEMA_BYTES = 1024 * 1024
"""Far more than a server takes, which says so in its own words."""


def read_prompt(words: Sequence[str], stdin: BinaryIO | None) -> str:
    """What came in on stdin, if anything, and below it the words. Stdin is None when it is a terminal or closed."""
    piped = stdin.read().decode("utf-8", "replace").strip("\n") if stdin else ""
    return "\n\n".join(text for text in (piped, " ".join(words).strip()) if text.strip())


def piped_stdin() -> BinaryIO | None:
    return None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer


def read_attachments(paths: Sequence[str]) -> tuple[Attachment, ...]:
    attachments = tuple(_read(path) for path in paths)
    if sum(len(attachment.content) for attachment in attachments) > MAX_ATTACHED_BYTES:
        raise UsageError(f"the attached files are larger than {MAX_ATTACHED_BYTES // 1024 // 1024} MB together")
    return attachments


def read_schema(text: str) -> dict[str, Any]:
    """A JSON Schema: the text itself if it begins as one, else what is in the file of that name."""
    if not (is_inline := text.lstrip().startswith("{")):
        try:
            with open(text, "rb") as file:
                data = file.read(MAX_SCHEMA_BYTES)
        except OSError as error:
            raise UsageError(f"the schema {text} cannot be read: {error.strerror}") from None
    try:
        return msgspec.json.decode(text if is_inline else data, type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--schema needs a JSON Schema, as a file or as JSON: {error}") from None


def _read(path: str) -> Attachment:
    try:
        if os.path.getsize(path) > MAX_ATTACHED_BYTES:
            raise UsageError(f"{path} is larger than {MAX_ATTACHED_BYTES // 1024 // 1024} MB")
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be attached: {error.strerror}") from None
    kind = guess_type(path)[0] or ("text/plain" if _is_text(content) else "application/octet-stream")
    return Attachment(
        file_path=os.path.abspath(path), file_name=os.path.basename(path), mime_type=kind, content=content
    )


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
