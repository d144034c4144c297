"""What happens in a session, as lines that are never taken back. Pure: the view's steps in, lines out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from covey.client.prompt import terminal_of
from covey.client.transcript import TranscriptChange
from covey.client.view.inputs import MessagesLoaded, Received, RunsLoaded, ViewInput
from covey.client.view.run_news import (
    AnswerCut,
    AnswerGrew,
    CallBegun,
    CallEnded,
    PromptJoined,
    RetryAnnounced,
    RunMoved,
    RunNews,
    RunNewsItem,
    RunWarned,
    SummaryWritten,
    ThoughtGrew,
)
from covey.client.view.view import Step, View
from covey.lines.line import Span, StyledLine, line
from covey.lines.markdown import MarkdownRows
from covey.lines.notes import CUT_SHORT, retry_note, summary_note
from covey.lines.plain_text import one_line, plain
from covey.lines.results import Shown, result_lines, wanted_line
from covey.lines.todos import SpokenTodos
from covey.lines.words import counted, dollars
from covey.lines.wrap import wrap
from covey.protocol.runs import Run, RunComplete


class LineStory:
    """The session that the view shows. A prompt that was typed here is on the screen already: it is not repeated."""

    def __init__(
        self, view: View, columns: int, root: str, clock: Callable[[], float], *, echoes: bool, is_new: bool = False
    ) -> None:
        """`echoes`: what is typed here cannot be seen, as it comes out of a pipe. `is_new`: nothing was said yet."""
        self._view = view
        self._clock = clock
        self._shown = Shown(columns, root, plain=True)
        self._todos = SpokenTodos()
        self._echoes = echoes
        self._told_prompts: set[str] = set()
        """Of these runs."""
        self._news: dict[str, RunNews] = {}
        self._rows: MarkdownRows | None = None
        self._speaker = ""
        """The message whose rows these are."""
        self._waited = 0
        """Prompts that were cancelled together with the turn that they waited for, which has not ended yet."""
        self._link = view.link.state
        self._is_begun = is_new
        """What was said before has been told."""

    def posted(self, run_id: str) -> None:
        """This run is from here."""
        if not self._echoes:
            self._told_prompts.add(run_id)

    def take(self, fed: ViewInput, step: Step) -> list[StyledLine]:
        """What there is to say after the view has taken something in."""
        lines = [*self._connection(), *self._beginning(fed, step)]
        if not self._is_begun:
            return lines
        lines += self._meet_runs()
        for run_id, news in list(self._news.items()):
            record = self._view.find_run(run_id)
            if record and record.run.folded_into:
                del self._news[run_id]  # its answer is in the turn of the other
                lines += self._prompt(record.run)
                continue
            for item in news.update(step.change):
                lines += self._said(item)
        if isinstance(fed, Received) and isinstance(fed.event.payload, RunComplete):
            lines += self._ended(fed.event.payload)
        return [*lines, *self._ended_unseen(fed)]

    def _connection(self) -> Iterator[StyledLine]:
        before, self._link = self._link, self._view.link.state
        if self._link == "lost" and before != "lost":
            yield line(Span(f"The connection is lost ({one_line(self._view.link.why)}); trying again.", "warning"))
        if self._link == "connected" and before == "lost":
            yield line(Span("Connected again.", "dim"))

    def _beginning(self, fed: ViewInput, step: Step) -> list[StyledLine]:
        """A session that is opened: where it stands. All else is told after that."""
        if self._is_begun or not isinstance(fed, MessagesLoaded) or step.change is None:
            return []
        self._is_begun = True
        messages = list(self._view.conversation.messages)
        said = [m for m in messages if (m.role == "user" or (m.role == "assistant" and m.finish)) and m.text.strip()]
        prompts = [message for message in said if message.role == "user"]
        self._told_prompts |= {message.run_id for message in prompts if message.run_id}
        if not said:
            return []
        count = counted(len(messages), "message") + (" or more" if self._view.conversation.has_older else "")
        lines = [line(Span(f"This session has {count}. The last of them:", "dim"))]
        last = said[-2:]
        for message in last if any(m.role == "user" for m in last) else [*prompts[-1:], *last]:
            rows = MarkdownRows(self._shown.columns)
            text = [*rows.add(message.text), *rows.end()]
            lines += [line(Span("You: " if message.role == "user" else "Covey: ", "strong")), *text]
        return lines

    def _meet_runs(self) -> list[StyledLine]:
        """Of one that has begun before, what is under way is told; what was said has been."""
        record = self._view.sessions.get(self._view.current)
        items: list[RunNewsItem] = []
        for run in record.open_runs if record else ():
            if run.run_id not in self._news:
                news = self._news[run.run_id] = RunNews(self._view, run.run_id)
                mine = [message for message in self._view.conversation.messages if message.run_id == run.run_id]
                open_calls = news.recall(mine, are_told=True)
                items += [*news.update(TranscriptChange("reset")), *open_calls]
        return [row for item in items for row in self._said(item)]

    def _ended_unseen(self, fed: ViewInput) -> list[StyledLine]:
        """Runs whose end was no event here, as the connection was lost: what was loaded again says it."""
        if not isinstance(fed, RunsLoaded | MessagesLoaded) or self._view.loads.is_loading(self._view.current):
            return []
        records = [self._view.find_run(run_id) for run_id in self._news]
        ended = [record.run for record in records if record and record.run.ended]
        return [row for run in ended for row in self._ended(terminal_of(run))]

    def _said(self, item: RunNewsItem) -> list[StyledLine]:
        match item:
            case AnswerGrew():
                return self._answer(item)
            case ThoughtGrew():
                return []
            case RunMoved(run):
                return [*self._settle(), *(self._prompt(run) if run.state == "active" else ())]
            case AnswerCut(reason):
                why = CUT_SHORT.get(reason)
                return [*self._settle(), *([line(Span(why, "warning"))] if why else ())]
            case CallBegun(call):
                return [*self._settle(), wanted_line(call, self._shown)]
            case CallEnded(call, result):
                return [*self._settle(), *result_lines(call, result, None, self._shown, self._todos)]
            case SummaryWritten(message):
                record = self._view.find_run(message.run_id or "")
                return self._note(summary_note(record.run if record else None))
            case RetryAnnounced(retry):
                return self._note(retry_note(retry, self._clock()))
            case RunWarned(warning):
                return self._note(warning.reason or "")
            case PromptJoined():
                return []  # told when its run was folded in
            case _:
                assert_never(item)

    def _answer(self, item: AnswerGrew) -> list[StyledLine]:
        lines: list[StyledLine] = []
        if item.message_id != self._speaker or item.is_anew or self._rows is None:
            lines = self._settle()
            self._speaker, self._rows = item.message_id, MarkdownRows(self._shown.columns)
        return [*lines, *self._rows.add(item.text)]

    def _settle(self) -> list[StyledLine]:
        """Something else comes now: the rest of what was being written."""
        rows, self._rows = self._rows, None
        return rows.end() if rows else []

    def _prompt(self, run: Run) -> list[StyledLine]:
        """Somebody else's, or one out of a pipe."""
        if run.run_id in self._told_prompts:
            return []
        self._told_prompts.add(run.run_id)
        by = f" ({one_line(run.posted_by)})" if run.posted_by else ""
        bar = (Span("> ", "key"),)
        texts = plain(run.prompt).strip().split("\n")
        texts[-1] += by
        return [row for text in texts for row in wrap([Span(text)], self._shown.columns, bar, bar)]

    def _note(self, text: str) -> list[StyledLine]:
        return [*self._settle(), line(Span(one_line(text), "dim"))] if text else self._settle()

    def _ended(self, terminal: RunComplete) -> list[StyledLine]:
        news = self._news.pop(terminal.run_id, None)
        lines = [row for item in (news.end(terminal) if news else ()) for row in self._said(item)]
        lines += self._settle()
        if terminal.folded_into or news is None:
            return lines
        if terminal.cancelled and self._is_of_turn(terminal.run_id):
            self._waited += 1
            return lines
        waited, self._waited = self._waited and counted(self._waited, "prompt"), 0
        if terminal.cancelled and waited:
            return [*lines, line(Span(f"Cancelled, and {waited} that waited.", "warning"))]
        lines.append(self._outcome(terminal, news.steps if news.has_all else 0))
        return [*lines, line(Span(f"Cancelled: {waited} that waited.", "warning"))] if waited else lines

    def _is_of_turn(self, run_id: str) -> bool:
        """Whether it waited for a turn that the same cancel ends: that is said once, at the end of the turn."""
        record, session = self._view.find_run(run_id), self._view.sessions.get(self._view.current)
        if record is None or record.run.started_at or record.run.cancelled_by != "session_cancel":
            return False
        return any(run.started_at and run.run_id in self._news for run in (session.open_runs if session else ()))

    @staticmethod
    def _outcome(terminal: RunComplete, steps: int) -> StyledLine:
        """`steps`: 0 if they were not counted."""
        if terminal.outcome == "completed":
            cost = dollars(terminal.usage.cost) if terminal.usage and terminal.usage.cost else ""
            facts = ", ".join(filter(None, [counted(steps, "step") if steps else "", cost]))
            return line(Span(f"Done: {facts}." if facts else "Done.", "dim"))
        if terminal.outcome == "failed":
            return line(Span(f"Failed: {one_line(terminal.error or '')}", "error"))
        return line(Span(f"{terminal.outcome.capitalize()}.", "warning"))
