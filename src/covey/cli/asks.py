"""What a person at the terminal is asked, and how the line that they type is understood. Does no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, assert_never

from covey.lines.plain_text import visible
from covey.lines.request_text import LINES_SHOWN, request_text
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PermissionAction, QuestionResponse

WITH_NETWORK, WITHOUT_NETWORK, WITHOUT_SANDBOX = "w", "o", "u"
"""Typed after an answer that allows a command, or alone for `y` and this."""
ANSWERS: dict[str, PermissionAction] = {
    "y": "allow",
    "yes": "allow",
    "a": "allow",
    "A": "allow_always",
    "P": "allow_prefix",
    "s": "allow_session",
    "session": "allow_session",
    "always": "allow_session",
    "r": "allow_always",
    "rule": "allow_always",
    "p": "allow_prefix",
    "prefix": "allow_prefix",
    "n": "deny",
    "no": "deny",
    "d": "deny",
}
"""With `a` and `d` of the terminal UI among them: no letter allows more in one face than in another. `r` and `p` are of
earlier versions."""
SHOW = ("v", "view", "show")
ALL_EDITS = ("m", "mode")
"""Allow it, and all edits in the session."""
END_OF_INPUT = "\x04"
"""Ctrl-D."""


def rules_text(request: PermissionRequest) -> str:
    return visible(" ".join(request.rules))


def prefix_offer(request: PermissionRequest) -> str:
    """What is added to the question where a command may be allowed with any further words."""
    return f", [P]refix: always {visible(request.prefix_rules[-1])}" if request.prefix_rules else ""


class Heard(Enum):
    """What a typed line did to a request that is not answered by it."""

    AGAIN = "not understood"
    MORE = "understood, and there is another question"
    WHOLE = "all of it is wanted"
    UNSEEN = "it would be allowed, but not all of it was shown"
    NOTHING = "no words were typed"
    HELP = "what the keys mean is wanted"
    WORDS = "the answer will be typed as a line"


KEYS_BESIDE_ANSWERS = {"v": Heard.WHOLE, "f": Heard.WHOLE, "?": Heard.HELP, "h": Heard.HELP, "e": Heard.WORDS}


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    action: PermissionAction
    reason: str = ""
    network: bool = False
    unsandboxed: bool = False
    unattended: bool = False
    """Denied because nobody could be asked."""
    edits_in: str = ""
    """The session in which edits are accepted from now on."""


@dataclass(frozen=True, slots=True)
class QuestionAnswers:
    """None: the person does not want to answer."""

    responses: tuple[QuestionResponse, ...] | None


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """None: the person leaves it open, for later or for somebody else."""

    approve: bool | None


Answer = PermissionAnswer | QuestionAnswers | ApprovalAnswer


@dataclass
class PermissionAsk:
    """A permission request. A command that was shown in part only cannot be allowed before all of it was shown."""

    request: PermissionRequest
    shown_whole: bool = False
    lines: int = LINES_SHOWN
    """Of the command or the change, as many as the screen has room for."""

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def shown(self) -> str:
        """The request itself, as much of it as fits or, if that was wanted, all of it."""
        return request_text(self.request, whole=self.shown_whole, lines=self.lines)

    @property
    def is_cut(self) -> bool:
        return not self.shown_whole and self.shown != request_text(self.request, whole=True)

    @property
    def question(self) -> str:
        from covey.lines.permission import ALWAYS, reach_words  # late: seldom needed

        always = ALWAYS.get(self.request.action, "exactly this")
        where = visible(self.request.path)
        rule = f", [A]: always in {where} ({rules_text(self.request)})" if self.request.rules else ""
        rule += prefix_offer(self.request)
        rule += ", all edits in this session ([m]ode)" if self.request.action == "write" else ""
        show = ", [v]iew all of it" if self.is_cut else ""
        further = ""
        if self.request.confined:
            other = ("with[o]ut", "so") if self.request.yes_has_network else ("[w]ith", "sw")
            further = f", yes {other[0]} network, [u]nsandboxed (also after s or A, as in {other[1]})"
        yes = f"[y]es{reach_words(self.request)}"
        return f"Allow it? {yes}, [n]o or no and why, in this [s]ession always {always}{rule}{further}{show}: "

    @property
    def again(self) -> str:
        return self.question

    @property
    def refusal(self) -> Answer:
        return PermissionAnswer("deny")

    def hear(self, line: str) -> Answer | Heard:
        """`no` may be followed by words for the model: `no, use pytest`."""
        said, further = self._split(line.strip())
        words, action = line.strip().lower(), _action(said)
        allows_unseen = action not in (None, "deny") and "command" in self.request.params
        if self.is_cut and (words in SHOW or allows_unseen):
            self.shown_whole = True
            return Heard.WHOLE if words in SHOW else Heard.UNSEEN
        if words in ALL_EDITS and self.request.action == "write":
            return PermissionAnswer("allow", edits_in=self.request.session_id)
        if action and self._can_be(action):
            if action == "deny":
                return PermissionAnswer("deny")
            network = further == WITH_NETWORK or (not further and self.request.yes_has_network)
            return PermissionAnswer(action, network=network, unsandboxed=further == WITHOUT_SANDBOX)
        denied = re.fullmatch(r"(?i)no?\b[\s,:;.-]*(.+)", line.strip())
        return PermissionAnswer("deny", denied[1]) if denied else Heard.AGAIN

    def hear_words(self, line: str) -> Answer | Heard:
        """Words behind a no: whatever they are, they allow nothing. The model reads them."""
        words = line.strip()
        return PermissionAnswer("deny", words) if words else Heard.NOTHING

    def _can_be(self, action: PermissionAction) -> bool:
        rules = {"allow_always": self.request.rules, "allow_prefix": self.request.prefix_rules}
        return action not in rules or bool(rules[action])

    def press(self, key: str) -> Answer | Heard:
        """One key instead of a line."""
        if key in (END_OF_INPUT, ""):
            return self.refusal
        if key in KEYS_BESIDE_ANSWERS:
            self.shown_whole = self.shown_whole or KEYS_BESIDE_ANSWERS[key] is Heard.WHOLE
            return KEYS_BESIDE_ANSWERS[key]
        return self.hear(key) if key.isalpha() else Heard.AGAIN

    def _split(self, words: str) -> tuple[str, str]:
        """An answer, and how far it lets a command get: `sw` is `s`, with the network."""
        further = words[-1:].lower()
        if not self.request.confined or further not in (WITH_NETWORK, WITHOUT_NETWORK, WITHOUT_SANDBOX):
            return words, ""
        said = words[:-1].strip() or "y"
        return (said, further) if _action(said) not in (None, "deny") else (words, "")


def _action(said: str) -> PermissionAction | None:
    """By the letter as it is, where that is one of its own, else whatever its case."""
    return ANSWERS.get(said) or ANSWERS.get(said.lower())


@dataclass
class QuestionAsk:
    request: QuestionBatchRequest
    responses: list[QuestionResponse] = field(default_factory=list)

    refusal: ClassVar[Answer] = QuestionAnswers(None)

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def _item(self) -> QuestionItem:
        return self.request.questions[len(self.responses)]

    @property
    def text(self) -> str:
        number, count = len(self.responses) + 1, len(self.request.questions)
        which = f"{number} of {count}: " if count > 1 else ""
        return f"{which}{question_text(self._item)}\n{self.question}"

    @property
    def again(self) -> str:
        """What was typed does not answer it."""
        if self._item.choices:
            return f"There is no such choice. {self.question}"
        return f"That is no answer. {self.question}"

    @property
    def question(self) -> str:
        match self._item.type:
            case "yes_no":
                return "[y]es or [n]o (Ctrl-D: no answer): "
            case "single_choice":
                return "A number, or your own words (Ctrl-D: no answer): "
            case "multi_choice":
                return "Numbers, or your own words (Ctrl-D: no answer): "
            case "free_text":
                return "Your answer (Ctrl-D: none): "
            case _:
                assert_never(self._item.type)

    def hear(self, line: str) -> Answer | Heard:
        response = _response(self._item, line.strip())
        if response is None:
            return Heard.AGAIN
        self.responses.append(response)
        if len(self.responses) < len(self.request.questions):
            return Heard.MORE
        return QuestionAnswers(tuple(self.responses))


@dataclass
class ApprovalAsk:
    """Whether an extension may be used. Nothing of the run waits for it."""

    request: ApprovalRequest
    shown_whole: bool = False

    refusal: ClassVar[Answer] = ApprovalAnswer(None)

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def text(self) -> str:
        from covey.cli.approval_text import approval_text  # late: seldom needed

        return f"{approval_text(self.request, whole=self.shown_whole)}\n{self.question}"

    @property
    def question(self) -> str:
        from covey.cli.approval_text import is_cut

        show = ", [v]iew all of it" if is_cut(self.request) and not self.shown_whole else ""
        return f"Approve it? [y]es, [n]o, [l]ater{show}: "

    @property
    def again(self) -> str:
        return self.question

    def hear(self, line: str) -> Answer | Heard:
        words = line.strip().lower()
        if words in SHOW:
            self.shown_whole = True
            return Heard.WHOLE
        said = {"y": True, "yes": True, "n": False, "no": False, "l": None, "later": None}
        return ApprovalAnswer(said[words]) if words in said else Heard.AGAIN


Ask = PermissionAsk | QuestionAsk | ApprovalAsk


def question_text(item: QuestionItem) -> str:
    """One question with its choices, without how it is answered here."""
    lines = [visible(item.question), *([f"    {visible(item.description)}"] if item.description else [])]
    for choice in item.choices:
        more = f": {visible(choice.description)}" if choice.description else ""
        lines.append(f"    {choice.id}. {visible(choice.label)}{more}")
    return "\n".join(lines)


def _response(item: QuestionItem, words: str) -> QuestionResponse | None:
    if not words:
        return None
    if item.type == "yes_no":
        said = {"y": True, "yes": True, "n": False, "no": False}.get(words.lower())
        return None if said is None else QuestionResponse(request_id=item.id, yes=said)
    numbers = re.split(r"[\s,]+", words)
    if item.choices and all(number.isdigit() for number in numbers):
        known = {choice.id for choice in item.choices}
        if not known.issuperset(numbers) or (item.type == "single_choice" and len(numbers) > 1):
            return None
        return QuestionResponse(request_id=item.id, selected_ids=tuple(dict.fromkeys(numbers)))
    return QuestionResponse(request_id=item.id, fill_in_text=words)
