"""Commands that only look, and with which arguments: what nobody need be asked about.

The list is short on purpose. A command is on it with the options that are known to neither write, run nor send
anything; an option that is not named here is asked about, however harmless it may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from covey.permissions.safe_git import git
from covey.permissions.safe_links import followed, found_and_read
from covey.permissions.safe_options import (
    ARGUMENT,
    NOT_LISTED,
    OPTION,
    VARIABLE,
    Spec,
    Words,
    by_spec,
    outside,
    unknown,
)
from covey.permissions.safe_paths import SECRET, Place
from covey.permissions.safe_scripts import awk, jq, sed
from covey.permissions.safe_searches import found_by_name, searched_by_name
from covey.permissions.shell_words import Word, WordKind
from covey.permissions.shell_wrappers import end_of_exec


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANY = Spec()
NO_PATHS = Spec(paths=False)
_SPECS: dict[str, Spec] = {
    **dict.fromkeys(("ls", "cat", "head", "tail", "stat", "df", "realpath", "dir", "vdir"), ANY),
    **dict.fromkeys(("readlink", "tac", "rev", "nl", "fold", "expand", "comm", "cmp", "od"), ANY),
    "base64": Spec(short="dD", valued="w", long="decode ignore-garbage", long_valued="wrap"),
    **dict.fromkeys(
        ("true", "false", ":", "pwd", "whoami", "uname", "arch", "nproc", "seq", "expr", "tr", "id"), NO_PATHS
    ),
    **dict.fromkeys(("basename", "dirname"), NO_PATHS),
    **dict.fromkeys(
        ("groups", "logname", "tty", "uptime", "which", "type", "cal", "break", "continue", "exit"), NO_PATHS
    ),
    **dict.fromkeys(("hostname", "clear"), Spec(short="", most=0)),
    "free": Spec(short="bkmghtw", most=0),
    "uniq": Spec(short="cdDiuz", valued="fsw", long="count repeated unique ignore-case", most=1),
    "cut": Spec(
        short="sz",
        valued="bcdf",
        long="only-delimited complement",
        long_valued="bytes characters delimiter fields output-delimiter",
    ),
    "paste": Spec(short="sz", valued="d", long="serial", long_valued="delimiters"),
    "column": Spec(short="tx", valued="sco", long="table", long_valued="separator output-separator"),
    "join": Spec(short="iz", valued="12eojtav", long="ignore-case header"),
    "sort": Spec(
        short="bdfghiMnRrVcCmsuz",
        valued="kt",
        long="numeric-sort reverse unique human-numeric-sort version-sort ignore-case stable check",
        long_valued="key field-separator",
    ),
    "diff": Spec(
        short="aBbcdEeiNnpqrstuwy",
        valued="CUWxI",
        long="unified context brief recursive side-by-side ignore-all-space ignore-space-change ignore-blank-lines "
        "ignore-case new-file text color no-color suppress-common-lines report-identical-files",
        long_valued="width exclude",
    ),
    "file": Spec(short="bEhikLNr0", long="brief mime mime-type mime-encoding dereference keep-going"),
    "tree": Spec(
        short="adfilxpsuhgDFNqQrtUvcnACSJX",
        valued="LIP",
        glued=False,
        long="dirsfirst gitignore noreport prune si du ignore-case matchdirs inodes metafirst",
        long_valued="filelimit sort",
    ),
    "grep": Spec(
        short="abcEFGHhIiLlnoPqRrsTUvwxyZz",
        valued="ABCDdem",
        long="context basic-regexp extended-regexp fixed-strings perl-regexp "
        "count color colour files-with-matches files-without-match ignore-case no-ignore-case invert-match "
        "line-number line-regexp no-filename no-messages null only-matching quiet silent recursive "
        "dereference-recursive with-filename word-regexp text null-data initial-tab byte-offset",
        long_valued="after-context before-context regexp max-count include exclude exclude-dir binary-files",
        skip=1,
        skips_unless="-e --regexp",
    ),
    "rg": Spec(
        short="abcFHhIilNnopPqsSUuvwx0.V",
        valued="ABCEegjMmrTtd",
        long="count count-matches fixed-strings files files-with-matches hidden files-without-match ignore-case "
        "line-number no-line-number multiline multiline-dotall no-filename no-heading heading no-ignore "
        "no-ignore-vcs only-matching pcre2 pretty json quiet smart-case stats text trim type-list vimgrep "
        "with-filename word-regexp column no-messages null case-sensitive invert-match line-regexp unrestricted "
        "no-config passthru crlf",
        long_valued="after-context before-context context glob iglob max-count max-depth color regexp replace sort "
        "sortr type type-not max-columns max-filesize",
        skip=1,
        skips_unless="-e --regexp --files --type-list",
    ),
}
_SPECS.update({"egrep": _SPECS["grep"], "fgrep": _SPECS["grep"]})


def is_transparent(words: Words) -> bool:
    """`timeout 5 cmd` and its like leave the command what it is, which is judged on its own."""
    texts = [word.text for word in words]
    if not all(word.known for word in words[:3]):
        return False
    match texts:
        case ["timeout", limit, _, *_]:
            return bool(re.fullmatch(r"[0-9]+(?:\.[0-9]+)?[smh]?", limit))
        case ["nice", "-n", level, _, *_]:
            return bool(re.fullmatch(r"[0-9]+", level))
        case ["nice" | "command" | "time", first, *_]:
            return not first.startswith("-")
    return False


def complaint(words: Words, place: Place) -> str:
    """Why somebody should be asked about this command, as one word; empty if it only looks."""
    if not words[0].known:
        return VARIABLE
    name = re.sub(r"^/(?:usr/)?bin/", "", words[0].text)
    if any(ord(char) < 0x20 and char not in "\t\n" for word in words for char in word.text):
        return ARGUMENT
    if keyword := _KEYWORDS.get(words[0].text):
        # In quotes, or after `timeout`, it is no keyword, but a program.
        return keyword(words[1:], place) if words[0].bare else NOT_LISTED
    if judge := _JUDGES.get(name):
        return judge(words[1:], place)
    if (spec := _SPECS.get(name)) is None:
        return NOT_LISTED
    arguments = words[1:]
    return by_spec(arguments, spec, place) or searched_by_name(name, arguments) or followed(name, arguments, place)


def _echo(words: Words, place: Place) -> str:
    """Prints its arguments; a variable may be a password, and a pattern reveals names of files elsewhere."""
    return outside(words, place) or unknown(words)


_COUNTS = re.compile(r"%[^A-Za-z%]*[hjlLtzZ]*n")


def _printf(words: Words, place: Place) -> str:
    if words and (not words[0].known or words[0].text.startswith("-")):
        return OPTION  # -v runs what stands in the name of a variable
    if words and _COUNTS.search(words[0].text.replace("%%", "")):
        return ARGUMENT  # %n sets a variable
    return _echo(words, place)


SETS = "sets"


def _env(words: Words, place: Place) -> str:
    return NOT_LISTED if words else SECRET


def _date(words: Words, place: Place) -> str:
    harmless = re.compile(r"\+.*|-[uR]+|-I\w*|--(?:utc|universal|rfc-email|iso-8601(?:=\w+)?|rfc-3339=\w+)|--date=.*")
    at = 0
    while at < len(words):
        if not words[at].known:
            return VARIABLE
        if words[at].text == "-d":
            at += 1
        elif not harmless.fullmatch(words[at].text):
            return OPTION
        at += 1
    return "" if all(word.known for word in words) else VARIABLE


def _sleep(words: Words, place: Place) -> str:
    short = len(words) == 1 and words[0].known and re.fullmatch(r"[0-9]{1,2}(?:\.[0-9]+)?s?", words[0].text)
    return "" if short else ARGUMENT


def _set(words: Words, place: Place) -> str:
    text = " ".join(word.text for word in words)
    return "" if words and re.fullmatch(r"-[eux]*(?:[eux]|o pipefail)(?: -o pipefail)?", text) else ARGUMENT


def _command(words: Words, place: Place) -> str:
    if len(words) == 2 and words[0].text in ("-v", "-V") and words[1].known:
        return ""
    return "" if is_transparent((Word("command"), *words)) else NOT_LISTED


def _wrapper(name: str) -> Callable[[Words, Place], str]:
    return lambda words, place: "" if is_transparent((Word(name), *words)) else OPTION


_TEST_OPERATORS = words_of("-e -f -d -r -w -x -s -L -h -n -z = == != -eq -ne -lt -le -gt -ge -nt -ot ! -a -o && || ( )")


def _test(words: Words, place: Place) -> str:
    """Some tests look up a variable whose name may hold a command: those are not among the operators."""
    for word in words:
        if not word.known and word.kind is not WordKind.NUMBER and not word.is_one_path:
            return VARIABLE
        if word.text.startswith("-") and word.text not in _TEST_OPERATORS and not re.fullmatch(r"-[0-9]+", word.text):
            return OPTION
        if word.known and re.search(r"[$`\[(]", word.text.removeprefix("(").removesuffix("]")):
            return ARGUMENT
        if found := place.problem(word):
            return found
    return ""


_NUMBER = re.compile(r"-?[0-9]+")
_CALCULATES = words_of("-eq -ne -lt -le -gt -ge")


def _condition(words: Words, place: Place) -> str:
    """`[[ ]]` compares numbers by calculating, and what looks like a name is calculated, too, with whatever is in it.

    So only plain words, and only digits where it calculates. (`[ ]` takes nothing but digits.)
    """
    if not all(word.known and re.fullmatch(r"[A-Za-z0-9_./!=&|()-]+|\]\]", word.text) for word in words):
        return ARGUMENT
    for at, word in enumerate(words):
        beside = (*words[max(at - 1, 0) : at], *words[at + 1 : at + 2])
        if word.text in _CALCULATES and not all(_NUMBER.fullmatch(other.text) for other in beside):
            return ARGUMENT
    return _test(words[:-1], place)


_LOOP_NAMES = re.compile(r"[a-z]+[0-9]*|[A-Z]|_")
"""Names that no program asks for, as far as one can know: those of the environment are longer."""
_KNOWN_TO_SHELLS = words_of("histchars")


def _for(words: Words, place: Place) -> str:
    """A loop gives each value to its variable, and `set -x` shows them."""
    name = words[0].text
    if not _LOOP_NAMES.fullmatch(name) or name in _KNOWN_TO_SHELLS:
        return SETS
    return _echo(words[2:], place)


def _case(words: Words, place: Place) -> str:
    """Which branch runs reveals what was compared."""
    return unknown(words)


def _unless(options: str, name: str = "") -> Callable[[Words, Place], str]:
    """Every option is harmless but these, which read names of files from elsewhere."""
    listed = re.compile(options)
    return lambda words, place: (
        OPTION
        if any(map(listed.match, (w.text for w in words)))
        else by_spec(words, ANY, place) or followed(name, words, place)
    )


def _strings(words: Words, place: Place) -> str:
    """To binutils `@file` is a file of further arguments, and what is in it comes back in an error."""
    if any(word.text[:1] == "@" or (word.kind is WordKind.GLOB and not word.head) for word in words):
        return ARGUMENT
    return by_spec(words, ANY, place)


_FIND_ALONE = words_of(
    "-print -print0 -prune -empty -not ! -o -or -a -and ( ) -ls -quit -depth -d -xdev -mount -readable -writable "
    "-executable -true -false -nouser -nogroup -daystart -noleaf"
)
_FIND_VALUED = words_of(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin -atime -amin "
    "-ctime -cmin -newer -newermt -anewer -cnewer -maxdepth -mindepth -perm -user -group -links -inum -printf "
    "-regextype -lname"
)


_FIND_NEWER = words_of("-newer -anewer -cnewer")


def _find(words: Words, place: Place) -> str:
    """Starting points, then an expression without any action but printing. `-exec` is judged by what it runs."""
    at = 0
    while at < len(words) and words[at].text[:1] not in ("-", "(", "!"):
        if found := place.problem(words[at]):
            return found
        if words[at].head[:1] in ("", "@"):  # a name that is an option, or to some program a file of arguments
            return ARGUMENT
        at += 1
    starts = words[:at]
    while at < len(words):
        word = words[at]
        if not word.known:
            return VARIABLE
        if word.text == "-exec":
            end = end_of_exec(words, at + 1)
            if not all(_stays_in_exec(inside) for inside in words[at + 1 : end]):
                return ARGUMENT
            at = end
        elif word.text in _FIND_VALUED:
            at += 1
            if at >= len(words) or not (words[at].known or _is_named_pattern(words[at])):
                return ARGUMENT
            if found := outside(words[at : at + 1], place):
                return found
            if word.text in _FIND_NEWER and (found := place.problem(words[at])):
                return found
        elif word.text not in _FIND_ALONE:
            return OPTION
        at += 1
    return found_by_name(words) or found_and_read(words, starts, place)


def _is_named_pattern(word: Word) -> bool:
    """It becomes names of files, none of which is an option."""
    return word.kind is WordKind.GLOB and word.head[:1] not in ("", "-")


def _stays_in_exec(word: Word) -> bool:
    """It cannot become the `;` or the `+` that ends the command, after which other actions may stand."""
    return word.known or (word.kind is WordKind.GLOB and word.head[:1] not in ("", "-", ";", "+"))


_JUDGES: dict[str, Callable[[Words, Place], str]] = {
    "echo": _echo,
    "printf": _printf,
    "env": _env,
    "printenv": _env,
    "date": _date,
    "sleep": _sleep,
    "set": _set,
    "command": _command,
    "timeout": _wrapper("timeout"),
    "nice": _wrapper("nice"),
    "time": _wrapper("time"),
    "test": _test,
    "[": _test,
    "strings": _strings,
    "wc": _unless("--f"),
    "du": _unless("--f", "du"),
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum", "cksum"), _unless("-[a-zA-Z]*c|--c")),
    "sed": sed,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "jq": jq,
    "find": _find,
    "git": git,
}
_KEYWORDS: dict[str, Callable[[Words, Place], str]] = {
    "[[": _condition,
    "for": _for,
    "case": _case,
}
