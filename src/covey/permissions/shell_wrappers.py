"""Commands that run other commands, and where in their words those stand. Best effort, for the sake of deny rules:

nothing is ever allowed because of what is found here, and a program may always run others without saying so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from covey.permissions.shell_words import UNKNOWN, Word, WordKind

Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """A command that another one runs: as words, or as text for a shell."""

    words: Words = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    valued: str = ""
    """Short options whose value may be the next word."""
    long: tuple[str, ...] = ()
    """Long options, too."""
    operands: int = 0
    """Words between the options and the command."""
    assigns: bool = False
    text: bool = False
    """What it runs is text for a shell."""


_WRAPPERS = {
    "env": _Wrapper("uC", ("unset", "chdir"), assigns=True),
    "sudo": _Wrapper("ugpCDhRrtTU", ("user", "group", "prompt", "chdir", "host", "role", "type"), assigns=True),
    "doas": _Wrapper("uC"),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "nice": _Wrapper("n", ("adjustment",)),
    "ionice": _Wrapper("cnpPu", ("class", "classdata")),
    "timeout": _Wrapper("ks", ("kill-after", "signal"), operands=1),
    "time": _Wrapper("fo", ("format", "output")),
    "command": _Wrapper(),
    "builtin": _Wrapper(),
    "exec": _Wrapper("a"),
    "xargs": _Wrapper("adEILnPs", ("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars")),
    "stdbuf": _Wrapper("ioe", ("input", "output", "error")),
    "chrt": _Wrapper("TPD", operands=1),
    "taskset": _Wrapper(operands=1),
    "strace": _Wrapper("abeEIoOpPsSuUX"),
    "ltrace": _Wrapper("aeDFlnopsuwx"),
    "unshare": _Wrapper("GRSw"),
    "nsenter": _Wrapper("tSG"),
    "chroot": _Wrapper(operands=1),
    "setarch": _Wrapper(),
    "unbuffer": _Wrapper(),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "npx": _Wrapper("pc"),
    "flock": _Wrapper("wE", ("timeout", "conflict-exit-code"), operands=1),
    "ssh": _Wrapper("BbcDEeFIiJLlmOopQRSWw", operands=1, text=True),
    "watch": _Wrapper("n", ("interval",), text=True),
    "parallel": _Wrapper("jNnLSa", ("jobs", "arg-file", "sshlogin"), text=True),
    ".": _Wrapper(),
    "source": _Wrapper(),
    "eval": _Wrapper(text=True),
    "runuser": _Wrapper("ugG"),
}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash"})
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "rye", "pixi"})
_SYSTEM = re.compile(r"\bsystem\s*\(\s*\"([^\"]*)\"|\|&?\s*\"([^\"]*)\"|\"([^\"]*)\"\s*\|&?\s*getline")
"""What awk gives to a shell."""
_MAX_GUESSES = 4
"""After an option that is not known, so many words are taken for the command, one by one."""

_MAX_GIVEN = 20
"""Words that `xargs` gets to read and that are looked at."""


def unwrap(words: Words, fed_text: str | None, *, fed: bool) -> Iterator[Inner]:
    """Whatever else runs when `words` run. `fed_text`: what a here-document gives them to read."""
    if not words or not words[0].known:
        yield from _pieces(words)
        return
    name = words[0].text.rpartition("/")[2]
    if name == "((" and words[0].bare:
        yield Inner(text=words[1].text[2:-2])  # arithmetic to bash, and brackets in brackets to other shells
    elif name in _SHELLS:
        yield from _shell(words, fed_text, fed=fed)
    elif name in ("su", "script", "flock"):
        yield from _after_option(words, "-c", "--command", "--session-command")
    elif name == "env":
        yield from _after_option(words, "-S", "--split-string")
    elif name == "find":
        yield from _find(words)
    elif name == "git":
        yield from _git(words)
    elif name == "tar":
        yield from _tar(words)
    elif name in ("awk", "gawk", "mawk", "nawk"):
        texts = (found for word in words[1:] for found in _SYSTEM.findall(word.text))
        yield from (Inner(text=text) for found in texts for text in found if text)
    elif name == "trap":
        yield from (Inner(text=word.text) for word in words[1:2])
    elif name == "alias":
        yield from (Inner(text=word.text.partition("=")[2]) for word in words[1:])
    elif name in _RUNNERS and len(words) > 2 and words[1].text == "run":
        yield from _command(words[1:], _Wrapper(), "")
    if name == "xargs" and fed_text:
        given = (Word(text, head=text) for text in fed_text.split()[:_MAX_GIVEN])
        yield from _command((*words, *given), _WRAPPERS[name], "")
    if name in _WRAPPERS and not (name == "command" and words[1:] and words[1].text in ("-v", "-V")):
        yield from _command(words, _WRAPPERS[name], name)


def _pieces(words: Words) -> Iterator[Inner]:
    """`{rm,-rf,x}` is three words."""
    if words and re.fullmatch(r"\{[^{}$`]*,[^{}$`]*\}", words[0].text):
        pieces = [Word(text, head=text) for text in words[0].text[1:-1].split(",")]
        yield Inner((*pieces, *words[1:]))


def _command(words: Words, wrapper: _Wrapper, name: str) -> Iterator[Inner]:
    for start in _starts(words, wrapper):
        rest = words[start:]
        if not all(word.known for word in words[:start]):
            yield Inner((UNKNOWN,))  # a value that becomes several words, the second of which is the command
        if not rest:
            continue
        if wrapper.text:
            yield Inner(text=" ".join(word.text for word in rest))
            if not all(word.known for word in rest):
                yield Inner((UNKNOWN,))
        else:
            yield Inner((*rest, UNKNOWN) if name == "xargs" else rest)


def _starts(words: Words, wrapper: _Wrapper) -> Iterator[int]:
    """Where the command may begin. More than one place only if there is an option that is not known."""
    at = 1
    while at < len(words):
        text = words[at].text
        if not words[at].known:
            break  # it may be an option, or nothing
        if text == "--":
            at += 1
            break
        if wrapper.assigns and "=" in text and text[0] != "-":
            at += 1
        elif not text.startswith("-"):
            break
        elif text == "-":
            at += 1  # to env as good as -i
        elif text.startswith("--"):
            if "=" not in text and text[2:] not in wrapper.long:
                yield from range(at + 2, min(at + 2 + _MAX_GUESSES, len(words)))
            at += 2 if text[2:] in wrapper.long else 1
        else:
            at += 2 if _wants_value(text, wrapper.valued) else 1
    yield at + wrapper.operands
    if at < len(words) and not words[at].known:
        yield from range(at + 1, min(at + 1 + _MAX_GUESSES, len(words)))


def _wants_value(cluster: str, valued: str) -> bool:
    """Whether the value of a short option is the next word: it is not, if anything follows its letter."""
    first = next((at for at, letter in enumerate(cluster[1:], 1) if letter in valued), 0)
    return first == len(cluster) - 1


def _shell(words: Words, fed_text: str | None, *, fed: bool) -> Iterator[Inner]:
    """`sh -c text`, or a shell that reads what it shall do."""
    wants_text, at = False, 1
    while at < len(words) and words[at].known and words[at].text[:1] in ("-", "+"):
        text = words[at].text
        at += 1
        if text in ("--", "-"):
            break
        if text.startswith("--"):
            at += text in ("--rcfile", "--init-file")
        else:
            wants_text = wants_text or "c" in text
            at += text.count("o") + text.count("O")
    if at < len(words) and not words[at].known:
        yield Inner((UNKNOWN,))
    if wants_text and at < len(words):
        yield Inner(text=words[at].text)
        return
    if at < len(words):
        yield Inner(words[at:])  # a script, which is looked for like a program
    if fed_text is not None:
        yield Inner(text=fed_text)
    if fed or at >= len(words):
        yield Inner((UNKNOWN,))


def _after_option(words: Words, *options: str) -> Iterator[Inner]:
    """Shell text after one of these options, as the next word or in the same one."""
    for at, word in enumerate(words[1:], 1):
        if word.text[:1] != "-":
            continue
        name, equals, value = word.text.partition("=")
        if name in options and (equals or at + 1 < len(words)):
            yield Inner(text=value if equals else words[at + 1].text)
        elif word.text[:2] in options and len(word.text) > 2 and word.text[1] != "-":
            yield Inner(text=word.text[2:])
        elif re.fullmatch(r"-\w+", word.text) and f"-{word.text[-1]}" in options and at + 1 < len(words):
            yield Inner(text=words[at + 1].text)  # as in `script -qc`


def _find(words: Words) -> Iterator[Inner]:
    for at, word in enumerate(words):
        if _may_be_option(word) or word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = end_of_exec(words, at + 1)
            if words[at + 1 : end]:
                yield Inner(tuple(_filled_in(word) for word in words[at + 1 : end]))


def _filled_in(word: Word) -> Word:
    """A word of `-exec`, in which `{}` is the path of a file that was found: any name that somebody gave to a file.

    That path does not lead out of where `find` looks, and neither does one below it; the text around it may.
    """
    if word.kind is WordKind.GLOB and ".." in word.text.split("/"):
        return replace(word, kind=WordKind.UNKNOWN)  # a directory may be named {}
    if "{}" not in word.text or not word.known:
        return word
    is_path = word.text == "{}" or (
        word.text.startswith("{}/") and not re.search(r"\{\}.*\{\}|/\.\.(?:/|$)", word.text)
    )
    return replace(word, kind=WordKind.GLOB if is_path else WordKind.UNKNOWN)


def _may_be_option(word: Word) -> bool:
    """As `$x-exec` may be; `*.py` cannot."""
    return word.head[:1] == "-" if word.kind is WordKind.GLOB else not word.known and "-" in word.text


def end_of_exec(words: Sequence[Word], start: int) -> int:
    """Where the command of an `-exec` ends, which begins at `start`."""
    for at in range(start, len(words)):
        if words[at].text == ";" or (words[at].text == "+" and words[at - 1].text == "{}"):
            return at
    return len(words)


_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
"""Options of git itself whose value may be the next word."""


def _git(words: Words) -> Iterator[Inner]:
    texts = [word.text for word in words]
    for at, text in enumerate(texts):
        name, _, value = text.partition("=")
        if value.startswith("!") and name.startswith("alias."):
            yield Inner(text=value[1:])
        elif value and name in ("core.pager", "core.editor", "core.sshCommand", "core.fsmonitor", "diff.external"):
            yield Inner(text=value)
        elif name in ("--exec", "-x", "--upload-pack", "--receive-pack", "--tree-filter", "--index-filter"):
            yield Inner(text=value or " ".join(texts[at + 1 : at + 2]))
        elif text == "foreach" or (text == "run" and texts[at - 1] == "bisect"):
            yield Inner(text=" ".join(texts[at + 1 :]))
    yield from _git_subcommand(words)


def _git_subcommand(words: Words) -> Iterator[Inner]:
    """The subcommand without the options of git itself before it, and as an alias that they define."""
    at, aliases = 1, dict[str, str]()
    while at < len(words) and words[at].text.startswith("-"):
        takes = words[at].text in _GIT_VALUED
        name, _, value = words[at + takes].text.partition("=") if at + takes < len(words) else ("", "", "")
        if name.startswith("alias."):
            aliases[name.removeprefix("alias.")] = value
        at += 1 + takes
    if at > 1 and at < len(words):
        yield Inner((words[0], *words[at:]))
        if expansion := aliases.get(words[at].text, "").split():
            yield Inner((words[0], *(Word(text, head=text) for text in expansion), *words[at + 1 :]))


def _tar(words: Words) -> Iterator[Inner]:
    options = ("--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command", "-F")
    for at, word in enumerate(words[1:], 1):
        name, equals, value = word.text.partition("=")
        if name in options:
            text = value if equals else " ".join(following.text for following in words[at + 1 : at + 2])
            yield Inner(text=text.removeprefix("exec="))
