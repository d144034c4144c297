"""What a run may do without asking, in words for its model: so that it neither asks for nothing nor tries in vain.

Whether anybody can answer is said as it was when the prompt was posted: by a person at a terminal, or by a script that
can ask nobody. Who watches at the moment is not in it. That changes while a run works, and each change of the system
prompt makes the provider read the whole conversation again; a call that nobody could be asked about says so itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from covey.protocol.messages import SessionMode

RULES_SHOWN = 12
RULE_CHARACTERS = 80
"""Of the user's rules: the first ones, each cut short. The model need not know all of them, only the usual ones."""

WORK = "work"
"""It may change something, so it makes no plan."""
SANDBOX = "sandbox"
"""Its commands are confined."""

HEADING = "# Permissions"
UNATTENDED = (
    "If nobody is there to ask, the call is denied and its result says so: then do what needs no permission, and say "
    "at the end what is left."
)
NOBODY_THERE = (
    "Nobody is watching this run, so nobody can be asked: a call that needs permission is denied, unless somebody "
    "happens to join. Do what needs none, ask no questions, and say at the end what is left and what must be allowed."
)
NETWORKED = "Commands have network access, and cannot leave the sandbox."
NO_QUESTIONS = "Nobody is watching this run: ask no questions."
NO_SANDBOX = "There is no sandbox: commands can do anything the user can."


@dataclass(frozen=True, slots=True)
class Freedom:
    """How far a run gets by itself."""

    mode: SessionMode = "ask"
    asks_nobody: bool = False
    """Yolo: of a person, or for this run."""
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """The user's rules."""
    is_sandboxed: bool = True
    is_unattended: bool = False
    """Whoever posted the prompt can ask nobody."""

    @property
    def means(self) -> tuple[str, ...]:
        """By which lines about tools are chosen."""
        return (*([WORK] if self.mode != "plan" else []), *([SANDBOX] if self.is_sandboxed else []))


def describe(freedom: Freedom) -> str:
    """The part of a system prompt about it. Of a plan nothing: that has words of its own."""
    if freedom.mode == "plan":
        return ""
    if freedom.asks_nobody:
        text = "Nobody is asked: every call runs at once, unless a rule denies it. Nobody will catch a mistake either."
        text += f" {NETWORKED}" if freedom.is_sandboxed else ""
        text += f" {NO_QUESTIONS}" if freedom.is_unattended else ""
    else:
        text = f"{_by_mode(freedom.mode)} {NOBODY_THERE if freedom.is_unattended else UNATTENDED}"
    sentences = [text] if freedom.is_sandboxed else [text, NO_SANDBOX]
    if freedom.allowed and not freedom.asks_nobody:
        sentences.append(f"The user's rules allow: {_listed(freedom.allowed)}.")
    if freedom.denied:
        sentences.append(f"They deny, no matter who allows it: {_listed(freedom.denied)}.")
    return f"{HEADING}\n\n{' '.join(sentences)}"


def _by_mode(mode: SessionMode) -> str:
    match mode:
        case "ask" | "plan":
            return (
                "Reading and searching in the workspace, and read-only commands (such as `git diff`), run at once. For "
                "file changes, other commands, network access and anything outside the workspace, a person is asked "
                "first."
            )
        case "accept_edits":
            return (
                "Reading, searching and changing files in the workspace, and read-only commands, run at once. For "
                "other commands, network access and anything outside the workspace, a person is asked first."
            )
        case "sandboxed":
            return (
                "Work inside the workspace runs at once, including commands: in the sandbox, without network access. "
                "For network access and anything outside the workspace, a person is asked first."
            )
        case _:
            assert_never(mode)


def _listed(rules: Sequence[str]) -> str:
    shown = [f"`{_short(rule)}`" for rule in rules[:RULES_SHOWN]]
    more = [f"and {len(rules) - RULES_SHOWN} more"] if len(rules) > RULES_SHOWN else []
    return ", ".join([*shown, *more])


def _short(rule: str) -> str:
    line = " ".join(rule.split()).replace("`", "'")
    return line if len(line) <= RULE_CHARACTERS else line[: RULE_CHARACTERS - 1] + "…"
