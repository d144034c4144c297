"""What is left out of the modules of the page on their way to a browser, and what never is."""

from __future__ import annotations

import pytest

from covey.server.page_files import DIRECTORY
from covey.server.page_scripts import without_comments


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("a // b\nc", "a\nc"),
        ("/** @type {X} */\nlet a = 1; /* b */ let c", "let a=1;let c"),
        ("// only a comment", ""),
        ("a /* one\n two */ b", "a\nb"),  # a comment over two lines ends a statement as a newline does
        ("return /* x */ a", "return a"),
        ("'//' + \"/* no */\" + '\\'//'", "'//' + \"/* no */\" + '\\'//'"),
        ("`// ${a /* b */ + `/* ${ { c: '}' }.c } */`} //`", "`// ${a + `/* ${{c:'}'}.c } */`} //`"),
        ("`\\`// ${'`'} $ { //`", "`\\`// ${'`'} $ { //`"),
        ("`  a\n  b ` // c", "`  a\n  b `"),
        ("x = /[/]\\/\\//g.test(y) // z", "x=/[/]\\/\\//g.test(y)"),
        ("return /'/.exec(a) // b'", "return /'/.exec(a)"),
        ('f(/`/, /"/) // c', 'f(/`/,/"/)'),
        ("a / b // c\n/ d", "a / b\n/ d"),
        ("(a) / 2 /* ' */ / 3", "(a)/ 2 / 3"),
        ("a[0] / 2 // '", "a[0]/ 2"),
        ("`a` / 2 // '", "`a` / 2"),
        ("a + +b - -c", "a + +b - -c"),
        ("a ? .5 : b", "a?.5:b"),
        ("let a\nlet b", "let a\nlet b"),
        ("f({\n  a,\n\n  b,\n})\n;[c]", "f({a,b,})\n;[c]"),
        ("https://x", "https:"),  # a label, and a comment
    ],
)
def test_comments_and_idle_space_are_left_out_and_nothing_else(written: str, sent: str) -> None:
    assert without_comments(written) == sent + "\n"
    assert without_comments(sent) == sent + "\n", "a second time changes nothing"


@pytest.mark.parametrize("written", ["'a", '"a\n"', "`a", "`${a", "`${`", "/* a", "x = /a", "x = /[/"])
def test_what_has_no_end_is_refused_and_not_sent_in_part(written: str) -> None:
    with pytest.raises(ValueError, match="no end"):
        without_comments(written)


def test_every_module_of_the_page_is_read_to_its_end_and_loses_only_comments() -> None:
    for path in DIRECTORY.rglob("*.js"):
        written = path.read_text("utf-8")
        sent = without_comments(written)
        assert len(sent) < len(written), path.name
        assert "@param" not in sent and "\n//" not in sent, path.name
