"""What a run is doing, on stderr: what goes on now, what came of each tool call, and what it all took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from covey.cli.screen import Screen
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
from covey.client.view.view import View
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import one_line, plain
from covey.lines.widths import expanded
from covey.protocol.events import Event, File
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.messages import ToolCall
from covey.protocol.runs import PromptReceipt, RunComplete

if TYPE_CHECKING:
    from covey.lines.results import Shown
    from covey.lines.todos import SpokenTodos

AFTER_A_KILL = (
    "If the server was killed, the run ends as interrupted when it has started again; "
    "`covey runs wait {}` says so later, too."
)
TAIL_ROWS = 5
"""Of what a running command prints."""


class Progress:
    """Reports one run, from what is new in the view of its session."""

    def __init__(
        self,
        screen: Screen,
        view: View,
        run_id: str,
        *,
        root: str = "",
        is_verbose: bool = False,
    ) -> None:
        self._screen = screen
        self._view = view
        self._run_id = run_id
        self.news = RunNews(view, run_id)
        self._root = root
        self._is_verbose = is_verbose
        self._doing = "thinking"
        """While no call runs."""
        self._since: dict[str, float] = {}
        """When each open call has begun to run: not while it waits for an answer, or for the calls before it."""
        self._thought: list[str] = []
        self._files: set[str] = set()
        self._todos: SpokenTodos | None = None
        self._began = time.monotonic()
        screen.tail = self._tail

    def accepted(self, receipt: PromptReceipt) -> None:
        self._screen.wait_for("queued" if receipt.state == "queued" else "thinking")

    def connection(self, connected: bool, why: str) -> None:
        if not connected:
            self._screen.say(f"The connection was lost ({why}); reconnecting. {AFTER_A_KILL.format(self._run_id)}")
            self._screen.wait_for("reconnecting")

    def before_answer(self, news: Sequence[RunNewsItem]) -> Sequence[RunNewsItem]:
        """Show the thoughts that come before the next words of the answer, as those are about to be written.

        Returns what is left to report.
        """
        first = next((number for number, item in enumerate(news) if isinstance(item, AnswerGrew)), None)
        if first is None:
            return news
        self._thought += [item.text for item in news[:first] if isinstance(item, ThoughtGrew)]
        self._end_thought()
        return [item for number, item in enumerate(news) if number >= first or not isinstance(item, ThoughtGrew)]

    def heard(self, event: Event) -> None:
        """Files that the turn has changed, by whatever tool, command or agent: they are counted."""
        record = self._view.find_run(self._run_id)
        turn = (record and record.run.folded_into) or self._run_id
        if isinstance(event.payload, File) and event.payload.run_id == turn:
            self._files.add(event.payload.path)

    def update(self, news: Sequence[RunNewsItem]) -> None:
        """After each change of the view, also if it brought no news: an ask may have been answered."""
        for item in news:
            if not isinstance(item, ThoughtGrew):
                self._end_thought()
            self._report(item)
        self._watch_calls()

    def footer(self, terminal: RunComplete) -> None:
        """The last line, for people who may want to go on."""
        self._end_thought()
        if self._screen.is_terminal:
            from covey.lines.footer import RunFacts, footer_line  # late: scripts need none of it

            seconds = time.monotonic() - self._began
            cost = terminal.usage.cost if terminal.usage else None
            models = [m.model for m in self._view.conversation.messages if m.run_id == self._run_id and m.model]
            model = plain(models[-1]) if models else ""
            facts = RunFacts(terminal.session_id, self.news.steps, seconds, cost, len(self._files), model)
            self._screen.show([footer_line(facts, self._screen.columns)])

    @property
    def _shown(self) -> Shown:
        from covey.lines.results import Shown  # late, as all about calls: many answers have none

        return Shown(self._screen.columns, self._root, self._is_verbose, self._screen.is_plain)

    def _report(self, item: RunNewsItem) -> None:
        match item:
            case RunMoved(run):
                self._doing = "queued" if run.state == "queued" else "thinking"
            case AnswerGrew():
                self._doing = "writing"
            case ThoughtGrew(text=text):
                self._doing = "thinking"
                self._thought.append(text)
            case AnswerCut(reason):
                from covey.lines.notes import CUT_SHORT  # late: most answers end well

                if why_cut := CUT_SHORT.get(reason):
                    self._screen.warn(why_cut)
            case CallBegun(call):
                self._doing = "thinking"
                self._begun(call)
            case CallEnded():
                self._ended(item)
            case SummaryWritten(message):
                from covey.lines.notes import summary_note

                record = self._view.find_run(self._run_id)
                self._screen.say(f"— {summary_note(record.run if record else None)}")
                if self._is_verbose:
                    self._screen.show(self._quoted(message.text))
            case RetryAnnounced(retry):
                from covey.lines.notes import retry_note

                self._screen.say(retry_note(retry, time.time()))
            case RunWarned(warning):
                self._screen.warn(warning.reason or "")
            case PromptJoined(run, text):
                by = f"  ({one_line(run.posted_by)})" if run.posted_by else ""
                self._screen.say(f"› {text.strip()}{by}")
            case _:
                assert_never(item)

    def _begun(self, call: ToolCall) -> None:
        from covey.lines.results import wanted_line

        if not self._screen.moves_cursor:
            self._screen.show([wanted_line(call, self._shown)])

    def _ended(self, item: CallEnded) -> None:
        from covey.lines.results import result_lines
        from covey.lines.todos import SpokenTodos

        self._todos = self._todos or SpokenTodos()
        begun = self._since.pop(item.call.id, None)
        seconds = None if begun is None else time.monotonic() - begun
        self._screen.show(result_lines(item.call, item.result, seconds, self._shown, self._todos))

    def _end_thought(self) -> None:
        text, self._thought = "".join(self._thought), []
        if self._is_verbose and text.strip():
            self._screen.show(self._quoted(text))

    def _quoted(self, text: str) -> list[StyledLine]:
        from covey.lines.wrap import wrap

        bar = (Span("  ┊ ", "dim"),)
        texts = [expanded(plain(each)) for each in text.strip().split("\n")]
        return [row for each in texts for row in wrap([Span(each, "dim")], self._screen.columns, bar, bar)]

    # ── calls that run ──

    def _watch_calls(self) -> None:
        requests = (ask.request for ask in self._view.asks.open.values())
        asked = {request.tool_call_id for request in requests if not isinstance(request, ApprovalRequest)}
        calls = self.news.open_calls
        if calls:
            from covey.lines.calls import call_line, runs_beside_others
        for number, call in enumerate(calls):
            if call.id in asked:
                self._since.pop(call.id, None)
            elif number == 0 or runs_beside_others(call):
                self._since.setdefault(call.id, time.monotonic())
        running = [call for call in calls if call.id in self._since]
        if running:
            more = Span(f"  and {len(running) - 1} more" if len(running) > 1 else "", "dim")
            self._screen.wait_for(line(*call_line(running[0], self._root).spans, more))
        else:
            self._screen.wait_for("an answer" if asked and calls else self._doing)
        record = self._view.find_run(self._run_id)
        if record and record.run.is_being_cancelled:
            self._screen.wait_for("cancelling")

    def _tail(self) -> Sequence[StyledLine]:
        """The last lines of what the first running call has printed."""
        call = next((call for call in self.news.open_calls if call.id in self._since), None)
        return self._printed(call) if call else ()

    def _printed(self, call: ToolCall) -> Sequence[StyledLine]:
        output = self._view.conversation.outputs.get(call.id)
        from covey.lines.results import tail_lines

        return tail_lines(output.last_lines(TAIL_ROWS), self._screen.columns) if output else ()
