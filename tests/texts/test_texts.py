"""Which skills, commands and agents there are: where they lie, whose they are, and what is left out and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.context.text_places import IN_HOME, IN_PROJECT
from covey.context.texts import DESCRIPTION_LENGTH, MAX_FILE_BYTES
from tests.texts.places import Places, put


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_all_known_places_are_looked_at(places: Places) -> None:
    for number, name in enumerate(IN_HOME):
        places.skill(f"own{number}", base=places.home / name)
    for number, name in enumerate(IN_PROJECT):
        places.skill(f"top{number}", base=places.project / name)
        places.command(f"near{number}", "x", base=places.root / name)
    places.skill("mine", base=places.home / ".config" / "covey")
    put(places.root / ".opencode" / "command" / "other.md", "x")
    texts = places.read()
    assert len(texts.all("skill")) == len(IN_HOME) + len(IN_PROJECT) + 1
    assert [file.name for file in texts.all("command")] == [f"near{n}" for n in range(len(IN_PROJECT))] + ["other"]
    assert texts.left_out == ()


def test_s1_a_skill_without_a_description_is_left_out_and_it_is_said_why(places: Places) -> None:
    places.skill("good", "---\nname: good\ndescription: Use when: always: yes\n---\nDo.")
    bad = places.skill("bad", "---\nname: bad\n---\nDo.")
    empty = places.skill("empty", "---\nname: empty\ndescription: Nothing.\n---\n")
    texts = places.read()
    assert [file.description for file in texts.files] == ["Use when: always: yes"]
    why = {left.path: left.why for left in texts.left_out}
    assert "no description" in why[bad] and "nothing in it" in why[empty]


def test_s2_of_two_with_one_name_the_users_own_counts_and_one_warning_names_both(places: Places) -> None:
    theirs = places.skill("deploy")
    mine = places.skill("deploy", base=places.home / ".agents", body="Mine.")
    texts = places.read()
    assert [file.body for file in texts.files] == ["Mine."]
    (left,) = texts.left_out
    assert left.path == theirs and str(mine) in left.why and "your own" in left.why


def test_of_two_of_a_project_the_nearest_counts(places: Places) -> None:
    places.skill("deploy", base=places.project / ".agents", body="Far.")
    places.skill("deploy", base=places.root / ".claude", body="Near.")
    assert [file.body for file in places.read().files] == ["Near."]


def test_s3_a_description_is_one_line_without_anything_hidden(places: Places) -> None:
    words = "Look\u200b\u202e \u2066at\x1b[31m it" + "\U000e0041\ufe0f" + "\n\n  twice."
    places.skill("look", f"---\nname: look\ndescription: |\n  {words}\n---\nDo.")
    places.skill("long", f"---\nname: long\ndescription: {'x' * 3000}\n---\nDo.")
    described = {file.name: file.description for file in places.read().files}
    assert described["look"] == "Look at[31m it twice."
    assert len(described["long"]) == DESCRIPTION_LENGTH and described["long"].endswith("…")


def test_s4_what_an_untrusted_project_has_is_withheld(places: Places) -> None:
    places.skill("theirs")
    places.skill("mine", base=places.home / ".claude")
    texts = places.read(trusted=False)
    assert [file.name for file in texts.files] == ["mine"]
    assert [file.name for file in texts.withheld] == ["theirs"]
    assert texts.typed("theirs") is None


@pytest.mark.parametrize("what", ["file", "folder", "all"])
def test_s6_a_link_that_leads_out_is_followed_in_the_users_own_folders_alone(places: Places, what: str) -> None:
    secret = put(places.home.parent / "else" / "skills" / "evil" / "SKILL.md", "---\ndescription: d\n---\nSecret.")
    for base in (places.root / ".agents", places.home / ".agents"):
        target = {"file": secret, "folder": secret.parent, "all": secret.parent.parent}[what]
        link = {"file": base / "skills/evil/SKILL.md", "folder": base / "skills/evil", "all": base / "skills"}[what]
        link.parent.mkdir(parents=True)
        link.symlink_to(target)
    texts = places.read()
    assert [file.is_own for file in texts.files] == [True]
    if what != "all":  # where the whole folder leads elsewhere, nobody looks which files it would have
        (left,) = texts.left_out
        assert left.path.is_relative_to(places.root) and "leads out" in left.why


def test_a_link_within_the_project_is_followed(places: Places) -> None:
    places.skill("shared", base=places.root / ".agents")
    (places.root / ".claude").mkdir()
    (places.root / ".claude" / "skills").mkdir()
    (places.root / ".claude" / "skills" / "linked").symlink_to(places.root / ".agents" / "skills" / "shared")
    assert [file.name for file in places.read().files] == ["shared"]


def test_s8_a_file_that_changed_is_read_again_and_the_others_are_not(places: Places) -> None:
    file = places.skill("a")
    places.skill("b")
    before = places.read()
    file.write_text("---\nname: a\ndescription: New.\n---\nNew body.\n")
    after = places.read(previous=before)
    assert [skill.description for skill in before.all("skill")] == ["How to a.", "How to b."]
    assert [skill.description for skill in after.all("skill")] == ["New.", "How to b."]
    assert before.find("skill", "b") is after.find("skill", "b")


def test_a_name_comes_from_the_head_or_the_folder_and_can_be_typed(places: Places) -> None:
    places.skill("folder", "---\nname: other-name\ndescription: d\n---\nx")
    places.skill("kept", "---\nname: Not A Name!\ndescription: d\n---\nx")
    bad = places.skill("bad name", "---\ndescription: d\n---\nx")
    places.command("git/commit", "x")
    places.agent("deep/reviewer", "---\ndescription: d\n---\nx")
    texts = places.read()
    assert {file.name for file in texts.files} == {"other-name", "kept", "git:commit", "reviewer"}
    (left,) = texts.left_out
    assert left.path == bad and "its name" in left.why


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"---\ndescription: d\n---\n\0", "no text"), (b"x" * (MAX_FILE_BYTES + 1), "larger"), (None, "cannot be read")],
)
def test_what_cannot_be_a_text_is_left_out(places: Places, content: bytes | None, why: str) -> None:
    file = places.skill("odd")
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    (left,) = places.read().left_out
    assert why in left.why


def test_who_may_ask_for_it_is_said_in_its_head(places: Places) -> None:
    places.skill("people", "---\ndescription: d\ndisable-model-invocation: true\n---\nx")
    places.skill("model", "---\ndescription: d\nuser-invocable: false\n---\nx")
    texts = places.read()
    people, model = texts.find("skill", "people"), texts.find("skill", "model")
    assert people and model
    assert (people.is_for_models, people.is_for_people) == (False, True)
    assert (model.is_for_models, model.is_for_people) == (True, False)
    assert texts.typed("model") is None and texts.typed("people") is people
