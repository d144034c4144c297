"""Allow, ask or deny: from rules and past answers, never from what the model says about itself.

A rule is `tool` or `tool:pattern`. The pattern is matched against the commands of `bash`, which are found by parsing
(`shell`), and against the path of the other tools. Shell text is hostile: it is allowed only if every command in it
is, while a deny rule hits a command wherever it stands. It decides whom to ask; what holds when it is wrong is the
sandbox, to which a judgement says how far the command may get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from covey.permissions.lines import Doubt, doubt, hit, spell
from covey.permissions.links import Links, unseen
from covey.permissions.network import may_need_network
from covey.permissions.reach import Reach
from covey.permissions.rules import Rules, escape, exact, path_allowed, path_hit, seen_from
from covey.permissions.safe_paths import Repository, is_secret
from covey.permissions.shell import Line, Unparsed, parse
from covey.protocol.effects import Effect
from covey.protocol.messages import SessionMode

__all__ = [
    "Intent", "Judgement", "Reach", "Rules", "Verdict", "decide", "explain", "is_covered", "judge", "sentence",
    "session_rule",
]  # fmt: skip

Granted = frozenset[tuple[str, ...]]
"""What was allowed for a session: `Intent.granted_as`."""
EDITS = frozenset({"edit", "multiedit", "write"})
"""The tools whose changes in the workspace are not asked about where a session accepts edits."""


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a tool call is about to do. `harmless`: the tool itself knows that nobody needs to be asked."""

    tool: str
    action: str
    subject: str
    """The command, or the path."""
    harmless: bool = False
    cwd: str = ""
    """For a command: the directory it runs in, if that is not the workspace's own."""
    repository: Repository = Repository.OWN
    """For a command: which repository git would use."""
    effect: Effect = Effect.RUNS_COMMANDS
    """Of the tool. Who does not say it may do anything."""
    links: Links = field(default=unseen, compare=False)
    """For a command: where its paths really lead."""
    reach: Reach = Reach.WORKSPACE
    """For a command: how far it says that it must get. More than the first is never given without a yes."""
    others: tuple[Intent, ...] = ()
    """What the same call is about to do besides, as a patch of several files is. All of it is allowed, or none."""

    @property
    def each(self) -> tuple[Intent, ...]:
        """All that the call is about to do, one by one."""
        return (replace(self, others=()), *(replace(other, effect=self.effect) for other in self.others))

    @property
    def grant(self) -> tuple[str, str, str]:
        """What an answer for the session covers: the same thing done to the same subject.

        Changing a file is the same thing whichever tool does it, since all of them ask with what will change.
        """
        tool = "" if self.action == "write" else self.tool
        return (tool, self.action, f"{self.cwd}\0{self.subject}" if self.cwd else self.subject)

    def granted_as(self, reach: Reach) -> tuple[str, ...]:
        """How such an answer is remembered, with how far it lets a command get."""
        return (*self.grant, reach.name.lower()) if reach else self.grant


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    tag: str
    """The reason in one word; `explain` has the sentence."""
    about: str = ""
    """The rule or the command it is about."""
    reach: Reach = Reach.WORKSPACE
    """How far a command that is allowed may get."""
    required: bool = False
    """A rule says that it runs only where the sandbox holds."""
    to_the_letter: bool = False
    """Just this was allowed, by an answer or by rules without a pattern: what it names is meant."""

    @property
    def is_approved(self) -> bool:
        """Somebody has allowed it: a person, a rule or a mode. What is harmless runs without, and can only look."""
        return self.verdict is Verdict.ALLOW and self.tag != "harmless"


def decide(intent: Intent, rules: Rules, granted: Granted, *, skip: bool, plan: bool = False) -> Verdict:
    """A deny rule is never overruled; then plan mode; then whatever allows; then somebody must be asked."""
    return judge(intent, rules, granted, skip=skip, plan=plan).verdict


