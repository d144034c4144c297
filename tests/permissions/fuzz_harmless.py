"""What the judge calls harmless, run by a real bash among canaries: `python -m tests.permissions.fuzz_harmless`.

Lines are made up of commands that only look, of words that a shell evaluates more than once, of place-holders, and of
names that hostile projects give to files and programs; or they are lines of the tables with such words thrown in. Each
line that is judged harmless is run in a small project full of traps. It must not run anything of that project, change
any file, read a file outside of it, or print a variable.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from covey.permissions.judge import Rules, Verdict, decide
from tests.permissions.trapped_project import TRAPS, Arena

LOOP_NAMES = ("x", "v", "i", "f")
NAMES = (*LOOP_NAMES, "PATH", "PS4", "HOME", "CDPATH", "IFS", "SECRET", "TOKEN", "BASH_ENV", "LANG", "_", "F")
PLAIN = (
    *(
        "a.py",
        "b.txt",
        "src",
        "src/c.py",
        "dir/f",
        "one",
        "in.txt",
        "list",
        "data.json",
        ".",
        "*",
        "*.py",
        "src/*",
        "dir",
        "link",
        "linkdir",
        "linkdir/f",
        "linkdir/*",
        "src/sub/top",
        "src/inner",
        "notes",
        "*ink*",
        "../project/*",
    ),
    *("1", "0", "-1", "x", "v", "a", "-n", "-l", "-r", "{}", "{}/c.py", "-", "--", "e*", "[@]*", "@*", "-*", "*]"),
)
HOSTILE = (
    *TRAPS,
    *NAMES,
    *("./ls", "./cd", "evil", "./evil", "evil/cd", "0", "@list", "@../outside/secret.txt", "../outside/secret.txt"),
    *(
        "{}/..",
        "{}/../outside/secret.txt",
        "s/{}/a/p",
        "BEGIN{}",
        "{}{}",
        "-exec",
        "-delete",
        "--output=pwned",
        "~",
        "..",
    ),
    *("a[$(touch pwned)]", "$(touch pwned)", "`touch pwned`", "x=$(touch pwned)", "PATH=0", "PATH=./evil", "SECRET"),
    *(
        "--since",
        "--exclude",
        "--format",
        "--list",
        "--regexp",
        "--include",
        "-U",
        "-L",
        "-e",
        "-x",
        "-d",
        "-s",
        "--",
        "-o",
    ),
    *("--pre=./ls", "--file=../outside/secret.txt", "--contents=../outside/secret.txt", "[;]", "[+]", "two/[12]", "%n"),
    *('BEGIN{x=1system("touch pwned")}', 'BEGIN{print 1ENVIRON["SECRET"]}', "-Io", "../outside/*", ":/", "HEAD:a.py"),
    *("\\$SECRET", "$SECRET", "\\`touch pwned\\`", "\\u@\\h$(touch pwned)", "%s", "%(%F)T", "\\", "'", '"', "a b"),
)
EVALUATED = (
    *("$v", '"$v"', "${v}", "${v@P}", "${!v}", "${v@A}", "$((v))", "$((1+v))", "$((PATH=0))", "$((a[v]))", "$[v]"),
    *("${HOME:v}", "${BASH_VERSINFO[v]}", "${v:-x}", "${v:=x}", "${v/x/y}", "${#v}", "${v^^}", "${!S*}", "$SECRET"),
    *("$?", "$#", "$$", "$((1+2))", "$-", "$_", "$0", "$@", "{a,b}", "{1..3}", "~+", "~-", "$'\\x61'", '$"a"'),
)
TESTS = ("-eq", "-ne", "-lt", "-gt", "==", "!=", "=", "-nt", "=~", "<", "-v", "-f", "-e", "-n", "-z", "-R", "-o", "-a")


def word(draw: random.Random, depth: int) -> str:
    """One word, as it is written."""
    kind = draw.random()
    if kind < 0.66:
        return quoted(draw, draw.choice(PLAIN), 0.3)
    if kind < 0.9:
        return quoted(draw, draw.choice(HOSTILE), 0.97)
    if kind < 0.95 or depth <= 0:
        return draw.choice(EVALUATED)
    inner = line(draw, depth - 1)
    return draw.choice((f"$({inner})", f'"$({inner})"', f"<({inner})", f"${{v:-$({inner})}}"))


def quoted(draw: random.Random, text: str, often: float) -> str:
    if draw.random() > often:
        return text
    if draw.random() < 0.7 or "'" in text:
        return "'" + text.replace("'", "'\\''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'


def words(draw: random.Random, depth: int, least: int = 0, most: int = 3) -> str:
    return " ".join(word(draw, depth) for _ in range(draw.randint(least, most)))


LOOKING = (
    """
