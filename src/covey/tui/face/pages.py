"""Pages to read: what a session has changed, what an undo would do, a job's output, the extensions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from covey.lines.changes import changes_shown
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line, visible
from covey.lines.widths import expanded
from covey.lines.words import counted
from covey.lines.wrap import broken, wrap
from covey.protocol.changes import SessionChanges
from covey.protocol.extensions import ExtensionView
from covey.protocol.jobs import JobView
from covey.protocol.requests import UndoReceipt
from covey.tui.face.state import PageText, TextPage

_STATES: dict[str, Style] = {
    "ready": "success",
    "failed": "error",
    "needs_login": "warning",
    "needs_approval": "warning",
}


def changes_page(changes: SessionChanges, root: str) -> TextPage:
    hint = "n N files   ] [ changes   esc back" if changes.files else "esc back"
    return TextPage("what this session has changed", partial(_changes, changes, root), hint=hint)


def _changes(changes: SessionChanges, root: str, columns: int) -> PageText:
    found = changes_shown(changes, columns, root)
    return PageText(found.lines, found.files, found.hunks)


def job_page(job: JobView) -> TextPage:
    hint = "⏎ end it   esc back" if job.is_running else "esc back"
    page = TextPage(f"job {job.id}", partial(_job, job), subject=job.id, hint=hint)
    return replace(page, confirms="kill_job") if job.is_running else page


def _job(job: JobView, columns: int) -> PageText:
    lines = [*wrap([Span(one_line(job.command), "strong")], columns), StyledLine()]
    for text in (job.output or "").split("\n"):
        lines += broken(expanded(visible(text)), columns, "")
    return PageText(tuple(lines))


def undo_page(run_id: str, receipt: UndoReceipt, root: str) -> TextPage:
    is_free = not receipt.conflicts
    hint = "⏎ take it back   esc leave it" if is_free else "esc back; `covey undo --force-file FILE` overwrites"
    page = TextPage("undo: what it would do", partial(_undo, receipt, root), subject=run_id, hint=hint)
    return replace(page, confirms="undo") if is_free else page


def _undo(receipt: UndoReceipt, root: str, columns: int) -> PageText:
    lines = [line(Span(f"{counted(len(receipt.undone), 'turn')} would be taken back:", "strong"))]
    lines += _listed("    ", "", (one_line(turn.prompt) for turn in receipt.undone), columns)
    if receipt.restored:
        gone = [f"{_name(path, root)} (it was new: it goes)" for path in receipt.removed]
        back = [_name(path, root) for path in receipt.restored if path not in receipt.removed]
        lines += [StyledLine(), line(Span("files that get back what they were before:", "strong"))]
        lines += [*_listed("  - ", "removed", gone, columns), *_listed("  ~ ", "warning", back, columns)]
    else:
        lines += [StyledLine(), line(Span("no files are touched", "dim"))]
    for title, found in (("these stay as they are:", receipt.skipped), ("in the way:", receipt.conflicts)):
        if found:
            kept = (f"{_name(each.path, root)}: {visible(each.reason)}" for each in found)
            lines += [StyledLine(), line(Span(title, "strong")), *_listed("  ! ", "warning", kept, columns)]
    if receipt.untracked:
        lines += [
            StyledLine(),
            *wrap([Span("not all that commands changed is known: the rest stays", "warning")], columns),
        ]
    if not receipt.conflicts:
        lines += [StyledLine(), line(Span("⏎ takes it back, esc leaves it as it is", "dim"))]
    return PageText(tuple(lines))


def _listed(mark: str, style: Style, texts: Iterable[str], columns: int) -> list[StyledLine]:
    rest = (Span(" " * len(mark)),)
    return [row for text in texts for row in wrap([Span(text)], columns, (Span(mark, style),), rest)]


def _name(path: str, root: str) -> str:
    """From the directory of the workspace."""
    return visible(path.removeprefix(f"{root.rstrip('/')}/") if root else path)


def extensions_page(extensions: tuple[ExtensionView, ...]) -> TextPage:
    """Every extension with its state, and why."""
    return TextPage("extensions", partial(_extensions, extensions), hint="esc closes")


def _extensions(extensions: tuple[ExtensionView, ...], columns: int) -> PageText:
    rows: list[StyledLine] = []
    margin = (Span(" " * 8),)
    for each in extensions:
        about = [each.state.replace("_", " ")]
        about += [counted(len(each.tools), "tool")] if each.tools else []
        about += [f"{len(each.withheld)} withheld"] if each.withheld else []
        state = Span(f"  {' · '.join(about)}", _STATES.get(each.state, "dim"))
        rows += wrap([Span(visible(each.name), "strong"), state], columns, (Span(f"{each.kind:<8}"),), margin)
        rows += wrap([Span(one_line(each.why), "dim")], columns, margin, margin) if each.why else []
    none = Span("no extensions yet: `covey mcp add` adds a server of tools", "dim")
    return PageText(tuple(rows or wrap([none], columns)))