def judge(
    intent: Intent,
    rules: Rules,
    granted: Granted,
    *,
    skip: bool,
    plan: bool = False,
    mode: SessionMode = "ask",
    confines: bool = True,
) -> Judgement:
    """The verdict with its reason.

    `skip` (yolo) and an answer for the session also answer for an ask rule; neither lifts plan mode or a deny rule.
    `confines`: whether a command would run in a sandbox that holds here.
    """
    if intent.others:
        asked = {"skip": skip, "plan": plan, "confines": confines}
        return _strictest([judge(each, rules, granted, mode=mode, **asked) for each in intent.each])
    line = parse(intent.subject) if intent.tool == "bash" else None

    def found(which: tuple[str, ...]) -> str | None:
        if line is None:
            return path_hit(which, intent.tool, intent.subject, rules.root)
        return hit(which, intent.subject, line, rules)

    if rule := found(rules.deny):
        return Judgement(Verdict.DENY, "deny-rule", rule)
    worry = _secret(intent, rules.root) if intent.harmless else _worry(intent, line, Rules(root=rules.root))
    if (plan or mode == "plan") and (worry or intent.reach) and not intent.effect.is_left_alone_by_plan:
        return Judgement(Verdict.DENY, "plan", worry.about if worry else "")
    if skip:
        return _skipped(intent, confines=confines)
    given = next((reach for reach in reversed(Reach) if intent.granted_as(reach) in granted), None)
    if given is not None and given >= intent.reach:
        return Judgement(Verdict.ALLOW, "granted", reach=given, to_the_letter=True)
    if rule := found(rules.ask):
        return Judgement(Verdict.ASK, "ask-rule", rule)
    if worry is None and not intent.reach:
        return Judgement(Verdict.ALLOW, "harmless")
    if _mode_allows(intent, line, rules, mode, confines=confines):
        return Judgement(Verdict.ALLOW, "mode")
    return _by_rules(intent, line, rules, worry)