ls {}¦cat {}¦head -n 1 {}¦tail -n +1 {}¦wc -l {}¦stat -c %n {}¦du -s {}¦file {}¦nl {}¦tree {}¦diff {}¦comm {}¦join {}
echo {}¦echo -e {}¦printf '%s\\n' {}¦printf {}¦grep -r {}¦grep -e x {}¦sort {}¦uniq {}¦paste {}¦column {}¦base64 {}
sed -n {}¦sed -n 1p {}¦sed s/a/b/ {}¦awk {}¦awk '{{print $1}}' {}¦jq {}¦jq . {}¦strings {}¦od -c {}¦rev {}
git status {}¦git log --oneline {}¦git diff {}¦git show {}¦git grep x {}¦git ls-files {}¦cut -d ' ' -f 1 {}
find {}¦find . {}¦find . -name {}¦find . -maxdepth 0 -exec cat {} \\;¦find . -type f -exec {} \\;
find . -name {} -exec cat {{}} +¦find {} -exec cat {{}} +¦grep -R {}¦ls -RL {}¦diff -r {}¦du -aL {}¦tree -l {}
find src -exec grep -l {} {{}} \\;¦find . -exec sed -n {} a.py \\;¦find . -exec echo {} +
test {}¦[ {} ]¦cd {}¦set -x¦set -e {}¦true¦:¦true {}¦type {}¦which {}¦command -v {}¦exit {}¦break {}¦pwd {}¦id {}
basename {}¦dirname {}¦realpath {}¦readlink {}¦expr {}¦seq {}¦date -d {}¦date {}¦tr a {}
timeout 1 {}¦nice {}¦time {}¦command {}¦env {}¦sleep 0 {}
""".strip()
    .replace("\n", "¦")
    .split("¦")
)
"""Commands that only look, or may seem so, with a place for further words."""


def simple(draw: random.Random, depth: int) -> str:
    template = draw.choice(LOOKING)
    text = template.format(words(draw, depth)) if "{}" in template else template
    if draw.random() < 0.08:
        text = f"{draw.choice(NAMES)}={word(draw, depth)} {text}"
    if draw.random() < 0.08:
        text = f"{draw.choice(('timeout 1', 'nice', 'time', 'command', '!', 'builtin', 'nice -n 5'))} {text}"
    if draw.random() < 0.15:
        fed = draw.choice(("<", "<<<"))
        text = f"{text} {draw.choice(('2>&1', '2>/dev/null', '>/dev/null', f'{fed} {word(draw, depth)}'))}"
    return text


def condition(draw: random.Random, depth: int) -> str:
    operator = draw.choice(TESTS)
    left, right = word(draw, 0), word(draw, depth)
    return f"[[ {left} {operator} {right} ]]" if draw.random() < 0.7 else f"[[ {operator} {right} && {left} ]]"


def twice(draw: random.Random) -> str:
    """A value that is code, and a place in which a shell may evaluate it."""
    evaluated = draw.choice(EVALUATED)
    place = draw.choice(
        (
            f"for x in {evaluated}; do :; done",
            f"case {evaluated} in x) :;; esac",
            f"case x in {evaluated}) :;; esac",
            f"[[ v {draw.choice(TESTS)} {draw.choice(('1', 'v', 'x'))} ]]",
            f"[[ 1 {draw.choice(TESTS)} v ]]",
            f"[ v {draw.choice(TESTS)} {evaluated} ]",
            f"printf %d v {evaluated}",
            "set -x; ls",
            f"exit {evaluated}",
            f"cat <<< {evaluated}",
            simple(draw, 0),
        )
    )
    name = "v" if draw.random() < 0.7 else draw.choice(NAMES)
    return f"for {name} in {quoted(draw, draw.choice(HOSTILE), 1)}; do {place}; done"


def document(draw: random.Random, inner: str) -> str:
    """A here-document whose end is not certain, with a command in it or after it."""
    mark = draw.choice(("E", "'E'", "EF", "\\E", "''", "'a\"b'", '"a\'b"', "-E"))
    ends = ("E", "EF", "E)", "\\\nE", "E\\\n", "E\\\nF", 'a"b', "ab", "a'b", "", "\tE", ")", "E;", " E")
    rows = [draw.choice((*ends, inner, "touch pwned", "x")) for _ in range(draw.randint(1, 5))]
    text = f"cat <<{mark}\n" + "\n".join((*rows, draw.choice(ends), draw.choice(ends)))
    return draw.choice((text, f"echo $({text}\n)", f"({text}\n)", f'echo "$({text}\n)"', f"{text}\n{inner}"))


def line(draw: random.Random, depth: int) -> str:
    """Commands, and what stands around them."""
    if depth <= 0 or draw.random() < 0.3:
        return condition(draw, 0) if draw.random() < 0.12 else simple(draw, depth)
    inner, other = line(draw, depth - 1), line(draw, depth - 1)
    name = draw.choice(LOOP_NAMES if draw.random() < 0.7 else NAMES)
    return draw.choice(
        (
            f"for {name} in {words(draw, depth, 1)}; do {inner}; done",
            f"for {name} in {words(draw, depth, 1)}; do {inner}; done; {other}",
            f"{twice(draw)}; {inner}",
            f"select {name} in {words(draw, depth, 1)}; do {inner}; break; done < one",
            f"case {word(draw, depth)} in {word(draw, 0)}) {inner};; *) {other};; esac",
            f"case {word(draw, depth)} in *) {inner}; esac",
            f"if {inner}; then {other}; fi",
            f"while {inner}; do {other}; break; done",
            f"{condition(draw, depth)} && {inner}",
            f"{inner} | {other}",
            f"{inner}; {other}",
            f"{inner} && {other}",
            f"({inner})",
            f"{{ {inner}; }}",
            f"{inner}\n{other}",
            f"cat <<E\n{word(draw, depth)}\nE",
            document(draw, inner),
            f"{name}={word(draw, depth)}; {inner}",
        )
    )


def mutated(draw: random.Random, known: list[str]) -> str:
    """A line of the tables with hostile words in the place of some of its own."""
    pieces = draw.choice(known).split(" ")
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(pieces))
        pieces[at : at + draw.randint(0, 1)] = [word(draw, 1)]
    return " ".join(pieces)


def made_up(draw: random.Random, known: list[str]) -> str:
    kind = draw.random()
    if kind < 0.35:
        return mutated(draw, known)
    if kind < 0.55:
        return twice(draw) if kind < 0.47 else document(draw, "ls")
    return line(draw, draw.randint(0, 3))


def known_lines() -> list[str]:
    from tests.permissions.test_everyday_lines import LINES
    from tests.permissions.test_permissions_table import CASES
    from tests.permissions.test_shell_details import DETAILS

    lines = [(text, verdict) for text, verdict, _ in (*CASES, *DETAILS)] + list(LINES)
    return [text for text, verdict in lines if verdict == Verdict.ALLOW and "sleep" not in text]


def fault(arena: Arena, text: str, tally: Counter[str]) -> str:
    """What a line did although it was judged harmless; empty if it did nothing, or was not run."""
    tally["lines"] += 1
    if decide(arena.intent(text), Rules(root=str(arena.root)), frozenset(), skip=False) is not Verdict.ALLOW:
        return ""
    tally["judged harmless and run"] += 1
    for construct in ("for ", "case ", "[[ ", "-exec", "$(", "<<", "|", "git ", "awk", "sed", "cd ", "strings", "jq"):
        tally[f"with {construct}"] += construct in text
    return arena.harm(text)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, default=None)
    chosen = arguments.parse_args()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(10**9)
    draw, tally, faults, known = random.Random(seed), Counter[str](), 0, known_lines()
    end = time.monotonic() + chosen.minutes * 60
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        arena = Arena(Path(folder).resolve())
        while time.monotonic() < end and faults < 20:
            text = made_up(draw, known)
            if found := fault(arena, text, tally):
                faults += 1
                print(f"{found}\n    {text!r}", flush=True)
    for what, count in tally.items():
        print(f"{count:9,} {what}")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
