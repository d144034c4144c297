"""What hooks decide, as values: exit codes, answers, several together, and which of them are meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from covey.config.approvals import ExtensionEntry
from covey.config.hooks import HookEntry
from covey.engine.extensions.hook_process import named_words
from covey.lifecycle.hook_matching import fits, names_of, rewritten_input, told_input, told_name, wrong_matcher
from covey.lifecycle.hook_trouble import looks_broken, missing_script
from covey.lifecycle.hooks import (
    STOP_BLOCKS,
    TEXT_LIMIT,
    HookAnswer,
    HookDecision,
    HookEnd,
    StopGuard,
    merged,
    read_answer,
)
from covey.protocol.hook_events import HookEvent, OnFailure


def said(answer: Any, event: HookEvent = "PreToolUse") -> HookAnswer:
    return read_answer(event, "check", HookEnd(0, json.dumps(answer)))


def specific(**fields: Any) -> HookAnswer:
    return said({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


# ── one hook ──


def test_h1_exit_2_and_deny_forbid_with_their_reason() -> None:
    assert read_answer("PreToolUse", "check", HookEnd(2, '{"decision": "approve"}', "not on Friday\n")) == HookAnswer(
        HookDecision.DENY, "not on Friday"
    ), "no answer lifts it"
    denied = specific(permissionDecision="deny", permissionDecisionReason="no")
    assert (denied.decision, denied.reason) == (HookDecision.DENY, "no")
    assert said({"decision": "block", "reason": "no"}).decision is HookDecision.DENY
    assert said({"decision": "block"}).reason == "the hook check forbids it"


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("allow", HookDecision.ALLOW),
        ("ask", HookDecision.ASK),
        ("defer", HookDecision.DEFER),
        (None, HookDecision.NONE),
    ],
)
def test_words_of_an_answer(word: str | None, decision: HookDecision) -> None:
    assert specific(permissionDecision=word).decision is decision
    assert said({"decision": "approve"}).decision is HookDecision.ALLOW
    assert said({"unknown": [1], "continue": True}) == HookAnswer()


@pytest.mark.parametrize(
    "end",
    [
        HookEnd(trouble="it did not end within 30 s"),
        HookEnd(1, "", "boom"),
        HookEnd(-9),
        HookEnd(0, "{no json"),
        HookEnd(0, '{"continue": "perhaps"}'),
        HookEnd(0, '{"hookSpecificOutput": {"permissionDecision": "maybe"}}'),
        HookEnd(0, "{" * 100_000),
    ],
)
@pytest.mark.parametrize(
    ("on_failure", "decision"),
    [("ask", HookDecision.ASK), ("deny", HookDecision.DENY), ("ignore", HookDecision.NONE)],
)
def test_h3_a_failure_is_told_each_time_and_its_entry_decides(
    end: HookEnd, on_failure: OnFailure, decision: HookDecision
) -> None:
    answer = read_answer("PreToolUse", "check", end, on_failure)
    assert (
        answer.decision is decision and len(answer.told) == 1 and answer.told[0].startswith("The hook check failed: ")
    )


@pytest.mark.parametrize(
    ("stderr", "broken"),
    [
        ("python3: can't open file '/x/y.py': [Errno 2] No such file or directory", True),
        ("sh: 0: cannot open x.sh: No such file", True),
        ('Can\'t open perl script "x": No such file or directory', True),
        ("jq: error: Could not open file x: No such file or directory", True),
        ("grep: x: No such file or directory", True),
        ("usage: not on Friday", False),
        ("", False),
        ("No such file or directory\nbut this is a policy: never push", False),
    ],
)
def test_h3_exit_2_of_a_missing_script_forbids_and_is_told_apart(stderr: str, broken: bool) -> None:
    assert looks_broken(stderr) is broken
    answer = read_answer("PreToolUse", "check", HookEnd(2, "", stderr), source="config.toml")
    assert answer.decision is HookDecision.DENY and answer.reason.startswith(stderr or "the hook check forbids it")
    assert bool(answer.told) is broken is ("Tell the user" in answer.reason)
    assert not broken or ("`enabled = false` in config.toml" in answer.told[0] and stderr in answer.told[0])


@pytest.mark.parametrize(
    ("command", "stderr", "missing"),
    [
        ("python3 ~/a.py --strict", "python3: can't open file '/home/me/a.py'", "/home/me/a.py"),
        ('sh "$CLAUDE_PROJECT_DIR/b c.sh"', "sh: 0: cannot open /p/b c.sh: No such file", "/p/b c.sh"),
        ("python3 there.py", "there.py: line 3: no", ""),
        ("python3 gone.py", "it is Friday", ""),
        ("grep 'unfinished", "grep: unfinished", ""),
        ("jq .tool_input gone.json", "jq: error: Could not open file gone.json", "gone.json"),
    ],
)
def test_h3_which_script_is_missing(command: str, stderr: str, missing: str) -> None:
    env = {"HOME": "/home/me", "CLAUDE_PROJECT_DIR": "/p"}
    hook = HookEntry("PreToolUse", ExtensionEntry("hook", "h", Path("f"), True, command=command), 30.0, "ask")
    assert missing_script(named_words(hook, env), stderr, lambda path: path == "there.py") == missing


def test_h7_of_what_a_hook_says_ten_thousand_characters_count() -> None:
    long = "x" * 50_000
    assert len(read_answer("PreToolUse", "check", HookEnd(2, "", long)).reason) == TEXT_LIMIT
    assert len(read_answer("SessionStart", "check", HookEnd(0, long)).context) == TEXT_LIMIT
    assert len(specific(additionalContext=long, updatedToolOutput=long).context) == TEXT_LIMIT


def test_plain_words_are_told_to_the_model_where_a_prompt_or_a_session_begins() -> None:
    assert read_answer("UserPromptSubmit", "check", HookEnd(0, "It is Friday.\n")).context == "It is Friday."
    assert read_answer("PreToolUse", "check", HookEnd(0, "It is Friday.\n")) == HookAnswer()


def test_a_hook_can_end_the_run_and_speak_to_people() -> None:
    answer = said({"continue": False, "stopReason": "enough", "systemMessage": "look here"})
    assert answer.stops and answer.stop_reason == "enough" and answer.told == ("check: look here",)


# ── several ──


def test_the_strictest_of_several_counts_with_its_reasons() -> None:
    allow = HookAnswer(HookDecision.ALLOW, "fine")
    ask, defer, deny = (
        HookAnswer(each, each.name) for each in (HookDecision.ASK, HookDecision.DEFER, HookDecision.DENY)
    )
    assert merged([allow, ask]).decision is HookDecision.ASK
    assert merged([allow, ask, defer]).decision is HookDecision.DEFER
    both = merged([deny, allow, HookAnswer(HookDecision.DENY, "and no")])
    assert (both.decision, both.reason) == (HookDecision.DENY, "DENY\nand no")
    assert merged([]) == HookAnswer()


def test_h4_rewrites_are_applied_in_the_order_of_the_file_and_each_saw_the_original() -> None:
    given = {"command": "make", "timeout": 5, "description": "build"}
    first = {**given, "command": "make -j2"}
    second = {**given, "timeout": 9}
    third = {"command": "make -j4", "timeout": 5, "more": 1}
    changes = [HookAnswer(updated_input=each) for each in (first, second, third)]
    assert merged(changes, given).updated_input == {"command": "make -j4", "timeout": 9, "more": 1}
    assert merged(changes[::-1], given).updated_input == {"command": "make -j2", "timeout": 9, "more": 1}
    assert merged(changes[:1], given).updated_input == first, "one alone replaces the whole input"


def test_h6_after_three_times_in_a_row_the_turn_ends() -> None:
    guard = StopGuard()
    active = []
    while not guard.is_used_up:
        active.append(guard.is_active)
        guard = guard.block()
    assert active == [False] + [True] * (STOP_BLOCKS - 1)


# ── which are meant, and what they are told ──


@pytest.mark.parametrize(
    ("matcher", "tool", "meant"),
    [
        ("Bash", "bash", True),
        ("bash", "bash", True),
        ("Edit|Write", "edit", True),
        ("Edit, Write", "write", True),
        ("Edit|Write", "apply_patch", True),
        ("Edit", "multiedit", True),
        ("Edit.*", "multiedit", True),
        ("Write", "download", True),
        ("Write", "edit", False),
        ("mcp__git__.*", "mcp__git__log", True),
        ("mcp__git__.*", "mcp__github__log", False),
        ("mcp__git", "mcp__git__log", False),
        ("Read", "view", True),
        ("Task", "agent", True),
        ("*", "anything", True),
        ("", "anything", True),
        ("Bas", "bash", False),
        ("^Ba", "bash", True),
        ("(a+)+$", "bash", False),
        ("[", "bash", False),
    ],
)
def test_h10_a_matcher_means_tools_by_the_names_that_claude_code_has(matcher: str, tool: str, meant: bool) -> None:
    assert fits(matcher, names_of(tool)) is meant


def test_h10_a_matcher_that_cannot_be_used_says_why() -> None:
    assert wrong_matcher("Bash|Edit") == wrong_matcher("mcp__.*") == wrong_matcher("*") == ""
    assert "no regular expression" in wrong_matcher("[") and "repeated" in wrong_matcher("(a+)+$")
    assert "longer" in wrong_matcher("x" * 1000)


def test_h10_input_has_the_fields_that_hooks_expect_and_comes_back_as_ours() -> None:
    assert told_name("view") == "Read" and told_name("mcp__a__b") == "mcp__a__b"
    told = told_input("view", {"file_path": "src/a.py", "limit": 3}, "/home/ann/p")
    assert told == {"file_path": "/home/ann/p/src/a.py", "limit": 3}
    patch = told_input("apply_patch", {"patch": "…"}, "/p", ["/p/a", "/p/b"])
    assert patch["file_path"] == "/p/a" and patch["file_paths"] == ["/p/a", "/p/b"]
    sent = told_input("agent", {"prompt": "look\nthere"}, "/p")
    assert (sent["subagent_type"], sent["description"]) == ("general-purpose", "look")
    given = {"file_path": "src/a.py", "limit": 3}
    assert rewritten_input(given, told, told) == given, "what nobody changed is as the model wrote it"
    assert rewritten_input(given, told, {**told, "limit": 9}) == {"file_path": "src/a.py", "limit": 9}
    assert rewritten_input(given, told, {"file_path": "/etc/x"}) == {"file_path": "/etc/x"}
