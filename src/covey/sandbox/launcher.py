"""The program that restricts itself and then becomes the command: `python -I -S -E … STEP… -- COMMAND…`.

It does what it is given, in order, and knows no policy: `plan` has decided. It exists because a server with threads
cannot do this between fork and exec. Whatever fails, the command is not started: exit code 126 and a sentence.

Most of its cost is Python's own start: 10 ms of CPU, and 5 ms for the imports, where `bash -c :` takes 1.3 ms. So it is
mostly not started for each command, but forked off a process that has done so before (`forker`).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

from covey.sandbox import kernel, landlock, namespaces

TYPE_CHECKING = False  # `typing` and `collections` take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

FAILED = 126
"""What shells say of a program that was found and cannot be run."""
_ARGUMENTS = {
    "refuse": 1,
    "make": 1,
    "namespaces": 1,
    "ro": 1,
    "rw": 1,
    "keep": 1,
    "at": 2,
    "hide": 1,
    "link": 2,
    "dev": 0,
    "landlock": 2,
    "list": 1,
    "read": 1,
    "run": 1,
    "write": 1,
    "hidden": 1,
    "capabilities": 1,
    "seccomp": 1,
}
"""What can be asked of it, with the number of words that follow."""
_RIGHTS = {"list": landlock.LIST, "read": landlock.READ, "run": landlock.RUN, "write": landlock.WRITE}
_VIEW = ("ro", "rw", "keep", "at", "hide", "link", "dev")


def main() -> None:
    split = sys.argv.index("--")
    become(sys.argv[split + 1 :], dict(os.environ), sys.argv[1:split])


def become(command: list[str], env: dict[str, str], words: list[str]) -> NoReturn:
    """Restrict this process as `words` say, and turn it into the command. Only ends by being something else."""
    # Python ignores these, and the command would inherit that: `yes | head` would complain about its pipe.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    try:
        program = _found(command[0], env.get("PATH", os.defpath))
        restrict(list(parsed(words)))
    except (OSError, ValueError, KeyError, IndexError) as error:
        refuse(f"the sandbox could not be set up, so the command was not run: {error}")
    try:
        os.execve(program, command, env)  # noqa: S606 - this is what it is for
    except OSError as error:
        refuse(f"{command[0]}: {error.strerror}")


def parsed(words: list[str]) -> Iterator[tuple[str, ...]]:
    at = 0
    while at < len(words):
        end = at + 1 + _ARGUMENTS[words[at]]
        yield tuple(words[at:end])
        at = end


def restrict(steps: list[tuple[str, ...]]) -> None:
    """Apply all steps to this process. They cannot be taken back."""
    given = {step[0]: step[1:] for step in steps}
    if "refuse" in given:
        refuse(given["refuse"][0])
    for step in steps:
        if step[0] == "make" and not os.path.isdir(step[1]):
            os.makedirs(step[1], 0o700, exist_ok=True)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if "namespaces" in given:
        namespaces.enter(network=given["namespaces"][0] == "network")
        namespaces.build(step for step in steps if step[0] in _VIEW)
    if "landlock" in given:
        abi, options = given["landlock"]
        rules = ((_RIGHTS[step[0]], step[1]) for step in steps if step[0] in _RIGHTS)
        hidden = [step[1] for step in steps if step[0] == "hidden"]
        landlock.restrict(
            int(abi), rules, hidden, tcp="tcp" in options, scoped="scoped" in options, unix="unix" in options
        )
    kernel.keep_capabilities(int(given["capabilities"][0], 16))
    if "seccomp" in given:
        kernel.load_filter(bytes.fromhex(given["seccomp"][0]))


def _found(name: str, path: str) -> str:
    if "/" in name:
        return name
    for directory in path.split(os.pathsep):
        if os.access(f"{directory}/{name}", os.X_OK):
            return f"{directory}/{name}"
    raise FileNotFoundError(2, "No such program", name)


def refuse(sentence: str) -> NoReturn:
    os.write(2, os.fsencode(f"covey: {sentence}\n"))
    os._exit(FAILED)
