"""Reading on the page: following, places that stay, windows of messages, long and hostile texts, costs by count."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.support.fake_model import Call, FakeModel, Reply
from tests.web.pages import Site, Tab, expect

TOP = "document.getElementById('scroller').scrollTop"
END = (
    "(() => { const s = document.getElementById('scroller'); return s.scrollHeight - s.clientHeight - s.scrollTop; })()"
)


READ = """(() => { const top = document.getElementById('scroller').getBoundingClientRect().top;
  const read = [...document.querySelectorAll('#log article')].find((a) => a.getBoundingClientRect().top >= top);
  return [read.dataset.id, read.getBoundingClientRect().top]; })()"""
"""The first message that is whole on the screen, and where it is."""
WHERE = "(id) => document.querySelector(`#log article[data-id='${id}']`)?.getBoundingClientRect().top"


def filled(site: Site, count: int) -> str:
    """A session with so many messages, written where the server keeps them."""
    session = site.session("Long")
    site.workspace.ended(site.workspace.prompt(session, "First of all.")["run_id"])
    site.stop()
    with closing(sqlite3.connect(site.server.data_dir / "covey.db")) as store, store:
        columns = "workspace_id, session_id, run_id, role"
        (raw, *fields) = store.execute(f"SELECT value, {columns} FROM messages WHERE role = 'user'").fetchone()
        value = json.loads(raw)
        for n in range(count):
            parts = [{"type": "text", "data": {"text": f"Message **{n}**\n\nand more"}}]
            made = json.dumps({**value, "id": f"0000{n:06}", "parts": parts}).encode()
            store.execute(
                f"INSERT INTO messages (id, value, {columns}) VALUES (?, ?, ?, ?, ?, ?)", (f"0000{n:06}", made, *fields)
            )
    site.start()
    site.at_end.append(lambda: forget_filled(site))
    return session


def forget_filled(site: Site) -> None:
    """The oracle would rightly say that no event mentions them."""
    site.server.stop()
    with closing(sqlite3.connect(site.server.data_dir / "covey.db")) as store, store:
        store.execute("DELETE FROM messages WHERE id LIKE '0000%'")


def test_w17_one_notch_up_stops_following_and_latest_resumes_it(
    site: Site, tab: Tab, model: FakeModel, midway: Callable[[], bool]
) -> None:
    model.on(lambda request: Reply(text="line {n}\n\n", chunks=400, gates={200: "more", 300: "last"}))
    tab.prompt("Many lines.")
    tab.sees("line 198")
    assert tab.page.evaluate(END) < 24
    tab.page.mouse.move(640, 300)
    tab.page.mouse.wheel(0, -200)
    expect(tab.page.locator("#latest")).to_be_visible()
    tab.drawn()
    before = tab.page.evaluate(TOP)
    is_restarted = midway()
    model.release("more")
    tab.sees("topped" if is_restarted else "line 298")
    assert tab.page.evaluate(TOP) == before
    tab.page.click("#latest")
    expect(tab.page.locator("#latest")).to_be_hidden()
    model.release("last")
    if is_restarted:
        tab.prompt("Go on.")
    tab.sees("line 399")
    tab.idle()
    assert tab.page.evaluate(END) < 24


def test_w19_only_the_transcript_is_scrolled(site: Site, sized: Tab, midway: Callable[[], bool]) -> None:
    sized.tell({"text": "line {n}\n\n", "chunks": 200})
    sized.sees("line 199")
    sized.idle()
    if midway():
        sized.tell({"text": "more {n}\n\n", "chunks": 50}, about="Again.")
        sized.sees("more 49")
    assert (
        sized.page.evaluate("[scrollX, scrollY, document.body.scrollTop, document.documentElement.scrollTop]")
        == [0] * 4
    )


def test_w10_a_growing_input_is_shown_as_text_and_its_json_is_read_once(
    site: Site, tab: Tab, model: FakeModel, midway: Callable[[], bool]
) -> None:
    site.show(tab, site.session())
    content = "x" * 40_000
    call = Call(name="write", input={"file_path": "big.txt", "content": content}, pieces=400)
    tab.page.evaluate(
        """(() => { window.__parsed = 0; const parse = JSON.parse;
             JSON.parse = (text, ...more) => { if (text.startsWith('{"file_path"')) window.__parsed++; return parse(text, ...more); }; })()"""
    )
    model.on(lambda request: Reply(text="", tools=(call,), gates={200: "go"}))
    tab.prompt("Write it.")
    tab.sees("writing")
    assert tab.page.evaluate("window.__parsed") == 0
    if midway():  # this is its end
        tab.sees("topped")
        tab.drawn()
    else:
        model.release("go")
        tab.waits_for(".ask")
    assert tab.page.evaluate("window.__parsed") <= 3


DRAWN = (
    "import(document.querySelector('script[type=module]').src.replace('main.js', 'dom.js')).then((m) => m.frames.drawn)"
)
COUNT_FRAMES = """(() => { window.__frames = 0; const count = () => { window.__frames++; requestAnimationFrame(count); };
  requestAnimationFrame(count); })()"""


def test_w09_many_deltas_are_drawn_once_for_each_frame_and_the_end_is_drawn(
    site: Site, tab: Tab, model: FakeModel, midway: Callable[[], bool]
) -> None:
    site.show(tab, site.session())
    text = "word **{n}** `code`\n\n"
    model.on(lambda request: Reply(text=text, chunks=5000, gates={4000: "more"}))
    tab.page.evaluate(COUNT_FRAMES)
    before = tab.page.evaluate(DRAWN)
    tab.prompt("Many words.")
    tab.sees("3999")
    is_restarted = midway()
    model.release("more")
    tab.sees("topped" if is_restarted else "4999")
    tab.idle()
    drawn = tab.page.evaluate(DRAWN) - before
    assert drawn <= tab.page.evaluate("window.__frames") + 1, "a frame was drawn more than once"
    assert tab.page.locator("article.assistant .prose code").count() == (4000 if is_restarted else 5000)


def test_w11_w12_w13_a_long_session_opens_at_its_end_with_a_window_of_nodes(
    site: Site, midway: Callable[[], bool]
) -> None:
    session = filled(site, 2000)
    tab = site.let_in()
    nodes = "document.querySelectorAll('*').length"
    empty = tab.page.evaluate(nodes)
    assert not [url for url in tab.requests if "/messages" in url]  # nothing is loaded that is not shown
    site.show(tab, session)
    tab.sees("Message 1999")
    assert tab.page.evaluate(END) < 24
    assert tab.page.locator("#log article").count() <= 101
    is_restarted = midway()
    shown = tab.page.evaluate(nodes)
    assert shown < empty + 101 * 14
    tab.page.keyboard.type("a word in a long session")
    assert tab.page.evaluate(nodes) == shown
    loads = [url for url in tab.requests if "/messages" in url]
    assert 1 <= len(loads) <= 1 + is_restarted and all("limit=101" in url for url in loads)


def test_w18_the_line_being_read_stays_when_older_messages_come(site: Site, midway: Callable[[], bool]) -> None:
    session = filled(site, 400)
    tab = site.let_in()
    site.show(tab, session)
    tab.sees("Message 399")
    tab.page.evaluate("document.getElementById('scroller').focus()")
    tab.page.mouse.move(640, 300)
    tab.page.mouse.wheel(0, -300)
    expect(tab.page.locator("#latest")).to_be_visible()
    tab.drawn()
    line = tab.page.evaluate(READ)
    midway()
    assert tab.page.evaluate(WHERE, line[0]) == pytest.approx(line[1], abs=2)
    for _ in range(3):
        first = tab.page.locator("#log article").first.get_attribute("data-id")
        tab.page.evaluate(
            """(() => { const s = document.getElementById('scroller'); s.scrollTop = 30;
                 const a = document.querySelector('#log article:nth-child(3)');
                 window.__anchor = a; window.__at = a.getBoundingClientRect().top; })()"""
        )
        expect(tab.page.locator("#log article").first).not_to_have_attribute("data-id", first or "")
        moved = tab.page.evaluate("Math.abs(window.__anchor.getBoundingClientRect().top - window.__at)")
        assert moved <= 31  # by as much as it was scrolled to the very top, and no more


HOSTILE = {
    "one line": "x" * 1_000_000,
    "quotes": ">" * 4000 + " deep",
    "strikes": "~a~ ~~b " * 5000,
    "stars": "*a **b " * 4000,
    "brackets": "[" * 5000,
    "backticks": "`" * 5000 + "a",
    "links": "[a](" * 3000,
    "tables": "|a" * 3000 + "\n" + "|-" * 3000,
    "fence": "```\n" + "code\n" * 20_000,
}
COUNT_WORK = """async ([texts, pieces]) => {
  const base = document.querySelector('script[type=module]').src.replace('main.js', '');
  const { MarkdownView } = await import(base + 'markdown.js');
  const { charCodeAt, indexOf } = String.prototype;
  const { createElement, createTextNode } = Document.prototype;
  let looks = 0, nodes = 0;
  const counted = {
    charCodeAt(at) { looks++; return charCodeAt.call(this, at); },
    indexOf(what, from = 0) { const at = indexOf.call(this, what, from); looks += (at < 0 ? this.length : at + 1) - from; return at; },
  };
  const made = (make) => function (...given) { nodes++; return make.apply(this, given); };
  const found = {};
  Object.assign(String.prototype, counted);
  Object.assign(Document.prototype, { createElement: made(createElement), createTextNode: made(createTextNode) });
  try {
    for (const [name, text] of Object.entries(texts)) {
      looks = nodes = 0;
      const root = createElement.call(document, 'div');
      const view = new MarkdownView(root);
      for (let n = 1; n < pieces; n++) view.update(text.slice(0, Math.floor(text.length * n / pieces)), false, true);
      view.update(text, true, true);
      found[name] = [looks, nodes, root.textContent.length];
    }
  } finally {
    Object.assign(String.prototype, { charCodeAt, indexOf });
    Object.assign(Document.prototype, { createElement, createTextNode });
  }
  return found;
}"""
LOOKS = 60
"""How often a character is looked at, at most, each time a text is drawn: 43 with brackets. Quadratic work is thousands."""


def test_w14_hostile_and_enormous_markdown_is_drawn_and_costs_little(site: Site, tab: Tab) -> None:
    """By what is done, not by time: characters that are looked at, and nodes that are made, for three sizes of each text."""
    for part in (0.5, 1, 2):
        texts = {name: (text * 2)[: int(len(text) * part)] for name, text in HOSTILE.items()}
        for name, (looks, nodes, drawn) in tab.page.evaluate(COUNT_WORK, [texts, 1]).items():
            assert drawn > 0, name
            assert len(texts[name]) < looks < LOOKS * len(texts[name]), (name, part, looks)
            assert nodes < 20_000, (name, part, nodes)


def test_w14_hostile_markdown_that_grows_costs_what_is_open_and_a_line_without_end_only_what_is_new(
    site: Site, tab: Tab
) -> None:
    pieces = 40
    found = tab.page.evaluate(COUNT_WORK, [HOSTILE, pieces])
    for name, (looks, nodes, drawn) in found.items():
        assert drawn > 0, name
        assert looks < LOOKS * len(HOSTILE[name]) * pieces / 2, (name, looks)
        assert nodes < 20_000, (name, nodes)
    for name in ("one line", "fence"):
        assert found[name][0] < 5 * len(HOSTILE[name]), (name, found[name])


def test_the_text_drawn_piece_by_piece_is_that_drawn_at_once(site: Site, tab: Tab) -> None:
    text = (
        "# Head\n\npara with *em* and\nlines\n\n- one\n- two\n\n  more\n\n1. a\n2. b\n\n> quote\n> more\n\n"
        "```python\ndef f():\n    return 1\n```\n\na | b\n--|--\n1 | 2\n\nsetext\n---\n\n[ref][x] and https://example.org/a.\n\n"
        "[x]: https://example.com\n\nend **bold** 漢字 🧪\n"
    )
    same = tab.page.evaluate(
        """async (text) => {
             const base = document.querySelector('script[type=module]').src.replace('main.js', '');
             const { MarkdownView } = await import(base + 'markdown.js');
             const shape = (node) => node.nodeType === 3 ? node.data : `<${node.className === 'tail' ? '' : node.tagName}>${[...node.childNodes].map(shape).join('')}</>`;
             const draw = (cuts) => { const root = document.createElement('div'); const view = new MarkdownView(root);
               for (const cut of cuts) view.update(text.slice(0, cut), false); view.update(text, true);
               root.normalize(); return shape(root); };
             const whole = draw([]);
             const wrong = [];
             for (let cut = 1; cut < text.length; cut++) if (draw([cut]) !== whole) wrong.push(cut);
             if (draw([...Array(text.length).keys()]) !== whole) wrong.push('each');
             return wrong;
           }""",
        text,
    )
    assert same == []


def test_where_a_link_is_defined_nothing_is_shown(site: Site, tab: Tab) -> None:
    tab.tell({"text": "See [the page][p].\n\n[p]: https://good.example/ 'title'\n\nEnd."})
    expect(tab.page.locator("article.assistant p")).to_have_text(["See the page.", "End."])
    expect(tab.page.locator("article.assistant a")).to_have_attribute("href", "https://good.example/")


def test_w16_output_of_many_lines_shows_head_and_tail_and_opens_in_pieces(site: Site, tab: Tab) -> None:
    text = "\n".join(f"row {n}" for n in range(50_000))
    shown = tab.page.evaluate(
        """async (text) => {
             const base = document.querySelector('script[type=module]').src.replace('main.js', '');
             const { longText } = await import(base + 'cards.js');
             const node = longText(text);
             const first = node.textContent;
             const button = node.querySelector('button').textContent;
             node.querySelector('button').click();
             return [first.length, first.includes('row 0'), first.includes('row 49999'), first.includes('row 25000'), button, node.textContent.includes('row 1100')];
           }""",
        text,
    )
    assert shown[0] < 6000
    assert shown[1:4] == [True, True, False]
    assert "49,600 lines left out" in shown[4]
    assert shown[5] is True


def test_w15_a_change_of_many_files_is_a_list_of_names_and_a_diff_is_fetched_when_opened(
    site: Site, tab: Tab, midway: Callable[[], bool]
) -> None:
    command = "mkdir many && for i in $(seq 1 400); do echo $i > many/f$i.txt; done; seq 1 20000 > long.txt"
    tab.tell({"tools": [{"name": "bash", "input": {"command": f"git init -q . ; {command}"}}]}, {"text": "Made."})
    tab.waits_for(".ask")
    tab.page.click(".ask .primary")
    tab.sees("Made.")
    tab.idle()
    expect(tab.page.locator("#panel-button")).to_contain_text("401")  # they are counted, which takes the server a while
    midway()
    tab.requests.clear()
    tab.page.click("#panel-button")
    tab.waits_for("details.file")
    assert all("diffs=0" in url for url in tab.requests if "/changes" in url)
    assert tab.page.locator(".diff .row").count() == 0
    tab.page.locator("details.file", has_text="long.txt").locator("summary").click()
    tab.waits_for(".diff .row")
    assert tab.page.locator(".diff .row").count() <= 401
    assert "more lines" in tab.page.locator(".diff .more").inner_text()


def test_w23_at_320_nothing_scrolls_sideways_and_every_pane_is_reached(site: Site, midway: Callable[[], bool]) -> None:
    tab = site.let_in(width=320, height=600, is_phone=True)
    tab.tell(
        {
            "text": "`"
            + "x" * 300
            + "`\n\n```\n"
            + "y" * 300
            + "\n```\n\n| a | b |\n|--|--|\n| "
            + "z" * 200
            + " | 2 |\n"
        }
    )
    tab.sees("zzz")
    tab.idle()

    def fits() -> None:
        wide, window = tab.widths()
        assert wide <= window == 320

    fits()
    midway()
    fits()
    tab.page.tap("#drawer")
    expect(tab.page.locator("#new")).to_be_in_viewport()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#new")).not_to_be_in_viewport()
    tab.page.tap("#panel-button")
    for name in ("Changes", "Files", "Jobs"):
        tab.page.get_by_role("tab", name=name).tap()
        fits()
    tab.page.get_by_role("button", name="Close the panel").tap()
    tab.page.tap("#menu-button")
    expect(tab.page.get_by_role("menuitem", name="Rename…")).to_be_in_viewport()
    fits()
    overlaps = tab.page.evaluate(
        """(() => { const boxes = [...document.querySelectorAll('#head button, #composer button, #composer select')]
             .filter((node) => node.offsetParent).map((node) => [node.id, node.getBoundingClientRect()]);
             const hits = [];
             boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
               if (x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1) hits.push([a, b]); }));
             return hits; })()"""
    )
    assert overlaps == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_can_be_chosen(site: Site, scheme: str) -> None:
    tab = site.let_in(color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    own = tab.page.evaluate(ground)
    tab.page.click("#settings")
    tab.page.get_by_role("menuitemradio", name=f"Theme: {'dark' if scheme == 'light' else 'light'}").click()
    other = tab.page.evaluate(ground)
    assert own != other
    tab.page.reload()
    site.connected(tab)
    assert tab.page.evaluate(ground) == other
