"""An extension that waits for an approval, as rows: all that it would execute or tell the model. Pure."""

from __future__ import annotations

from covey.lines.line import Span, Style, StyledLine
from covey.lines.plain_text import one_line, visible
from covey.lines.wrap import wrap
from covey.protocol.extensions import ApprovalRequest


def all_rows(request: ApprovalRequest, columns: int) -> list[StyledLine]:
    """A text of others cannot look like a row of ours: each of its lines is marked, or set in."""
    head = f"{request.kind} {one_line(request.name)}"
    rows = wrap([Span(head, "strong"), Span(f"   {one_line(request.source)}", "dim")], columns)
    command = " ".join([request.command or "", *request.args]).strip()
    facts = (
        ("runs", command),
        ("in", request.cwd or ""),
        ("gets", ", ".join(request.variables)),
        ("at", request.url or ""),
        ("sends", ", ".join(request.headers)),
        ("when", request.matcher or ""),
        ("says", request.instructions or ""),
        ("text", request.text or ""),
    )
    for name, value in facts:
        for number, text in enumerate(value.split("\n") if value else ()):
            first = Span(f"{name if number == 0 else '':<6}", "dim")
            rows += wrap([Span(visible(text))], columns, (first,), (Span("      "),))
    for tool in request.tools:
        mark: Style = "warning" if tool.change == "changed" else ""
        said = f"{tool.change}: " if tool.change != "same" else ""
        spans = [Span(f"{said}{visible(tool.name)}  ", mark), Span(visible(tool.description), "dim")]
        rows += wrap(spans, columns, (Span("tool  ", "dim"),), (Span("      "),))
        for text in (tool.diff or "").split("\n") if tool.diff else ():
            rows += wrap([Span(visible(text), "dim")], columns, (Span("      "),), (Span("      "),))
    for warning in request.warnings:
        rows += wrap([Span(visible(warning), "warning")], columns)
    return rows
