"""Pictures in the terminals that can show them, their names in all others."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64encode

from covey.lines.line import Span, StyledLine
from covey.lines.pictures import PictureRow, PictureSource, ShownPicture, fitted, pixels
from covey.lines.theme import DARK
from covey.tui.frame import ScreenFrame
from covey.tui.terminal.cells import PLACEHOLDER
from covey.tui.terminal.painter import ScreenLook, paint
from covey.tui.terminal.pictures import KEPT, Gallery, Pictures, known_by, known_by_tmux
from tests.cli.conftest import Home
from tests.tui.program import PtyProgram
from tests.tui.screen_model import TerminalModel


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes((n % 256, column % 256, 99) * 1)[:3] * width for n, column in enumerate(range(height))
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


SHOT = png(200, 160)
SENT = b64encode(SHOT).decode()


def _start(home: Home, name: str, **env: str) -> PtyProgram:
    """With a picture in the conversation, opened."""
    reply = [[{"text": "I look."}, {"tool": "view", "input": {"file_path": "shot.png"}}], [{"text": "It is green."}]]
    script = {"replies": [{"when": "look", "steps": reply}, {"steps": [[{"text": "line\n\n", "repeat": 60}]]}]}
    (home.config.parent.parent.parent / "script.json").write_text(json.dumps(script))
    text = home.config.read_text().replace('{ id = "default" }', '{ id = "default", sees_images = true }')
    home.config.write_text(text)
    (home.project / "shot.png").write_bytes(SHOT)
    program = PtyProgram(
        home.command(), cwd=home.project, env=home.env | env, columns=100, lines=30, name=name, term="xterm-256color"
    )
    program.wait_for("What should I do?")
    program.type("look at it\r")
    program.wait_for("It is green.")
    program.type("\x0f")
    program.wait_for("image/png · 200 × 160")
    return program


def _shown(program: PtyProgram) -> list[str]:
    return [row for row in program.screen.rows if PLACEHOLDER in row]


def test_a_terminal_with_the_kitty_protocol_shows_it_until_it_is_scrolled_away(own_home: Home) -> None:
    with _start(own_home, "kitty(0.41.1)") as program:
        program.wait_until(
            lambda: [row.count(PLACEHOLDER) for row in _shown(program)] == [20] * 8, "not all of it is there"
        )
        assert list(program.screen.pictures.values()) == [SENT]
        program.type("more\r")
        program.wait_until(lambda: PLACEHOLDER not in program.screen.text, "it is still there")
        assert list(program.screen.pictures.values()) == [SENT], "it is kept for when it comes into sight again"
        program.type("\x04")
        assert program.finish() == 0
        assert program.screen.pictures == {}
        assert program.screen.is_as_before


def test_a_terminal_with_inline_images_gets_it_over_blanks_while_all_of_it_is_there(own_home: Home) -> None:
    with _start(own_home, "iTerm2 3.5.0") as program:
        program.wait_until(lambda: program.screen.drawn, "it was not drawn")
        row, column, sent = program.screen.drawn[0]
        assert sent.endswith(f":{SENT}")
        assert "inline=1;width=20;height=8" in sent
        assert program.screen.rows[row - 1].endswith("200 × 160")
        assert column == 4


def test_any_other_terminal_reads_what_it_is_and_gets_no_sequence_that_it_may_not_know(own_home: Home) -> None:
    with _start(own_home, "XTerm(390)") as program:
        assert PLACEHOLDER not in program.screen.text
        assert (program.screen.pictures, program.screen.drawn) == ({}, [])
        assert "\x1b_" not in program.raw
        assert "1337" not in program.raw


def test_which_terminals_are_taken_to_show_pictures() -> None:
    assert known_by("kitty(0.41.1)", {}) == "kitty"
    assert known_by("kitty(0.28.0)", {}) == known_by("kitty(1.0.0)", {}) == "kitty"
    assert known_by("kitty(0.26.5)", {}) == known_by("kitty", {}) == "", "it prints the characters, as boxes"
    assert known_by("ghostty 1.2.0", {}) == "kitty"
    assert known_by("WezTerm 20240203", {}) == "iterm"
    assert known_by("Konsole 24.2", {}) == "", "it says that it knows the protocol, and prints the characters"
    assert known_by("kitty(0.41.1)", {"COVEY_PICTURES": "none"}) == ""
    assert known_by("anything", {"COVEY_PICTURES": "iterm"}) == "iterm"
    assert known_by("kitty(0.41.1)", {"TMUX": "/tmp/x"}) == ""
    assert known_by("", {"TMUX": "/tmp/x", "COVEY_PICTURES": "kitty"}) == "kitty in tmux"
    assert known_by_tmux("kitty(0.41.1) on\n") == "kitty in tmux"
    assert known_by_tmux("kitty(0.41.1) 1\n") == "kitty in tmux", "as tmux 3.3 says it"
    assert known_by_tmux("kitty(0.41.1) off\n") == known_by_tmux("kitty(0.41.1) 0\n") == ""
    assert known_by_tmux("kitty(0.26.5) on\n") == ""
    assert known_by_tmux("XTerm(390) all\n") == ""
    assert known_by_tmux(" \n") == ""


def _frame(picture: ShownPicture, first: int, height: int = 12) -> ScreenFrame:
    rows = [
        StyledLine((Span("  "), Span(" " * picture.columns, picture=PictureRow(picture, n))))
        for n in range(picture.rows)
    ]
    return ScreenFrame(40, tuple([*[StyledLine()] * max(first, 0), *rows[max(-first, 0) :]][:height]))


def _look(pictures: Pictures) -> ScreenLook:
    return ScreenLook(40, 12, DARK, pictures=pictures)


def test_in_tmux_only_the_content_goes_through_to_the_terminal_around_it() -> None:
    picture = ShownPicture(0x010203, "image/png", "A" * 5000, 4, 2)
    model, gallery = TerminalModel(40, 12), Gallery("kitty in tmux")
    model.feed((gallery.hang(_frame(picture, 1)) + paint(None, _frame(picture, 1), _look("kitty in tmux"))).decode())
    assert [sent[:3] for sent in model.passed_on] == ["\x1b_G"] * 2
    assert model.pictures == {}
    assert model.grid[1][2][1] == "38;2;1;2;3"
    assert gallery.hang(_frame(picture, 0)) == b""
    model.feed(gallery.empty().decode())
    assert "a=d,d=I,i=66051" in model.passed_on[-1]


def test_a_terminal_keeps_a_bounded_number_of_pictures() -> None:
    model, gallery = TerminalModel(40, 12), Gallery("kitty")
    for number in range(1, KEPT + 4):
        model.feed(gallery.hang(_frame(ShownPicture(number, "image/png", "AAAA", 4, 2), 0)).decode())
    assert list(model.pictures) == [str(n) for n in range(4, KEPT + 4)]


def test_inline_images_are_drawn_again_only_where_their_cells_were_written() -> None:
    picture, look = ShownPicture(7, "image/png", "AAAA", 4, 3), _look("iterm")
    model = TerminalModel(40, 12)
    first = _frame(picture, 2)
    model.feed(paint(None, first, look).decode())
    assert [(row, column) for row, column, _ in model.drawn] == [(2, 2)]
    model.feed(paint(first, ScreenFrame(40, first.rows, (0, 0)), look).decode())
    assert len(model.drawn) == 1
    cut = _frame(picture, -1)
    model.feed(paint(first, cut, look).decode())
    assert len(model.drawn) == 1, "a part of it cannot be drawn"
    gone = ScreenFrame(40, ())
    written = paint(cut, gone, look).decode()
    assert written.count("H") >= 2, "its cells are written anew, and so it goes"


def test_the_size_of_a_picture_is_read_and_its_proportions_are_kept() -> None:
    assert pixels("image/png", SENT) == (200, 160)
    gif = b64encode(b"GIF89a" + struct.pack("<HH", 30, 40) + bytes(20)).decode()
    assert pixels("image/gif", gif) == (30, 40)
    jpeg = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + bytes(14) + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, 480, 640)
    assert pixels("image/jpeg", b64encode(jpeg + bytes(20)).decode()) == (640, 480)
    for broken in ("", "AAAA", "not base64 at all é", SENT[:20]):
        assert pixels("image/png", broken) is None
    wide = fitted(PictureSource("", "image/png", b64encode(png(4000, 400)).decode()), 60)
    assert wide
    assert (wide.columns, wide.rows) == (60, 3)
    assert fitted(PictureSource("", "image/webp", SENT), 60) is None
