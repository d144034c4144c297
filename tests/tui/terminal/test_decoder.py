"""Bytes of a terminal → inputs. The tables are what terminals really send; the rest is any bytes at all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.tui.inputs import FocusChange, Key, Mouse, Paste
from covey.tui.terminal.decoder import BURST_S, LONGEST_SEQUENCE, Decoded, Decoder
from covey.tui.terminal.facts import Background, DeviceAttributes, SynchronizedOutput, TerminalName

FAR_APART_S = 10.0


def decoded(*chunks: bytes, apart_s: float = FAR_APART_S) -> list[Decoded]:
    """What comes of these, until nothing is waited for any more."""
    decoder = Decoder()
    found = [each for number, chunk in enumerate(chunks) for each in decoder.feed(chunk, number * apart_s)]
    if decoder.patience_s is not None:
        found += decoder.expire()
    assert decoder.patience_s is None
    return found


def names(*chunks: bytes) -> list[str]:
    return [each.name for each in decoded(*chunks) if isinstance(each, Key)]


def typed(found: Iterable[Decoded]) -> str:
    return "".join(each.text for each in found if isinstance(each, Key | Paste))


KEYS = {
    b"a": "a",
    b"A": "A",
    b" ": "space",
    b"?": "?",
    "é".encode(): "é",
    b"\t": "tab",
    b"\x1b[Z": "shift+tab",
    b"\r": "enter",
    b"\x7f": "backspace",
    b"\x1b": "escape",
    b"\x1b\x7f": "alt+backspace",
    b"\x00": "ctrl+space",
    b"\x01": "ctrl+a",
    b"\x03": "ctrl+c",
    b"\x1a": "ctrl+z",
    b"\x1c": "ctrl+\\",
    b"\x1f": "ctrl+_",
    b"\x1bf": "alt+f",
    b"\x1bA": "alt+shift+a",
    b"\x1b1": "alt+1",
    b"\x1b[": "alt+[",
    b"\x1bO": "alt+shift+o",
    b"\x1b\x06": "ctrl+alt+f",
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[1;2A": "shift+up",
    b"\x1b[1;3A": "alt+up",
    b"\x1b\x1b[A": "alt+up",
    b"\x1b[1;6D": "ctrl+shift+left",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b[8~": "end",
    b"\x1b[1;5F": "ctrl+end",
    b"\x1b[3~": "delete",
    b"\x1b[3;5~": "ctrl+delete",
    b"\x1b[5~": "pageup",
    b"\x1bOP": "f1",
    b"\x1b[11~": "f1",
    b"\x1b[[A": "f1",
    b"\x1b[15~": "f5",
    b"\x1b[24;2~": "shift+f12",
    b"\x1b[97u": "a",
    b"\x1b[27u": "escape",
    b"\x1b[27;3u": "alt+escape",
    b"\x1b[9;2u": "shift+tab",
    b"\x1b[97;5u": "ctrl+a",
    b"\x1b[97;6u": "ctrl+shift+a",
    b"\x1b[97;5:2u": "ctrl+a",
    b"\x1b[97:65;2u": "A",
    b"\x1b[47:63;2u": "?",
    b"\x1b[45:95;6u": "ctrl+_",
    b"\x1b[127;3u": "alt+backspace",
    b"\x1b[32;5u": "ctrl+space",
    b"\x1b[97;65u": "a",
    b"\x1b[57404u": "5",
    b"\x1b[57419;5u": "ctrl+up",
    b"\x1b[1;5:1D": "ctrl+left",
    b"\x1b[27;5;99~": "ctrl+c",
    b"\x1b[27;6;99~": "ctrl+shift+c",
}


@pytest.mark.parametrize(("sent", "name"), KEYS.items())
def test_each_key_has_one_name_whatever_the_terminal_sends(sent: bytes, name: str) -> None:
    assert names(sent) == [name]
    assert names(*(sent[n : n + 1] for n in range(len(sent)))) == [name], "byte by byte"


@pytest.mark.parametrize(
    "sent",
    [b"\x1b[97;5:3u", b"\x1b[1;1:3A", b"\x1b[57358u", b"\x1b[57441;2u", b"\x1b[97;9u", b"\x1b[3;1:3~"],
    ids=["release", "release of an arrow", "caps lock", "shift alone", "super+a", "release of delete"],
)
def test_what_is_no_press_of_a_key_for_us_is_nothing(sent: bytes) -> None:
    assert decoded(sent) == []


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (b"\r", "enter"),
        (b"\x1b[13u", "enter"),
        (b"\x1b[57414u", "enter"),
        (b"\x1bOM", "enter"),
        (b"\n", "ctrl+j"),
        (b"\x1b[106;5u", "ctrl+j"),
        (b"\x1b[27;5;106~", "ctrl+j"),
        (b"\x1b\r", "alt+enter"),
        (b"\x1b[13;3u", "alt+enter"),
        (b"\x1b[27;3;13~", "alt+enter"),
        (b"\x1b[13;2u", "shift+enter"),
        (b"\x1b[27;2;13~", "shift+enter"),
        (b"\x1b[13;5u", "ctrl+enter"),
        (b"\x1b[27;5;13~", "ctrl+enter"),
    ],
)
def test_row_20_only_enter_alone_is_enter(sent: bytes, name: str) -> None:
    """Also in tmux, which sends ESC CR, modifyOtherKeys (`extended-keys-format xterm`) or CSI u."""
    assert names(sent) == [name]


def test_row_21_shortcuts_work_on_a_layout_without_latin_letters() -> None:
    assert names(b"\x1b[1089::99;5u") == ["ctrl+c"]
    assert names(b"\x1b[1089:1057:99;6u") == ["ctrl+shift+c"]
    assert names(b"\x1b[968::99;3u") == ["alt+c"]
    assert names(b"\x1b[101;5u") == ["ctrl+e"], "on a Latin layout its own letters count, wherever they are"
    assert names(b"\x1b[106:74:99;5u") == ["ctrl+j"], "Dvorak: not where a c would be"
    assert decoded("с".encode()) == [Key("с", "с")], "typed without ctrl it is what it is"
    assert decoded(b"\x1b[1089::99;1;1089u") == [Key("с", "с")]
    assert typed(decoded("e\u0301".encode())) == "e\u0301", "a dead key may come as two characters"


def test_row_22_text_of_an_input_method_arrives_whole() -> None:
    assert decoded(b"\x1b[0;1;20013:25991u") == [Key("中文", "中文")]
    assert typed(decoded("中文入力".encode())) == "中文入力"
    assert typed(decoded(*(bytes([byte]) for byte in "中文".encode()))) == "中文"
    assert typed(decoded(b"\x1b[0;;128104:8205:128105u")) == "\U0001f468\u200d\U0001f469"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b]4;1;rgb:cdcd/0000/0000\x1b\\",
        b"\x1b[?62;22;52c",
        b"\x1b[>41;354;0c",
        b"\x1bP>|XTerm(380)\x1b\\",
        b"\x1bP!|00000000\x1b\\",
        b"\x1bP1+r524742=38\x1b\\",
        b"\x1b_Gi=31;OK\x1b\\",
        b"\x1b^private\x1b\\",
        b"\x1bXstring\x1b\\",
        b"\x1b[?2026;2$y",
        b"\x1b[?997;1n",
        b"\x1b[?1u",
        b"\x1b[24;80R",
        b"\x1b[8;24;80t",
        b"\x1b[0n",
        b"\x1b[<NaN;NaN;NaNM",
        b"\x1b[<0;-1;99999999999m",
        b"\x1b[<;;M",
        b"\x1b[<35;1;1M",
        b"\x1b[M !!",
        b"\x1b]52;c;" + b"QUJD" * LONGEST_SEQUENCE + b"\x07",
        b"\x1bP" + b"long" * LONGEST_SEQUENCE + b"\x1b\\",
        b"\xff\xfe\xc3",
        b"\xc2\x9b\xc2\x85",
    ],
)
def test_row_23_no_answer_of_the_terminal_is_typed(sent: bytes) -> None:
    """Late or unasked, whole or in pieces."""
    pieces = [sent[n : n + 97] for n in range(0, len(sent), 97)]
    for chunks in ([sent], pieces, [sent[:3], sent[3:]], [sent[:-1], sent[-1:]]):
        assert typed(decoded(*chunks)) == ""
        assert not any(isinstance(each, Key | Paste | Mouse) for each in decoded(*chunks))
        assert typed(decoded(*chunks, b"after")) == "after"


def test_an_answer_that_is_broken_off_swallows_neither_the_next_key_for_ever_nor_control_keys() -> None:
    assert names(b"\x1b]11;rgb:00", b"\x03") == ["ctrl+c"]
    assert names(b"\x1b]11;rgb:00", b"\x1b[A") == ["up"]
    decoder = Decoder()
    decoder.feed(b"\x1bPnever ends", 0.0)
    assert decoder.expire() == []
    assert decoder.feed(b"x", 1.0) == [Key("x", "x")]


def test_escape_right_before_an_answer_is_still_the_key() -> None:
    assert names(b"\x1b\x1b[?62c") == ["escape"]
    assert names(b"\x1b\x1b]11;rgb:0/0/0\x07") == ["escape"]
    assert names(b"\x1b", b"\x1b[?62c") == ["escape"]


def test_what_the_terminal_says_of_itself_becomes_facts() -> None:
    assert decoded(b"\x1b]11;rgb:ffff/fefe/f0f0\x1b\\") == [Background(is_light=True)]
    assert decoded(b"\x1b]11;rgba:1e/1e/2e/ff\x07") == [Background(is_light=False)]
    assert decoded(b"\x1b[?997;2n") == [Background(is_light=True)]
    assert decoded(b"\x1b[?2026;2$y") == [SynchronizedOutput(True)]
    assert decoded(b"\x1b[?2026;0$y") == [SynchronizedOutput(False)]
    assert decoded(b"\x1b[?62;52c") == [DeviceAttributes((62, 52))]
    assert decoded(b"\x1bP>|foot(1.16)\x1b\\") == [TerminalName("foot(1.16)")]


def test_the_mouse_and_the_focus() -> None:
    assert decoded(b"\x1b[<0;3;4M\x1b[<0;5;4m") == [Mouse("press", 3, 2), Mouse("release", 3, 4)]
    assert decoded(b"\x1b[<64;1;1M\x1b[<65;1;1M") == [
        Mouse("wheel_up", 0, 0, "none"),
        Mouse("wheel_down", 0, 0, "none"),
    ]
    assert decoded(b"\x1b[<6;1;1M") == [Mouse("press", 0, 0, "right", with_shift=True)]
    passed = b"".join(b"\x1b[<32;%d;2M" % column for column in range(1, 500))
    assert decoded(passed) == [Mouse("drag", 1, 498)], "only where it is now"
    assert decoded(b"\x1b[I\x1b[O") == [FocusChange(True), FocusChange(False)]


def test_row_17_a_megabyte_is_pasted_as_one_thing_and_whole() -> None:
    text = "".join(f"line {number} 中文\n" for number in range(60_000))
    sent = b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~"
    decoder = Decoder()
    found: list[Decoded] = []
    for at in range(0, len(sent), 1000):
        found += decoder.feed(sent[at : at + 1000], 0.0)
    assert len(sent) > 1_000_000
    assert found == [Paste(text)]


def test_row_17_each_byte_of_a_paste_is_looked_at_once() -> None:
    decoder = Decoder()
    decoder.feed(b"\x1b[200~", 0.0)
    for _ in range(1000):
        decoder.feed(b"x" * 1000, 0.0)
        assert not decoder._pending, "nothing is looked at again"
    assert decoder.feed(b"\x1b[201~", 0.0) == [Paste("x" * 1_000_000)]


@pytest.mark.parametrize("cut", range(1, 6))
def test_the_end_of_a_paste_may_come_in_two_pieces(cut: int) -> None:
    end = b"\x1b[201~"
    assert decoded(b"\x1b[200~a\x1b[20" + b"1 b" + end[:cut], end[cut:] + b"k") == [Paste("a\x1b[201 b"), Key("k", "k")]


def test_row_18_no_key_of_a_paste_is_a_key() -> None:
    marked = b"\x1b[200~y\r?\x03\x1b[A\rn\x1b[201~"
    assert decoded(marked) == [Paste("y\n?\x03\x1b[A\nn")]


def test_row_18_several_lines_at_once_are_a_paste_also_if_nobody_says_so() -> None:
    assert decoded(b"y\r?\rn\r") == [Paste("y\n?\nn\n")]
    assert decoded(b"first\nsecond") == [Paste("first\nsecond")]
    assert decoded(b"one\rtwo", b"three\r", b"\r", apart_s=BURST_S / 2) == [
        Paste("one\ntwo"),
        Paste("three\n"),
        Paste("\n"),
    ]
    assert names(b"a\rb", b"\r") == ["enter"], "later somebody has pressed a key"


def test_row_18_what_a_person_types_at_once_stays_keys() -> None:
    assert names(b"ls\r") == ["l", "s", "enter"]
    assert decoded(b"x" * 500 + b"\r") == [Paste("x" * 500), Key("enter")], "a long prompt that is sent"


def test_a_paste_whose_end_was_lost_ends_with_ctrl_c() -> None:
    assert decoded(b"\x1b[200~lost", b"\x03") == [Paste("lost"), Key("ctrl+c")]
    assert decoded(b"\x1b[200~lost", b"\x1b[99;5u") == [Paste("lost"), Key("ctrl+c")]


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from([*KEYS, b"\x1b[200~", b"\x1b[201~", b"\x1b]", b"\x1bP", b"\x1b[<0;1", b"\x1b[1;", b"\x1b\\"]),
    ),
    max_size=8,
)


@settings(max_examples=250, deadline=None)
@given(PIECES)
def test_any_bytes_in_any_pieces_never_raise_and_never_type_a_control_character(pieces: list[bytes]) -> None:
    decoder = Decoder()
    found: list[Decoded] = []
    for number, piece in enumerate(pieces):
        found += decoder.feed(piece, number * FAR_APART_S)
    if decoder.patience_s is not None:
        found += decoder.expire()
        assert decoder.patience_s is None
    for each in found:
        if isinstance(each, Key):
            assert each.name and (not each.text or each.text.isprintable())


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=40), st.data())
def test_text_arrives_as_it_was_typed_wherever_it_is_cut(text: str, data: st.DataObject) -> None:
    sent = text.encode()
    cut = data.draw(st.integers(0, len(sent)))
    expected = "".join(char for char in text if char.isprintable())
    assert typed(decoded(sent[:cut], sent[cut:])) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.integers(1, 9))
def test_a_marked_paste_arrives_as_it_was_copied(text: str, size: int) -> None:
    sent = b"\x1b[200~" + text.encode() + b"\x1b[201~"
    found = decoded(*(sent[n : n + size] for n in range(0, len(sent), size)))
    expected = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b[201~" not in text and "\x03" not in text:  # which ends a paste if it comes alone
        assert "".join(each.text for each in found if isinstance(each, Paste)) == expected
