"""HTML as text that a model can read, and bytes as characters. The conversion runs in a process of its own."""

from __future__ import annotations

import codecs
import os
import re
import secrets
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from covey.tools.base import ToolContext, ToolFailed
from covey.tools.processes import Processes
from covey.tools.threads import in_thread

CONVERSION_S = 20.0
"""A page of the largest size takes 2 s. What takes longer was made to."""

_WORKER = Path(__file__).with_name("html_worker.py")
_LOOKED_AT = 1024
"""Bytes at the beginning in which a page may say what its characters are."""
_SAID = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([a-z0-9_:.-]{1,40})""", re.IGNORECASE)
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHARSET = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[lb]e)?|iso8859-\d+|cp(125\d|866|874|932|949)|koi8-[ru]|mac-roman|tis-620"
    r"|shift_jis|euc_(jp|kr)|iso2022_jp|gb2312|gbk|gb18030|big5(hkscs)?"
)
"""What pages are written in. Some of Python's other codecs are no charsets, or take forever."""


async def as_text(
    page: str, output_format: Literal["markdown", "text"], url: str, processes: Processes, context: ToolContext
) -> str:
    """A page without its tags. Raises ToolFailed if that cannot be done."""
    temp = await in_thread(lambda: Path(tempfile.gettempdir()).resolve())
    directory = temp / f"covey-page-{secrets.token_hex(8)}"
    source, target = directory / "page.html", directory / "page.txt"
    try:
        await in_thread(lambda: _write(source, page))
        completed = await processes.run_command(
            [sys.executable, "-I", str(_WORKER), str(source), str(target), output_format, url],
            cwd=directory,
            env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ},
            tag=context.call_tag,
            timeout_s=CONVERSION_S,
            output_limit=2_000,
            policy=context.confinement.helper(writes=(str(directory),)),
            sandbox=context.confinement.mode,
        )
        if completed.exit_code != 0:
            why = "it takes too long" if completed.timed_out else completed.output.strip().rpartition("\n")[2]
            raise ToolFailed(f'{url} cannot be turned into text ({why}). Fetch it with format "html".')
        return await in_thread(lambda: target.read_text("utf-8"))
    except OSError as error:
        raise ToolFailed(f'{url} cannot be turned into text ({error}). Fetch it with format "html".') from None
    finally:
        await in_thread(lambda: shutil.rmtree(directory, ignore_errors=True))


def decoded(data: bytes, charset: str, *, is_html: bool) -> str:
    """The characters of a page: as a byte order mark says, as the server says, as the page says, else as UTF-8."""
    for mark, encoding in _BOMS.items():
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    said = _SAID.search(data[:_LOOKED_AT]) if is_html else None
    for name in (charset, said.group(1).decode("ascii") if said else ""):
        if known := _known(name):
            return data.decode(known, "replace")
    return data.decode("utf-8" if is_utf8(data) else "cp1252", "replace")


def is_utf8(data: bytes) -> bool:
    """Whether it is UTF-8, or the beginning of some, with a last character that was cut in two."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def _known(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    # On the web the older name means the newer charset, which has more characters.
    return {"ascii": "cp1252", "iso8859-1": "cp1252"}.get(name, name) if _CHARSET.fullmatch(name) else None


def _write(source: Path, page: str) -> None:
    source.parent.mkdir(mode=0o700)
    source.write_text(page, "utf-8", "replace")
