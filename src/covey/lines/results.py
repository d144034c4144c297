"""What a tool call came to: a headline, and below it as much as a person wants to see of what it gave."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from covey.lines.calls import Params, call_line, decoded
from covey.lines.diffs import SHORT, diff_lines
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import one_line, plain
from covey.lines.todos import SpokenTodos, todo_lines
from covey.lines.widths import cut, cut_line, expanded, width
from covey.lines.words import counted, lasted, size
from covey.lines.wrap import wrap
from covey.protocol.endings import OUTPUT_UNTIL_THEN, THE_USER_SAYS, CallEnd, call_end, denied_by
from covey.protocol.messages import ToolCall, ToolResult
from covey.protocol.printed import as_printed

OUTPUT_SHOWN = 3
"""Last lines of what a command printed."""
LOOKED_AT = 8192
"""Characters at an end of a result, in which what says most is looked for."""
WORTH_SAYING_S = 1.0
"""A call that was faster than this needs no time beside it."""
ERRORS_SHOWN = 3
"""Of those that language servers find in what was written."""
_RULER = re.compile(r"([-=_*~#─═])\1{3,}")
"""A line that only separates others, as test runners print many."""
_NOTHING = ("(no output)", "(no output yet)", "(no new output)")
NOBODY_ASKED = "nobody could be asked"
_TELLING = ("error", "failed", "cannot", "no such", "not found", "denied", "refused", "exception")


@dataclass(frozen=True, slots=True)
class Shown:
    """How results are shown here."""

    columns: int
    root: str = ""
    """The directory of the workspace."""
    verbose: bool = False
    """All of a result, instead of what says most."""
    plain: bool = False
    """Words instead of signs, and one line for each call: for whoever hears it read out."""


_SAID = {CallEnd.CANCELLED: "cancelled", CallEnd.NOT_BEGUN: "not run"}
"""Ends that a word says everything about; what such a call had printed is shown below it."""


@dataclass(frozen=True, slots=True)
class _Result:
    result: ToolResult
    facts: Params
    shown: Shown


def wanted_line(call: ToolCall, shown: Shown) -> StyledLine:
    """A call that the model has asked for, where nothing can be drawn later. Whether it may begin is not known yet."""
    mark = "next: " if shown.plain else "· "
    return cut_line(StyledLine((Span(mark, "dim"), *call_line(call, shown.root).spans)), shown.columns)


def result_lines(
    call: ToolCall, result: ToolResult, seconds: float | None, shown: Shown, spoken: SpokenTodos | None = None
) -> list[StyledLine]:
    """A call has ended; `seconds` is how long it ran, if that is known. `spoken`: what was said of things to do."""
    given = _Result(result, decoded(result.metadata), shown)
    end = call_end(result)
    summary = _how_it_failed(result) if result.is_error else _summary(given)
    if end in _SAID:
        summary = _SAID[end]
    took = f"({lasted(seconds)})" if seconds is not None and seconds >= WORTH_SAYING_S else ""
    head = _headline(call, given, summary, took)
    if shown.plain and not shown.verbose:
        telling = _telling(given) if end not in _SAID else ""
        todos = spoken.news(given.facts.get("todos"), shown.columns) if spoken and call.name == "todos" else ()
        return [cut_line(line(*head.spans, f": {telling}" if telling else ""), shown.columns), *todos]
    body = _until_then(given) if end in _SAID else _body(call, given)
    return [cut_line(head, shown.columns), *body]


def _until_then(given: _Result) -> list[StyledLine]:
    """What a call had printed when it was cancelled."""
    printed = plain(as_printed(given.result.content.partition(OUTPUT_UNTIL_THEN)[2]))
    lines = printed.split("\n")
    return (
        _all(printed, given.shown)
        if given.shown.verbose and printed
        else _quoted(lines[-OUTPUT_SHOWN:], given.shown, "dim")
    )


def _failed(given: _Result) -> bool:
    code = given.facts.get("exit_code")
    return given.result.is_error or (isinstance(code, int) and code != 0)


def _goes_on(given: _Result) -> bool:
    """A command that is left running: what there is to see now is not what came of it."""
    facts = given.facts
    return given.result.name == "bash" and isinstance(facts.get("job_id"), str) and facts.get("exit_code") is None


def _has_moved(given: _Result) -> bool:
    """It was waited for, and then left running; else it was to be left running from the start."""
    return _goes_on(given) and "exit_code" in given.facts


def _is_unanswered(given: _Result) -> bool:
    """A question to people, with nobody who answered it: nothing failed, and nothing is done."""
    return given.result.name == "question" and not given.result.is_error and given.facts.get("answers", "") is None


def _how_it_failed(result: ToolResult) -> str:
    return "denied" if denied_by(result) else "failed"


def _headline(call: ToolCall, given: _Result, summary: str, took: str) -> StyledLine:
    failed = _failed(given)
    if _is_unanswered(given):
        mark = Span("not answered: " if given.shown.plain else "· ", "dim")
    elif _goes_on(given):
        mark = Span("left running: ") if given.shown.plain else Span("● ", "accent")
    elif given.shown.plain:
        mark = Span("failed: " if failed else "done: ")
    else:
        mark = Span("✗ ", "error") if failed else Span("✓ ", "success")
    words = " ".join(filter(None, (summary, took)))
    style: Style = "error" if given.result.is_error else "dim"
    after = [*_changes(given.facts), Span(f"  {words}" if words else "", style)]
    # What came of it is what one looks for: it stays, and the call is cut.
    room = given.shown.columns - width(mark.text) - sum(width(span.text) for span in after)
    made = cut_line(call_line(call, given.shown.root), max(room, 8))
    return line(mark, *made.spans, *after)


def _changes(facts: Params) -> tuple[Span, ...]:
    """`+1 −1`, for a change of a file."""
    added, removed = facts.get("additions"), facts.get("removals")
    if not isinstance(added, int) or not isinstance(removed, int):
        return ()
    return Span(f" +{added}", "added"), Span(f" −{removed}", "removed")


def _summary(given: _Result) -> str:
    facts = given.facts
    code = facts.get("exit_code")
    if _is_unanswered(given):
        return "nobody answered"
    if isinstance(code, int) and code:
        return f"exit code {code}"
    formats: dict[str, Callable[[Any], str]] = {
        "matches": lambda count: counted(count, "match", "matches"),
        "count": lambda count: counted(count, "file"),
        "entries": lambda count: counted(count, "entry", "entries"),
        "lines": lambda count: counted(count, "line"),
        "bytes": size,
    }
    found = [shown(facts[key]) for key, shown in formats.items() if isinstance(facts.get(key), int)]
    if isinstance(status := facts.get("status"), int):
        found.insert(0, str(status))
    if isinstance(job := facts.get("job_id"), str):
        found.append(f"goes on in the background as {one_line(job)}" if _has_moved(given) else one_line(job))
    return ", ".join(found)


def _telling(given: _Result) -> str:
    """The line of a result that says most, where only one can be shown; '' if the headline says enough."""
    result = given.result
    if result.is_error:
        return one_line(_why(result))
    if result.name == "bash":
        return one_line(next(iter(_printed(given)[-1:]), ""))
    return ""


def _why(result: ToolResult) -> str:
    """Why a call failed, on one line. Of what a person denied only their own words: the rest is for the model."""
    by = denied_by(result)
    if by == "person":
        return result.content.partition(THE_USER_SAYS)[2]
    return NOBODY_ASKED if by == "nobody" else telling_line(result.content)


def telling_line(text: str) -> str:
    """Of an error: the last line that sounds like its reason, else the first one that is not empty."""
    looked_at = text if len(text) <= 2 * LOOKED_AT else f"{text[:LOOKED_AT]}\n{text[-LOOKED_AT:]}"
    lines = [each.strip() for each in plain(looked_at).split("\n") if each.strip()]
    sounds = [each for each in lines if any(word in each.lower() for word in _TELLING)]
    if sounds and lines[0] not in sounds:
        return sounds[-1]
    return lines[0] if lines else ""


def _body(call: ToolCall, given: _Result) -> list[StyledLine]:
    shown, result, facts = given.shown, given.result, given.facts
    lines: list[StyledLine] = []
    if result.is_error:
        lines = _all(result.content, shown) if shown.verbose else _quoted([_why(result)], shown, "error")
    elif isinstance(diff := facts.get("diff"), str):
        lines = diff_lines(diff, shown.columns, limit=None if shown.verbose else SHORT)
        lines += _errors_in_it(result, shown)
    elif call.name == "todos":
        lines = todo_lines(facts.get("todos"), shown.columns)
    elif shown.verbose:
        lines = _all(result.content, shown)
    elif call.name in ("bash", "job_output"):
        lines = _quoted(_printed(given)[-OUTPUT_SHOWN:], shown, "dim")
    sandbox = facts.get("sandbox")
    return [*lines, *(_about_sandbox(sandbox, shown) if isinstance(sandbox, dict) else [])]


def whole_result(call: ToolCall, result: ToolResult) -> tuple[Literal["diff", "markdown", "file", "text"], str]:
    """All that a call gave, and as what it is to be read."""
    diff = decoded(result.metadata).get("diff")
    if not result.is_error and isinstance(diff, str) and diff:
        return "diff", diff
    if result.is_error:
        return "text", result.content
    return "markdown" if call.name == "agent" else "file" if call.name == "view" else "text", result.content


def _printed(given: _Result) -> list[str]:
    """What a command printed, without our own words about its end."""
    if _goes_on(given) and not _has_moved(given):
        return []  # it was only started: all that is said is for the model
    content = given.result.content[-LOOKED_AT:]
    output = as_printed(content.rpartition("\n\n")[0] or content)
    lines = [each.rstrip() for each in plain(output).split("\n") if each.strip() and each not in _NOTHING]
    return [each for each in lines if not _RULER.fullmatch(each.strip())] or lines


def _errors_in_it(result: ToolResult, shown: Shown) -> list[StyledLine]:
    """What language servers find wrong with a file as it is after the change: the model reads it below a blank line."""
    found = result.content.partition("\n\n")[2]
    lines = [each.removeprefix("- ") for each in found.split("\n") if each.startswith("- ")]
    kept = lines if shown.verbose else lines[:ERRORS_SHOWN]
    more = [f"and {len(lines) - len(kept)} more"] if len(kept) < len(lines) else []
    return _quoted([*kept, *more], shown, "error")


def tail_lines(texts: Sequence[str], columns: int) -> list[StyledLine]:
    """The last lines that a running call has printed."""
    return _quoted(list(texts), Shown(columns), "dim")


def _quoted(texts: list[str], shown: Shown, style: Style) -> list[StyledLine]:
    room = max(shown.columns - 4, 8)
    return [line(Span("  │ ", "dim"), Span(cut(expanded(plain(text)), room), style)) for text in texts if text]


def _all(content: str, shown: Shown) -> list[StyledLine]:
    bar = (Span("  │ ", "dim"),)
    texts = plain(content).rstrip("\n").split("\n")
    return [row for text in texts for row in wrap([Span(expanded(text))], shown.columns, bar, bar)]


def _about_sandbox(sandbox: Params, shown: Shown) -> list[StyledLine]:
    """Where a command may have written unseen, and what was refused to it, with what a person could allow."""
    texts = []
    if isinstance(unseen := sandbox.get("unseen"), list):
        paths = ", ".join(map(str, unseen))
        texts.append(f"sandbox: private to commands, so you do not see what is written there: {paths}")
    if isinstance(denied := sandbox.get("denied"), dict):
        what = str(denied.get("what", "")).partition(" The user can allow")[0]  # the rest is for the model
        offer = str(denied.get("offer", ""))
        texts.append(f"sandbox: {what} If you are asked again, you can {offer[:1].lower()}{offer[1:]}.")
    margin = (Span("  "),)
    return [row for text in texts for row in wrap([Span(one_line(text), "warning")], shown.columns, margin, margin)]
