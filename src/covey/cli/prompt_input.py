"""What goes into a prompt: words of the command line, stdin, and files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from mimetypes import guess_type
from typing import Any, BinaryIO

import msgspec

from covey.cli.exits import UsageError
from covey.protocol.messages import Attachment
from covey.protocol.requests import MAX_BODY_BYTES

MAX_PIPED_BYTES = 256 * 1024
"""Of stdin: some 64,000 tokens."""
FEW = 8
"""Bytes that are no UTF-8 in a short text, such as a name in another encoding."""
MENTION = re.compile(r"""(?<![^\s(\[{<,;:'"])@(?P<path>[^\s"'`<>|*?]{1,1000})""")
"""As the server finds them, but for those in quotes."""
MAX_ATTACHED_BYTES = MAX_BODY_BYTES * 3 // 4 - 1024 * 1024
"""Base64 makes three bytes four; the rest of the body has a megabyte."""
MAX_SCHEMA_BYTES = 1024 * 1024
"""Far more than a server takes, which says so in its own words."""


def read_prompt(words: Sequence[str], stdin: BinaryIO | None) -> str:
    """What came in on stdin, if anything, and below it the words. Stdin is None when it is a terminal or closed."""
    piped = _text(_bounded(stdin)).strip("\n") if stdin else ""
    return "\n\n".join(text for text in (piped, " ".join(words).strip()) if text.strip())


def _bounded(stdin: BinaryIO) -> bytes:
    """More would fill a model's window, cost accordingly, and come back with every further step."""
    content = stdin.read(MAX_PIPED_BYTES + 1)
    if len(content) > MAX_PIPED_BYTES:
        raise UsageError(
            f"more than {MAX_PIPED_BYTES // 1024} KiB came in on stdin. Put it into a file of this directory and name "
            f"it in the prompt, so that the agent can search it; or pipe a part: | tail -c {MAX_PIPED_BYTES}"
        )
    return content


def _text(content: bytes) -> str:
    """A stray byte is no harm. What no text has would only fill a model's window with signs that mean nothing."""
    text = content.decode("utf-8", "replace")
    if "\0" in text or text.count("\ufffd") > FEW + len(text) // 10:
        raise UsageError(
            "what came in on stdin is no text. A picture is attached with -a FILE; of anything else pipe what a "
            "program makes of it, such as: | strings | head -n 50"
        )
    return text


def unseen(attachments: Sequence[Attachment]) -> list[str]:
    """The names of those of which a model reads the name and nothing else."""
    return [
        attachment.file_name or attachment.file_path
        for attachment in attachments
        if not attachment.is_text and not attachment.mime_type.startswith("image/")
    ]


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
    kind = guess_type(path)[0] or "application/octet-stream"
    attachment = Attachment(
        file_path=os.path.abspath(path), file_name=os.path.basename(path), mime_type=kind, content=content
    )
    # What is text is shown as text, also where its name says something else, as that of a shell script does.
    is_hidden = unseen([attachment]) and _is_text(content)
    return msgspec.structs.replace(attachment, mime_type="text/plain") if is_hidden else attachment


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
