"""Changes that a session makes, on the page: seen in the transcript, reviewed, commented on, and undone."""

from __future__ import annotations

from tests.support.fake_model import FakeModel
from tests.web.pages import Site, Tab, corrects, expect, until

PATCH = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Add File: src/b.py\n+y\n+z\n*** End Patch"


def comments_on_the_change(tab: Tab, text: str) -> None:
    """Such a change is made and looked at, and a comment on it is written, but not added yet."""
    tab.prompt("Write the area of a circle.")
    tab.waits_for(".ask")
    tab.page.click(".ask .primary")
    tab.sees("Written.")
    tab.idle()
    tab.page.click("#panel-button")
    tab.page.locator("#review .row.added", has_text="return 3 * r * r").hover()
    tab.page.get_by_role("button", name="Comment on line 2").click()
    tab.page.fill(".comment-form textarea", text)


def test_a_change_is_made_commented_on_a_line_corrected_and_accepted(site: Site, sized: Tab, model: FakeModel) -> None:
    corrects(model)
    page = sized.page
    sized.prompt("Write the area of a circle.")
    sized.waits_for(".ask")
    sized.sees("return 3 * r * r", within=".ask")
    page.click(".ask .primary")
    sized.sees("Written.")
    sized.idle()
    page.click("#panel-button")
    line = page.locator("#review .row.added", has_text="return 3 * r * r")  # the only file is open at first
    line.hover()
    line.get_by_role("button", name="Comment on line 2").click()
    page.fill(".comment-form textarea", "π has more digits: use 3.14159")
    page.get_by_role("button", name="Add to the next prompt").click()
    page.get_by_role("button", name="Send now").click()
    sized.waits_for(".ask")
    sized.sees("3.14159", within=".ask")
    page.click(".ask .primary")
    sized.sees("Corrected.")
    sized.idle()
    assert "line 2" in model.requests[-2].prompt and "return 3 * r * r" in model.requests[-2].prompt
    assert "3.14159" in (site.server.project / "area.py").read_text()
    if sized.page.locator(
        "body.panel-open"
    ).count():  # on a phone it lay over the answer, and went when the comment was sent
        sized.sees("return 3.14159", within="#review .diff")
        sized.waits_for("#review .comment", 0)


def test_a_comment_that_is_being_written_survives_a_change_of_the_files(site: Site, tab: Tab, model: FakeModel) -> None:
    corrects(model)
    page = tab.page
    comments_on_the_change(tab, "more digits")
    site.workspace.request(
        "POST", f"/agent/sessions/{tab.session}/shell", {"command": "echo x > other.txt", "share": False}
    ).ok()
    expect(page.locator("#review details.file")).to_have_count(2)
    expect(page.locator(".comment-form textarea")).to_have_value("more digits")
    page.get_by_role("button", name="Add to the next prompt").click()
    tab.sees("more digits", within="#review .comment")
    page.reload()
    tab.sees("more digits", within="#review .comment")
    tab.sees("1 comment", within="#comment-note")


def test_a_comment_is_edited_in_place_and_stays_as_it_was_until_that_is_saved(
    site: Site, sized: Tab, model: FakeModel
) -> None:
    corrects(model)
    page = sized.page
    comments_on_the_change(sized, "more digits")
    page.get_by_role("button", name="Add to the next prompt").click()
    edit, field = page.get_by_role("button", name="Edit this comment"), page.locator(".comment-form textarea")

    edit.click()
    expect(field).to_have_value("more digits")
    expect(field).to_be_focused()
    page.fill(".comment-form textarea", "fewer digits")
    sized.sees("1 comment", within=".comment-box")
    page.get_by_role("button", name="Cancel").click()
    sized.sees("more digits", within="#review .comment")

    edit.click()
    page.fill(".comment-form textarea", "even more digits")
    site.workspace.request(
        "POST", f"/agent/sessions/{sized.session}/shell", {"command": "echo y >> area.py", "share": False}
    ).ok()
    sized.sees("y", within="#review .row.added:last-child")
    expect(field).to_have_value("even more digits")
    page.get_by_role("button", name="Save").click()
    sized.sees("even more digits", within="#review .comment")
    page.reload()
    if not page.locator("body.panel-open").count():  # which a phone does not keep open
        page.click("#panel-button")
    sized.sees("even more digits", within="#review .comment")
    expect(page.locator("#review .comment")).to_have_count(1)


def test_a_comment_that_is_being_edited_is_sent_as_it_stands(site: Site, tab: Tab, model: FakeModel) -> None:
    corrects(model)
    page = tab.page
    comments_on_the_change(tab, "more digits")
    page.get_by_role("button", name="Add to the next prompt").click()
    page.get_by_role("button", name="Edit this comment").click()
    page.fill(".comment-form textarea", "five digits")
    page.get_by_role("button", name="Send now").click()
    tab.waits_for(".ask")
    tab.waits_for(".comment-form", 0)
    assert "five digits" in model.requests[-1].prompt and "more digits" not in model.requests[-1].prompt
    page.click(".ask .primary")
    tab.sees("Corrected.")
    tab.idle()


def test_undo_shows_what_it_would_do_and_puts_files_back(site: Site, tab: Tab, model: FakeModel) -> None:
    corrects(model)
    tab.prompt("Write the area of a circle.")
    tab.waits_for(".ask")
    tab.page.click(".ask .primary")
    tab.sees("Written.")
    tab.idle()
    tab.page.click("#menu-button")
    tab.page.get_by_role("menuitem", name="Undo the last turn").click()
    expect(tab.page.locator("dialog")).to_contain_text("area.py")
    assert (site.server.project / "area.py").exists()
    tab.page.get_by_role("button", name="Undo", exact=True).click()
    until(lambda: not (site.server.project / "area.py").exists())
    expect(tab.page.locator("#log article")).to_have_count(0)
    expect(tab.page.locator("#prompt")).to_have_value("Write the area of a circle.")


def test_a_patch_is_shown_by_its_files_and_its_diff_names_each(site: Site, sized: Tab) -> None:
    sized.tell({"tools": [{"name": "apply_patch", "input": {"patch": PATCH}}]}, {"text": "Patched."})
    sized.waits_for(".ask")
    sized.allow()
    sized.sees("Patched.")
    sized.sees("Patch", within="details.card summary")
    sized.sees("a.py, src/b.py", within="details.card summary")
    sized.sees("+3 −0", within="details.card summary")
    files = sized.page.locator("details.card .diff .row.file")  # a small diff is open at first
    expect(files).to_have_text(["a.py", "src/b.py"])
    expect(files.first).to_have_css("border-top-width", "0px")  # a row, and no file of the review
    assert (site.server.project / "src/b.py").read_text() == "y\nz\n"
