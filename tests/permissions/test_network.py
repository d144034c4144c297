"""What probably needs the network. A guess: these are the ordinary cases."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Judgement, Reach, Rules, Verdict, judge
from covey.permissions.network import may_need_network
from covey.permissions.shell import parse


@pytest.mark.parametrize(
    "line",
    [
        "curl https://example.org",
        "cd x && wget y",
        "git -C sub push origin main",
        "git submodule update --init",
        "sudo env A=1 npm --prefix web install",
        "pip3 install -r requirements.txt",
        "python3.12 -m pip install x",
        "uv sync",
        "sh -c 'cargo add serde'",
        "go mod download",
        "docker build .",
        "yarn",
        "x=(a b); curl y",
    ],
)
def test_needs_it(line: str) -> None:
    assert may_need_network(parse(line), line)


@pytest.mark.parametrize(
    "line",
    [
        "make test",
        "git commit -m push",
        "git status",
        "npm test",
        "npm run build",
        "cargo build",
        "go test ./...",
        "python3 -m venv x",
        "echo curl",
        "yarn test",
        "./curl.py",
    ],
)
def test_does_not(line: str) -> None:
    assert not may_need_network(parse(line), line)


RULES = Rules(
    allow=("bash:npm ci", "bash:make", "bash:docker ps"),
    root="/p",
    networked=("bash:npm ci",),
    unsandboxed=("bash:docker ps",),
    required=("bash:make",),
)


def judged(line: str, reach: Reach = Reach.WORKSPACE) -> Judgement:
    return judge(Intent("bash", "execute", line, reach=reach), RULES, frozenset(), skip=False)


@pytest.mark.parametrize(
    ("line", "reach", "required"),
    [
        ("npm ci", Reach.NETWORK, False),
        ("make", Reach.WORKSPACE, True),
        ("docker ps", Reach.EVERYTHING, False),
        ("npm ci && make", Reach.WORKSPACE, True),
        ("npm ci | tail", Reach.NETWORK, False),
        ("npm ci && docker ps", Reach.NETWORK, False),
    ],
)
def test_a_line_gets_as_far_as_all_rules_that_it_needs(line: str, reach: Reach, required: bool) -> None:
    judgement = judged(line)
    assert (judgement.verdict, judgement.reach, judgement.required) == (Verdict.ALLOW, reach, required)
    assert judgement.is_approved


@pytest.mark.parametrize(
    ("line", "reach", "tag"),
    [
        ("make", Reach.NETWORK, "network"),
        ("ls", Reach.NETWORK, "network"),
        ("npm ci", Reach.EVERYTHING, "everything"),
        ("true; npm ci", Reach.NETWORK, "allow-rule"),
        ("ls", Reach.WORKSPACE, "harmless"),
    ],
)
def test_what_a_command_asks_for_must_be_said_by_a_rule(line: str, reach: Reach, tag: str) -> None:
    assert judged(line, reach).tag == tag
    assert judged(line, reach).is_approved == (tag == "allow-rule")


def test_in_plan_mode_nothing_gets_further_than_looking() -> None:
    intent = Intent("bash", "execute", "ls", reach=Reach.NETWORK)
    for more in ({"plan": True}, {"mode": "plan"}):
        assert judge(intent, RULES, frozenset(), skip=True, **more).tag == "plan"
