"""What is asked, as numbered choices, and what a typed line answers. Pure.

A line that is none of the numbers or letters is no answer, so that a prompt which was being typed when the question
came is none.
One that can only have been meant as an answer, such as `yes`, is no prompt either: it is said what the choices are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from covey.lines.approval import all_rows
from covey.lines.line import Span, StyledLine, line
from covey.lines.permission import ALWAYS, PermissionShown, letter_of, reach_words, request_lines
from covey.lines.plain_text import visible
from covey.lines.request_text import request_text
from covey.lines.wrap import wrap
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PermissionAction, QuestionResponse

APPROVAL_ROWS = 24
"""Of an extension, so many rows are shown at once: what was asked stays on a usual screen."""
LONGEST_QUOTED = 20
SKIP = "/skip"
"""Answers none of the questions."""

_MEANT_AS_ANSWER = re.compile(r"[-+]?\d+[.)]?|y|yes|n|no|ok|okay|allow|deny", re.IGNORECASE)
_ONE_OR_NUMBERS = re.compile(r"[a-zA-Z]|\d[\d\s,]*")


def is_meant_as_answer(text: str) -> bool:
    """Nobody would prompt so while something is asked: `/say` sends it all the same."""
    return _MEANT_AS_ANSWER.fullmatch(text.strip()) is not None


def is_late_answer(text: str) -> bool:
    """Nobody would prompt so when something was asked a moment ago: also a letter, or several numbers."""
    return is_meant_as_answer(text) or _ONE_OR_NUMBERS.fullmatch(text.strip()) is not None


def not_sent(text: str) -> str:
    """What is said of an answer that comes too late."""
    words = visible(text.strip())[:LONGEST_QUOTED]
    return f"Nothing is asked any more, so {words} was not sent. `/say {words}` sends it as a prompt."


def _offered_number(text: str, count: int) -> int | None:
    words = text.strip()
    return int(words) if re.fullmatch(r"[0-9]{1,2}", words) and 1 <= int(words) <= count else None


@dataclass(frozen=True, slots=True)
class Allowed:
    """A permission is answered."""

    action: PermissionAction
    reason: str = ""
    network: bool = False
    unsandboxed: bool = False
    edits_in: str = ""
    """The session in which edits are accepted from now on."""

    @property
    def news(self) -> dict[str, str]:
        """What is said once it counts, by the outcome, where more than this call is allowed; else nothing is."""
        if self.action in ("allow_always", "allow_prefix"):
            return {"allowed": "A rule for this is in your config.toml now. It holds in this directory only."}
        if self.edits_in:
            back = f"`covey sessions mode {self.edits_in} ask` takes that back."
            return {"allowed": f"Edits are accepted now. {back}"}
        return {}


@dataclass(frozen=True, slots=True)
class Decided:
    """Whether an extension may be used; None: that is left for later."""

    approve: bool | None
    news: ClassVar[dict[str, str]] = {"allowed": "It may be used.", "denied": "It is not used."}
    """What is said once it counts, by the outcome."""


@dataclass(frozen=True, slots=True)
class QuestionsAnswered:
    """Questions are answered; none: the agent goes on without."""

    responses: tuple[QuestionResponse, ...]


@dataclass(frozen=True, slots=True)
class AskedOn:
    """The line was for the question, and something else has to be shown now."""

    lines: tuple[StyledLine, ...]


Understood = Allowed | Decided | QuestionsAnswered | AskedOn | None
"""None: the line was not meant for the question."""


def _no_choice(text: str, count: int, columns: int) -> AskedOn | None:
    """What is said of a line that is none of so many numbers; None: it is a prompt."""
    if not is_meant_as_answer(text):
        return None
    words = visible(text.strip())[:LONGEST_QUOTED]
    said = f"{words} is no choice: type a number from 1 to {count}, and Enter. `/say {words}` sends it as a prompt."
    return AskedOn(tuple(wrap([Span(said, "warning")], columns)))


@dataclass
class PermissionChoices:
    request: PermissionRequest
    is_whole: bool = False
    takes_words: bool = False
    """Whatever is typed next says why not."""

    def lines(self, columns: int) -> list[StyledLine]:
        request = self.request
        head, *body = request_text(request, whole=self.is_whole).split("\n")
        shown = PermissionShown([f"May it do this? {head}", *body], request, is_cut=self._is_cut)
        rows = request_lines(shown, columns)
        for number, (letter, text, _) in enumerate(self._offered(), 1):
            rows += wrap([Span(f"{text} ({letter})")], columns, (Span(f"  {number}. ", "key"),), (Span("     "),))
        how = f"Type a number from 1 to {len(self._offered())}, or a letter, and Enter."
        return [*rows, *wrap([Span(how, "dim")], columns)]

    def hear(self, text: str, columns: int) -> Understood:
        if self.takes_words:
            return Allowed("deny", text.strip())
        offered = self._offered()
        number = _offered_number(text, len(offered)) or self._by_letter(text)
        if number is None:
            return _no_choice(text, len(offered), columns)
        answer = offered[number - 1][2]
        if answer == "whole" or (self._is_cut and isinstance(answer, Allowed) and answer.action != "deny"):
            # What was shown in part only cannot be allowed before all of it was shown.
            self.is_whole = True
            return AskedOn(tuple(self.lines(columns)))
        if answer == "words":
            self.takes_words = True
            return AskedOn(tuple(wrap([Span("Say why, or what to do instead, and Enter:")], columns)))
        assert isinstance(answer, Allowed)
        return answer

    @property
    def _is_cut(self) -> bool:
        return not self.is_whole and request_text(self.request) != request_text(self.request, whole=True)

    def _by_letter(self, text: str) -> int | None:
        """The number of what a letter stands for, as every face has them; `yes` and `no` are such letters, too."""
        letter = letter_of(text.strip())
        return next((number for number, offer in enumerate(self._offered(), 1) if offer[0] == letter), None)

    def _offered(self) -> list[tuple[str, str, Allowed | str]]:
        """A letter, what it means, and the answer."""
        request = self.request
        covers = ALWAYS.get(request.action, "exactly this")
        reach, network = reach_words(request), request.yes_has_network
        session = f"yes, and in this session not asked again about {covers}{reach}"
        found: list[tuple[str, str, Allowed | str]] = [
            ("y", f"yes, this once{reach}", Allowed("allow", network=network)),
            ("s", session, Allowed("allow_session", network=network)),
        ]
        if request.action == "write":
            found.append(("m", "yes, and all edits in this session", Allowed("allow", edits_in=request.session_id)))
        always = f"yes, and always in this directory{reach}"
        if request.rules:
            rules = visible(" ".join(request.rules))
            found.append(("A", f"{always}: {rules}", Allowed("allow_always", network=network)))
        if request.prefix_rules:
            prefix = visible(request.prefix_rules[-1])
            found.append(("P", f"{always}: {prefix}", Allowed("allow_prefix", network=network)))
        if request.confined:
            letter, other = ("o", "without") if network else ("w", "with")
            found.append((letter, f"yes, this once, {other} network", Allowed("allow", network=not network)))
            found.append(("u", "yes, this once, outside the sandbox", Allowed("allow", unsandboxed=True)))
        found += [("n", "no", Allowed("deny")), ("e", "no, and why", "words")]
        return [*found, ("v", "show all of it", "whole")] if self._is_cut else found


@dataclass
class QuestionChoices:
    request: QuestionBatchRequest
    responses: list[QuestionResponse] = field(default_factory=list)

    def lines(self, columns: int) -> list[StyledLine]:
        item, count = self._item, len(self.request.questions)
        place = f"{len(self.responses) + 1} of {count}: " if count > 1 else ""
        rows = wrap([Span(place, "dim"), Span(visible(item.question), "strong")], columns)
        if item.description:
            rows += wrap([Span(visible(item.description), "dim")], columns)
        for number, text in enumerate(self._offered(item), 1):
            rows += wrap([Span(text)], columns, (Span(f"  {number}. ", "key"),), (Span("     "),))
        how = f"{self.how[0].upper()}{self.how[1:]}, and Enter; {SKIP} answers none."
        return [*rows, *wrap([Span(how, "dim")], columns)]

    @property
    def how(self) -> str:
        """How it is answered."""
        return {
            "yes_no": "type 1 or 2",
            "single_choice": "type a number, or your own words",
            "multi_choice": "type numbers with blanks between, or your own words",
            "free_text": "type your answer",
        }[self._item.type]

    @property
    def takes_words(self) -> bool:
        """Any words may be the answer."""
        return self._item.type != "yes_no"

    def hear(self, text: str, columns: int) -> Understood:
        words = text.strip()
        if words == SKIP:
            return QuestionsAnswered(())
        response = self._response(self._item, words)
        if response is None:
            return AskedOn(tuple(self.lines(columns)))
        self.responses.append(response)
        if len(self.responses) < len(self.request.questions):
            return AskedOn(tuple(self.lines(columns)))
        return QuestionsAnswered(tuple(self.responses))

    @property
    def _item(self) -> QuestionItem:
        return self.request.questions[len(self.responses)]

    @staticmethod
    def _offered(item: QuestionItem) -> list[str]:
        if item.type == "yes_no":
            return ["yes", "no"]
        return [
            visible(choice.label) + (f": {visible(choice.description)}" if choice.description else "")
            for choice in item.choices
        ]

    @staticmethod
    def _response(item: QuestionItem, words: str) -> QuestionResponse | None:
        """None: not understood."""
        if item.type == "yes_no":
            said = {"1": True, "yes": True, "y": True, "2": False, "no": False, "n": False}.get(words.lower())
            return None if said is None else QuestionResponse(request_id=item.id, yes=said)
        if not words:
            return None
        numbers = re.split(r"[\s,]+", words)
        if item.choices and all(number.isdigit() for number in numbers):
            places = [int(number) - 1 for number in numbers]
            if any(not 0 <= at < len(item.choices) for at in places):
                return None
            if item.type == "single_choice" and len(places) > 1:
                return None
            chosen = tuple(dict.fromkeys(item.choices[at].id for at in places))
            return QuestionResponse(request_id=item.id, selected_ids=chosen)
        return QuestionResponse(request_id=item.id, fill_in_text=words)


@dataclass
class ApprovalChoices:
    request: ApprovalRequest
    is_whole: bool = False
    takes_words: ClassVar[bool] = False

    def lines(self, columns: int) -> list[StyledLine]:
        rows = all_rows(self.request, columns)
        if self._is_cut(columns):
            rows = [*rows[: APPROVAL_ROWS - 1], line(Span(f"… {len(rows) - APPROVAL_ROWS + 1} more lines", "dim"))]
        offered = self._offered(columns)
        listed = [line(Span(f"  {number}. ", "key"), Span(text)) for number, (text, _) in enumerate(offered, 1)]
        how = f"Type a number from 1 to {len(offered)}, and Enter. No run waits for it."
        rows = [line(Span("May this extension be used?", "strong")), *rows, *listed]
        return [*rows, *wrap([Span(how, "dim")], columns)]

    def hear(self, text: str, columns: int) -> Understood:
        offered = self._offered(columns)
        number = _offered_number(text, len(offered))
        if number is None:
            return _no_choice(text, len(offered), columns)
        answer = offered[number - 1][1]
        if answer is None or (answer.approve and self._is_cut(columns)):
            # What was shown in part only cannot be approved before all of it was shown.
            self.is_whole = True
            return AskedOn(tuple(self.lines(columns)))
        return answer

    def _is_cut(self, columns: int) -> bool:
        return not self.is_whole and len(all_rows(self.request, columns)) > APPROVAL_ROWS

    def _offered(self, columns: int) -> list[tuple[str, Decided | None]]:
        found: list[tuple[str, Decided | None]] = [
            ("yes, as it is now", Decided(True)),
            ("no", Decided(False)),
            ("not now", Decided(None)),
        ]
        return [*found, ("show all of it", None)] if self._is_cut(columns) else found


Choices = PermissionChoices | QuestionChoices | ApprovalChoices
