"""Whether a command line probably needs the network: a guess, from names of programs and of what they are asked to do.

Nothing is allowed because of it. It decides what a question says, and whether a session that runs freely in the sandbox
asks first. A program that is not listed may need the network all the same, and then fails without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from covey.permissions.shell import Line, Unparsed

_NETWORK_PROGRAMS = """
    curl wget http https xh aria2c ssh scp sftp rsync ftp telnet nc ncat netcat socat ping dig nslookup host whois
    docker podman nerdctl kubectl helm skopeo terraform tofu pulumi ansible ansible-playbook aws gcloud az doctl gh
    glab hub heroku vercel netlify wrangler flyctl npx pnpx bunx uvx pipx apt apt-get dnf yum apk pacman zypper brew
    snap flatpak twine psql mysql mongosh redis-cli
"""
_PROGRAMS = frozenset(_NETWORK_PROGRAMS.split())
_SUBCOMMANDS = {
    "git": "clone fetch pull push ls-remote send-email",
    "pip": "install download wheel index search",
    "uv": "add sync lock pip tool run python publish",
    "poetry": "add install update lock publish",
    "pdm": "add install update lock sync publish",
    "conda": "install create update search",
    "npm": "install i ci add update up audit publish view exec outdated init create login",
    "pnpm": "install i add update up audit publish dlx outdated create",
    "yarn": "install add up upgrade npm dlx create publish outdated",
    "bun": "install i add update create publish x",
    "deno": "install add cache update",
    "cargo": "install add fetch update publish search",
    "go": "get install",
    "gem": "install update fetch push",
    "bundle": "install update add",
    "composer": "install update require create-project",
    "dotnet": "restore add tool",
    "rustup": "update install toolchain component target",
    "nix": "develop shell run build flake",
}
_WANTED = {
    **{name: frozenset(words.split()) for name, words in _SUBCOMMANDS.items()},
    **{name: frozenset(_SUBCOMMANDS[like].split()) for name, like in {"pip3": "pip", "mamba": "conda"}.items()},
}
_PAIRS = {("go", "mod"): frozenset({"download", "tidy"}), ("git", "submodule"): frozenset({"update", "add"})}
_PAIRS[("git", "remote")] = frozenset({"update", "show", "prune"})
_TAKE_VALUES = frozenset(
    {"-C", "-c", "--prefix", "--cwd", "--git-dir", "--work-tree", "--directory", "--manifest-path"}
)
"""Options before the subcommand, whose next word is a value."""
_MODULES = {"pip": "pip", "venv": ""}


def may_need_network(line: Line | Unparsed, text: str) -> bool:
    """Whether any command of the line is one that usually connects to somewhere."""
    if isinstance(line, Unparsed):
        words = re.findall(r"[\w.+-]+", text)
        return any(_connects(words[at], words[at + 1 :]) for at in range(len(words)))
    return any(
        command.name and _connects(command.name, [word.text for word in command.words[1:]]) for command in line.commands
    )


def _connects(name: str, arguments: list[str]) -> bool:
    if name in _PROGRAMS:
        return True
    if re.fullmatch(r"python[\d.]*", name) and arguments[:1] == ["-m"] and len(arguments) > 1:
        name, arguments = _MODULES.get(arguments[1], ""), arguments[2:]
    if name not in _WANTED:
        return False
    operands = _operands(arguments)
    if not operands:
        return name == "yarn"
    if operands[0] in _WANTED[name]:
        return True
    return operands[1:2] != [] and operands[1] in _PAIRS.get((name, operands[0]), frozenset())


def _operands(arguments: Iterable[str]) -> list[str]:
    """The first words that are no options, nor values of such options."""
    found: list[str] = []
    is_value = False
    for word in arguments:
        if is_value:
            is_value = False
        elif word in _TAKE_VALUES:
            is_value = True
        elif not word.startswith("-"):
            found.append(word)
            if len(found) == 2:
                break
    return found
