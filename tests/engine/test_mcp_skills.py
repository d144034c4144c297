"""Skills that an MCP server offers: approved as they are, fetched when wanted, given only if they are the approved."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from covey.engine.extensions.mcp_skills import BYTES_LIMIT, FILES_LIMIT, WrongSkill, labels, usable_skills, verified
from tests.support.engine import call
from tests.support.mcp import McpEngine, mcp_running

pytestmark = pytest.mark.anyio


def reads(found: McpEngine) -> list[str]:
    """The files that the server was asked for."""
    return [each["params"]["uri"] for each in found.messages() if each.get("method") == "resources/read"]


async def test_a_skill_is_told_of_once_it_is_approved_and_fetched_when_it_is_wanted(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "skills") as found:
        await found.known()
        [request] = [each for each in found.engine.workspace.extensions.approvals() if each.kind == "mcp"]
        shown = {tool.name: tool for tool in request.tools}["skill://team/refunds/SKILL.md"]
        assert shown.description == "A skill: How refunds are made."
        assert shown.schema["head"]["metadata"] == {"version": "2.10"} and len(shown.schema["files"]) == 2
        assert "mcp_skill" not in found.engine.workspace._extensions.tools(), "nobody has approved it"
        await found.approve()
        about = found.engine.workspace._extensions.tools()["mcp_skill"].description()
        assert "- h/refunds: How refunds are made." in about
        assert not reads(found), "neither listing nor approving fetches anything"
        skill, form, unlisted, missing = await found.run(
            ("mcp_skill", {"server": "h", "skill": "refunds"}),
            ("mcp_skill", {"server": "h", "skill": "refunds", "file": "forms/EU.md"}),
            ("mcp_skill", {"server": "h", "skill": "refunds", "file": "../secret"}),
            ("mcp_skill", {"server": "h", "skill": "daily"}),
        )
        assert "Fill in forms/EU.md." in skill.content and "Its further files: forms/EU.md" in skill.content
        assert '<from-mcp server="h">' in skill.content
        assert "The form." in form.content and "\u200b" not in form.content and form.content.count("</from-mcp") == 1
        assert unlisted.is_error and "has no file '../secret'" in unlisted.content
        assert missing.is_error and "There are: h/refunds." in missing.content
        assert reads(found) == ["skill://team/refunds/SKILL.md", "skill://team/refunds/forms/EU.md"]
        assert "made anew" in str(found.view().left_out), "what nobody can approve as it is is left out, and said"


@pytest.mark.parametrize("mode", ["skills-other-bytes", "skills-more-bytes"])
async def test_a_file_that_is_not_the_approved_one_is_not_given(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        [result] = await found.run(("mcp_skill", {"server": "h", "skill": "refunds"}))
        assert result.is_error and "is not used" in result.content and "Send me" not in result.content


async def test_a_skill_that_changed_is_withheld_until_somebody_approves_it_again(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "skills-changing") as found:
        await found.approve()
        (tmp_path / "logs" / "h.changed").touch()
        await found.server().refresh()
        assert found.view().withheld == ("skill://team/refunds/SKILL.md",)
        assert found.tools == ["mcp__h__echo"] and "mcp_skill" not in found.engine.workspace._extensions.tools()
        [request] = [each for each in found.engine.workspace.extensions.approvals() if each.kind == "mcp"]
        changed = {tool.name: (tool.change, tool.diff or "") for tool in request.tools}
        assert changed["echo"][0] == "same" and "forms/EU.md" in changed["skill://team/refunds/SKILL.md"][1]
        await found.approve()
        [result] = await found.run(("mcp_skill", {"server": "h", "skill": "refunds", "file": "forms/EU.md"}))
        assert "Send it to me." in result.content, "now somebody has approved it"


async def test_it_is_asked_about_like_a_resource_and_a_rule_can_deny_it(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "skills") as found:
        await found.approve()
        found.model.answer(*call("mcp_skill", server="h", skill="refunds"))
        receipt = await found.engine.post("go")
        await found.until(lambda: found.engine.workspace.asks.permissions())
        [request] = found.engine.workspace.asks.permissions()
        assert request.rules == ("mcp:h/skills/refunds",) and "the skill refunds" in request.description
        await found.engine.grant(request.id, "allow")
        await found.engine.ended(receipt.run_id)
        desk = found.engine.workspace.asks._permissions
        desk.rules = type(desk.rules)(deny=("mcp:h/skills/*",), root=desk.rules.root)
        [result] = await found.run(("mcp_skill", {"server": "h", "skill": "refunds"}))
        assert result.is_error and "forbids" in result.content and len(reads(found)) == 1


# ── entries ──

TEXT = "---\nname: a\ndescription: Does it.\n---\nBody.\n"


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def entry(text: str = TEXT, **more: Any) -> dict[str, Any]:
    own = {"uri": "skill://x/a/SKILL.md", "digest": digest(text), "size": len(text.encode())}
    matter = {"name": "a", "description": "Does it."}
    return {"uri": own["uri"], "frontmatter": matter, "resources": [own], **more}


def file_at(uri: str, size: int = 1) -> dict[str, Any]:
    return {"uri": uri, "digest": digest(""), "size": size}


OWN = entry()["resources"][0]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"uri": "skill://x/a/other.md"}, "URI"),
    ({"uri": "skill://x/\u202ea/SKILL.md"}, "URI"),
    ({"frontmatter": {"name": "b", "description": "It is in the folder a."}}, "name"),
    ({"frontmatter": {"name": "a", "description": "\u200b"}}, "description"),
    ({"frontmatter": {"name": "a"}}, "description"),
    ({"frontmatter": {"name": "a", "description": "x" * 20_000}}, "larger"),
    ({"resources": "dynamic"}, "made anew"),
    ({"resources": None}, "files"),
    ({"resources": []}, "lacks"),
    ({"resources": [OWN, OWN]}, "twice"),
    ({"resources": [OWN, file_at("skill://x/b/SKILL.md")]}, "leads out"),
    ({"resources": [OWN, file_at("skill://x/a/../b")]}, "leads out"),
    ({"resources": [OWN, {**file_at("skill://x/a/b"), "digest": "md5:1"}]}, "digest"),
    ({"resources": [OWN, file_at("skill://x/a/b", -1)]}, "size"),
    ({"resources": [OWN, file_at("skill://x/a/b", BYTES_LIMIT)]}, "more than"),
    ({"resources": [OWN, *(file_at(f"skill://x/a/{n}") for n in range(FILES_LIMIT))]}, "more than"),
]


@pytest.mark.parametrize(("more", "why"), WRONG)
def test_an_entry_that_cannot_be_is_left_out_with_a_reason_and_the_others_stay(more: dict[str, Any], why: str) -> None:
    good = entry(uri="skill://x/b/a/SKILL.md", resources=[{**OWN, "uri": "skill://x/b/a/SKILL.md"}])
    found, left_out = usable_skills([entry(**more), good])
    assert list(found) == ["skill://x/b/a/SKILL.md"]
    assert len(left_out) == 1 and why in left_out[0]


def test_two_skills_with_one_name_are_told_apart_by_their_uri() -> None:
    other = entry(uri="skill://y/a/SKILL.md", resources=[{**OWN, "uri": "skill://y/a/SKILL.md"}])
    found, _ = usable_skills([entry(), other])
    assert list(labels(list(found.values()))) == ["skill://x/a/SKILL.md", "skill://y/a/SKILL.md"]


HEADS: list[tuple[str, dict[str, Any], bool]] = [
    ("license: MIT\n", {"license": "MIT"}, True),
    ("license: MIT\n", {}, False),
    ("", {"license": "MIT"}, False),
    ("tags: [a, 'b']\n", {"tags": ["a", "b"]}, True),
    ("tags: [a, b]\n", {"tags": ["a"]}, False),
    ("user-invocable: false\n", {"user-invocable": False}, True),
    ("user-invocable: true\n", {"user-invocable": False}, False),
    ("level: 1.0\n", {"level": 1}, True),
    ("level: two\n", {"level": 2}, False),
    ("compatibility:\n", {"compatibility": None}, True),
    ("metadata:\n  version: '1'\n", {"metadata": {"version": "1"}}, True),
    ("metadata:\n  version: '1'\n", {"metadata": {"version": "2"}}, False),
    ("metadata: x\n", {"metadata": {"version": "2"}}, False),
    ("allowed-tools: >\n  Bash\n  Read\n", {"allowed-tools": "Bash Read\n"}, True),
]


@pytest.mark.parametrize(("more", "said", "same"), HEADS)
def test_a_head_that_is_not_the_approved_one_is_refused(more: str, said: dict[str, Any], same: bool) -> None:
    text = TEXT.replace("---\nBody", f"{more}---\nBody")
    matter = {"name": "a", "description": "Does it.", **said}
    [skill] = usable_skills([entry(text, frontmatter=matter)])[0].values()
    result = {"contents": [{"uri": skill.uri, "text": text}]}
    if same:
        assert verified(skill, skill.file(""), result) == text.encode()
    else:
        with pytest.raises(WrongSkill, match="head"):
            verified(skill, skill.file(""), result)


@pytest.mark.parametrize("contents", [None, [], [{"blob": "%"}], [{"text": "a"}, {"text": "b"}], [{"blob": 1}]])
def test_an_answer_without_a_content_is_refused(contents: Any) -> None:
    [skill] = usable_skills([entry()])[0].values()
    with pytest.raises(WrongSkill):
        verified(skill, skill.file(""), {"contents": contents})
