"""What a real bash runs against what the parser says would run: `python -m tests.permissions.fuzz_shell --minutes 60`.

Lines are made up, half of them by a grammar and half by throwing pieces of shell together. Each is run by bash in an
empty directory, where the only programs are ours: they write down how they were called, and do nothing else. Every
such call must be among the parser's commands, and no line that calls `danger` may be allowed by rules for the others.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from covey.permissions.judge import Intent, Rules, Verdict, decide
from covey.permissions.shell import Line, SimpleCommand, parse
from covey.permissions.shell_words import Word, WordKind

PROGRAMS = ("danger", "a", "b")
REAL = ("env", "timeout", "nice", "nohup", "xargs", "find", "bash", "sh", "setsid", "stdbuf")
"""Wrappers are real: only so it is seen what they run. What they can run is only what is here."""
OTHERS = Rules(allow=("bash:a", "bash:a *", "bash:b", "bash:b *"))
DENIED = Rules(deny=("bash:danger*",))
LIMIT_S = 1.0
_END = "END OF CALL"


class Arena:
    """A directory with stub programs, and the calls they wrote down."""

    def __init__(self, folder: Path, shell: str = "bash") -> None:
        self.bin, self._folder, self._runs = folder / "bin", folder, 0
        self.bin.mkdir()
        for name in PROGRAMS:
            stub = self.bin / name
            stub.write_text(f"#!/bin/sh\nprintf '%s\\0' {name} \"$@\" '{_END}' >> \"$PWD.log\"\n")
            stub.chmod(0o755)
        for name in REAL:
            if found := shutil.which("bash" if name == "sh" else name):
                (self.bin / name).symlink_to(found)
        self._command = [shutil.which(shell) or shell, *(["--norc"] if shell == "bash" else []), "-c"]
        self.exact = shell == "bash"
        """Other shells read some quotes in another way: then only the names of programs are compared."""

    def calls(self, line: str) -> list[list[str]]:
        """Which programs ran, with their arguments."""
        self._runs += 1
        cwd = self._folder / f"{self._runs}"  # of its own: what an earlier line left running writes elsewhere
        log = self._folder / f"{self._runs}.log"
        cwd.mkdir()
        process = subprocess.Popen(
            [*self._command, line],
            cwd=cwd,
            env={"PATH": str(self.bin), "FUNCNEST": "4"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(LIMIT_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(cwd, ignore_errors=True)
        calls: list[list[str]] = [[]]
        written = log.read_bytes().decode("utf-8", "surrogateescape") if log.exists() else ""
        log.unlink(missing_ok=True)
        for text in written.split("\0"):
            if text == _END:
                calls.append([])
            else:
                calls[-1].append(text)
        return calls[:-1]


def is_listed(line: Line, call: list[str], *, exact: bool) -> bool:
    """Whether the parser listed this call."""
    return any(_fits(command, call, exact=exact) for command in line.commands)


def _fits(command: SimpleCommand, call: list[str], *, exact: bool) -> bool:
    words = command.words
    if not words:
        return False
    if words[0].kind is not WordKind.LITERAL:
        return True
    if words[0].text.rpartition("/")[2] != call[0]:
        return False
    if not exact or any(word.kind not in (WordKind.LITERAL, WordKind.NUMBER) for word in words):
        return True
    return len(words) == len(call) and all(_same(word, text) for word, text in zip(words[1:], call[1:], strict=True))


def _same(word: Word, text: str) -> bool:
    return word.text == text or word.kind is WordKind.NUMBER


def verdict(line: str, rules: Rules) -> Verdict:
    return decide(Intent("bash", "execute", line), rules, frozenset(), skip=rules is DENIED)


def fault(arena: Arena, line: str, tally: Counter[str]) -> str:
    """What is wrong with how this line is judged; empty if nothing is."""
    parsed = parse(line)
    calls = arena.calls(line)
    tally["lines"] += 1
    tally["calls"] += len(calls)
    ran_danger = any(call[0] == "danger" for call in calls)
    if ran_danger:
        tally["lines that ran danger"] += 1
        if verdict(line, OTHERS) is Verdict.ALLOW:
            return "danger is allowed"
        tally["of these denied"] += verdict(line, DENIED) is Verdict.DENY
    if not isinstance(parsed, Line):
        tally["unparsed"] += 1
        tally["unparsed that ran something"] += bool(calls)
        return ""
    tally["parsed that ran something"] += bool(calls)
    for call in calls:
        if not is_listed(parsed, call, exact=arena.exact):
            return f"not listed: {call}"
    if ran_danger and all(command.words[0].known for command in parsed.commands if command.words):
        tally["must be denied"] += 1
        if verdict(line, DENIED) is not Verdict.DENY:
            return "danger is not denied"
    return ""


# ── lines ──

_SOUP = (
    (
        r""" ¦ ¦ ¦danger¦danger x¦a¦b¦a y¦⏎¦;¦; ¦&&¦ || ¦|¦ |& ¦&¦(¦)¦{ ¦ }¦; }¦'¦'¦"¦"¦\¦\⏎¦$¦$(¦`¦`¦${x:-¦"""
        r"${x:=¦}¦$'¦\n¦\x61¦\'¦<<E⏎¦<<'E'⏎¦⏎E⏎¦<<-E⏎⇥¦<<<¦#¦ #¦if ¦; then ¦; fi¦; do ¦; done¦for x in ¦"
        r"case x in ¦x) ¦;;¦ esac¦! ¦[[ ¦ ]]¦[ ¦((¦))¦$((¦$(( $(¦ )))¦=¦x=¦x=1 ¦x=(¦> o¦<i¦2>&1 ¦&> o ¦>| o ¦~¦*¦?¦"
        r"{a,b}¦{¦,¦..¦eval ¦env ¦env x=1 ¦timeout 1 ¦-c ¦sh -c ¦bash -c '¦xargs ¦time ¦command ¦exec ¦nohup ¦coproc ¦"
        r"""f() ¦function f ¦f¦$x¦$?¦<(¦>(¦then¦do¦in ¦-n¦--¦⇥¦\ ¦\;¦-exec ¦find . ¦trap ¦'a b'¦"$(¦"`¦@¦a[¦]¦]=¦"""
        r"E)⏎¦\⏎E⏎¦E\⏎⏎¦<<'a\"b'⏎¦a\"b⏎¦ab⏎¦$(a <<E⏎¦<<\E⏎¦"
        r"+=¦$[¦${¦${#x}¦${x@P}¦${x/¦select ¦until ¦elif ¦else ¦alias ¦!(¦@("
    )
    .replace("⏎", "\n")
    .replace("⇥", "\t")
    .split("¦")
)


def soup(draw: random.Random) -> str:
    return "".join(draw.choice(_SOUP) for _ in range(draw.randint(2, 14)))


def mutated(draw: random.Random) -> str:
    """A sensible line with a few pieces of soup thrown in, or taken out."""
    text = structured(draw, 3)
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(text))
        text = text[:at] + (draw.choice(_SOUP) if draw.random() < 0.7 else "") + text[at + draw.randint(0, 1) :]
    return text


def structured(draw: random.Random, depth: int) -> str:
    """Commands that bash accepts, nested as people and attackers nest them."""
    if depth <= 0 or draw.random() < 0.25:
        return _simple(draw, depth)
    inner = structured(draw, depth - 1)
    other = structured(draw, depth - 1)
    quoted = _single_quoted(inner)
    return draw.choice(
        (
            f"{inner}; {other}",
            f"{inner} && {other}",
            f"{inner}\n{other}",
            f"{inner} | {other}",
            f"({inner})",
            f"{{ {inner}\n}}",
            f"if {inner}\nthen {other}\nfi",
            f"for x in 1 2; do {inner}\ndone",
            f"case x in (y) {other}\n;; x) {inner}\nesac",
            f"f() {{ {inner}\n}}; f",
            f"eval {quoted}",
            f"sh -c {quoted}",
            f"env x=1 bash -c {quoted}",
            f"a <<E\n$({inner}\n)\nE\n{other}",
            f"bash <<'E'\n{inner}\nE\n{other}" if "E" not in inner else inner,
            f"! {inner}",
            f"a $({inner}\n) b",
            f'a "$({inner}\n)" c',
            f"a <({inner}\n)",
            f"trap {quoted} EXIT",
            f"a `{_backquoted(inner)}`",
            f'a "`{_backquoted(inner)}`"' if '"' not in inner else inner,
            f"a ${{x:-$({inner}\n)}}",
            f"a $((1 + $({inner}\n)))",
            f"(( 1 + $({inner}) ))",
            f"(({inner}); {other})",
            f"{inner} # danger\n{other}",
        )
    )


def _backquoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")


def _single_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_PREFIXES = ("env ", "env -i ", "env -u x y=1 ", "timeout 1 ", "timeout -s KILL 1 ", "nice ", "nice -n 5 ", "nohup ")
_MORE_PREFIXES = (
    "command ",
    "time ",
    "exec ",
    "builtin command ",
    "x=1 ",
    "setsid -w ",
    "stdbuf -o L ",
    "> o ",
    "2>&1 ",
)


def _simple(draw: random.Random, depth: int) -> str:
    name = draw.choice(PROGRAMS)
    words = [
        _obscured(draw, name),
        *(_obscured(draw, draw.choice(("x", "-n", "y z", "p/q"))) for _ in range(draw.randint(0, 2))),
    ]
    text = draw.choice((" ", "  ", "\t", " \\\n ")).join(words)
    for _ in range(draw.choice((0, 0, 1, 2))):
        prefix = draw.choice(_PREFIXES + _MORE_PREFIXES)
        text = prefix + text
    if draw.random() < 0.1:
        text = f"find . -maxdepth 0 -exec {text} \\;" if "\n" not in text else text
    if draw.random() < 0.1:
        text = f"a | xargs -n 1 {text}"
    return text + draw.choice(("", "", "", " > o", " 2>&1", " < /dev/null", " &"))


def _obscured(draw: random.Random, text: str) -> str:
    """The same word, written differently."""
    pieces = []
    for char in text:
        style = draw.random()
        plain = char not in " \t"
        if style < 0.6 and plain:
            pieces.append(char)
        elif style < 0.7:
            pieces.append(f"'{char}'")
        elif style < 0.8:
            pieces.append(f'"{char}"')
        elif style < 0.87:
            pieces.append(f"\\{char}")
        elif style < 0.92:
            pieces.append(f"$'\\x{ord(char):02x}'")
        elif style < 0.95:
            pieces.append(f"$'\\{ord(char):03o}'")
        elif plain:
            pieces.append(f"\\\n{char}''")
        else:
            pieces.append(f"'{char}'")
    return "".join(pieces)


def made_up(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.35:
        return structured(draw, draw.randint(1, 4))
    return mutated(draw) if kind < 0.75 else soup(draw)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, default=None)
    arguments.add_argument("--shell", default="bash", choices=("bash", "dash"))
    chosen = arguments.parse_args()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(10**9)
    draw, tally, faults = random.Random(seed), Counter[str](), 0
    end = time.monotonic() + chosen.minutes * 60
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder), chosen.shell)
        while time.monotonic() < end and faults < 20:
            line = made_up(draw)
            if found := fault(arena, line, tally):
                faults += 1
                print(f"{found}\n    {line!r}", flush=True)
    for what, count in tally.items():
        print(f"{count:9,} {what}")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