def _strictest(judgements: Sequence[Judgement]) -> Judgement:
    """What holds for a call that does several things: one that is denied denies all, one that is asked about asks."""
    order = (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
    return min(judgements, key=lambda judgement: (order.index(judgement.verdict), not judgement.is_approved))


def _skipped(intent: Intent, *, confines: bool) -> Judgement:
    """Yolo answers for people, and gives the network. It does not answer for the sandbox."""
    if confines and intent.reach > Reach.NETWORK:
        return Judgement(Verdict.DENY, "skip-confined")
    return Judgement(Verdict.ALLOW, "skip", reach=Reach.NETWORK)


def _mode_allows(
    intent: Intent, line: Line | Unparsed | None, rules: Rules, mode: SessionMode, *, confines: bool
) -> bool:
    match mode:
        case "ask" | "plan":
            return False
        case "accept_edits" | "sandboxed":
            if line is None:
                edits = replace(rules, allow=(intent.tool,))
                return intent.tool in EDITS and path_allowed(edits, intent.tool, intent.subject, changes=True)
            # What would fail without the network, or has no sandbox, is better asked about.
            freely = mode == "sandboxed" and confines and not intent.reach
            return freely and not may_need_network(line, intent.subject)
        case _:
            assert_never(mode)


def _by_rules(intent: Intent, line: Line | Unparsed | None, rules: Rules, worry: Doubt | None) -> Judgement:
    left = _worry(intent, line, rules)
    if left is not None:
        reason = worry if worry and intent.harmless else left
        return Judgement(Verdict.ASK, reason.tag, reason.about)

    def cover(some: tuple[str, ...]) -> bool:
        """Whether these rules alone allow it. What is harmless needs no rule, so none has said anything about it."""
        says_so = worry is not None or intent.tool in some
        return bool(some) and says_so and _worry(intent, line, replace(rules, allow=some)) is None

    reach = Reach.NETWORK if cover(rules.networked + rules.unsandboxed) else Reach.WORKSPACE
    reach = Reach.EVERYTHING if cover(rules.unsandboxed) else reach
    if reach < intent.reach:
        return Judgement(Verdict.ASK, intent.reach.wish, intent.subject)
    others = tuple(rule for rule in rules.allow if rule not in rules.required)
    required = bool(rules.required) and not cover(others)
    to_the_letter = cover(tuple(rule for rule in rules.allow if ":" in rule and exact(rule.partition(":")[2])))
    return Judgement(Verdict.ALLOW, "allow-rule", reach=reach, required=required, to_the_letter=to_the_letter)


def _secret(intent: Intent, root: str) -> Doubt | None:
    """What speaks against reading in the workspace, which is harmless otherwise: the file usually holds a secret."""
    inside = seen_from(root, intent.subject) if intent.action == "read" else None
    return Doubt("secret", inside) if inside and any(map(is_secret, inside.split("/"))) else None


def _worry(intent: Intent, line: Line | Unparsed | None, rules: Rules) -> Doubt | None:
    """What speaks against an intent, as far as `rules` do not allow it. Without rules: whether it is harmless."""
    if line is not None:
        return doubt(intent.subject, line, rules, intent.cwd, intent.repository, intent.links)
    if path_allowed(rules, intent.tool, intent.subject, changes=intent.effect is Effect.CHANGES_FILES):
        return None
    return Doubt("no-rule", intent.subject)


def is_covered(intent: Intent, rules: Rules) -> bool:
    """Whether nothing of a command is left that is neither harmless nor allowed by the allow rules given."""
    return _worry(intent, parse(intent.subject) if intent.tool == "bash" else None, rules) is None


_SENTENCES = {
    "deny-rule": "The rule {about} forbids it.",
    "ask-rule": "The rule {about} says to ask.",
    "plan": "In plan mode nothing is changed, and only looking is allowed.",
    "skip": "Permissions are skipped.",
    "skip-confined": (
        'Permissions are skipped, but the sandbox is not: only a rule or the setting sandbox = "off" does that.'
    ),
    "granted": "It was allowed for this session.",
    "mode": "The mode of the session allows it.",
    "network": "{about} asks for the network.",
    "everything": "{about} asks to run without the sandbox.",
    "harmless": "It only looks.",
    "allow-rule": "A rule allows it.",
    "no-rule": "No rule allows it.",
    "unparsed": "The command could not be understood for certain ({about}).",
    "function": "It defines a function, which may stand for any other command.",
    "background": "It leaves a command running in the background.",
    "coproc": "It leaves a command running in the background.",
    "environment": "It sets a variable that may change what {about} does.",
    "sets": "{about} sets a variable that other commands may depend on.",
    "writes": "{about} writes into a file.",
    "outside": "{about} reaches outside of the workspace.",
    "link": "{about} may follow a link out of the workspace.",
    "secret": "{about} may show secrets.",
    "unknown": "What {about} works on is only known when it runs.",
    "directory": "{about} depends on a change of the directory.",
    "repository": "{about} may run programs: here lies a repository that a clone can have brought along.",
    "option": "{about} has an option that is not known to be harmless.",
    "argument": "{about} has an argument that is not known to be harmless.",
    "not-listed": "No rule allows {about}.",
}
_NO_RULES = Rules()
_SHOWN = 80
"""Characters of a command in a sentence: the whole of it is shown beside."""


def explain(
    intent: Intent, rules: Rules, granted: Granted = frozenset(), *, skip: bool = False, plan: bool = False
) -> str:
    """One sentence on why an intent is allowed, asked about or denied: for people and for the model."""
    return sentence(judge(intent, rules, granted, skip=skip, plan=plan))


def sentence(judgement: Judgement) -> str:
    """What a judgement says, in words."""
    about = " ".join(judgement.about.split()) or "it"
    about = about if len(about) <= _SHOWN else f"{about[: _SHOWN - 1]}…"
    # A rule and a reason stand for themselves; a command is quoted, so that it is not read as a part of the sentence.
    quoted = about if about == "it" or judgement.tag.endswith(("-rule", "parsed")) else f"`{about}`"
    text = _SENTENCES[judgement.tag].format(about=quoted)
    return text[0].upper() + text[1:]


def session_rule(intent: Intent, rules: Rules = _NO_RULES) -> tuple[str, ...]:
    """The rules that "always allow" adds for an intent: as narrow as they can be. Empty if no rule would do.

    For `bash` the commands of the line that are not harmless, each as it is; where that would not be enough, as with
    a redirection, the very same line.
    """
    if intent.others:
        return tuple(dict.fromkeys(rule for each in intent.each for rule in session_rule(each, rules)))
    if intent.tool != "bash":
        prefix = f"{rules.root.rstrip('/')}/"
        inside = rules.root and intent.subject.startswith(prefix)
        return (f"{intent.tool}:{escape(intent.subject.removeprefix(prefix) if inside else intent.subject)}",)
    line = parse(intent.subject)
    if isinstance(line, Unparsed):
        return ()
    commands = [spell(command.words) for command in line.commands if command.parent < 0 and command.words]
    each = tuple(
        dict.fromkeys(
            f"bash:{escape(command)}"
            for command in commands
            if _worry(replace(intent, subject=command), parse(command), Rules(root=rules.root))
        )
    )
    for offered in (each, (f"bash:{escape(intent.subject.strip())}",)):
        if _worry(intent, line, Rules(offered, root=rules.root)) is None:
            return offered
    return ()
