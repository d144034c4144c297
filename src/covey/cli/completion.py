"""`covey completion SHELL`: a script that completes commands, options and ids, made from the parser.

Ids and names of models come from the server, if one runs: `covey completion --words KIND` prints them, and takes a
second at most. None is started for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from covey.cli import exits
from covey.cli.completion_fish import fish, following, values_of
from covey.cli.main import build_parser
from covey.cli.parser import Described, all_commands

WORDS_S = 1.0
"""How long somebody who has pressed a key may wait for the server."""
WORDS_MAX = 200


def main(args: argparse.Namespace) -> int:
    if args.words:
        print("\n".join(_words(args)))
        return exits.OK
    if not args.shell:
        raise exits.UsageError("say for which shell: bash, zsh or fish")
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](all_commands(build_parser())), end="")
    return exits.OK


# ── what the server knows ──


def _words(args: argparse.Namespace) -> list[str]:
    """Nothing, if anything at all is wrong: a person who types must not read about it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        return asyncio.run(_ask(args))[:WORDS_MAX]
    except Exception:
        return []


async def _ask(args: argparse.Namespace) -> list[str]:
    from covey.cli import common

    async with asyncio.timeout(WORDS_S), common.connected(args, autostart=False, say=lambda text: None) as client:
        workspace = await common.join(client, args.cwd)
        if args.words == "sessions":
            return [session.id for session in await client.sessions(workspace.id)]
        if args.words == "runs":
            return [run.run_id for run in await client.runs(workspace.id, limit=WORDS_MAX)]
        providers = workspace.config.providers.values()
        return [f"{provider.id}/{model.id}" for provider in providers for model in provider.models]


# ── the scripts ──


def _flags(command: Described) -> list[str]:
    return [name for action in command.options for name in action.option_strings]


def bash(commands: list[Described]) -> str:
    cases = "".join(_bash_case(command) for command in commands)
    further = "".join(f'        " {typed}") kind="{kind}" ;;\n' for typed, kind in following(commands).items())
    tops = " ".join(command.words[0] for command in commands if len(command.words) == 1)
    return f"""\
# covey completion bash: put `source <(covey completion bash)` into ~/.bashrc.
_covey() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local cmd=${{COMP_WORDS[1]-}} names="" flags="" kind="" known="" given="" lead="" typed="" at=2 i
    case "$word" in  # bash has `--model=x` as three words, zsh as one
        =) word="" ;;
        --*=*) lead=${{word%%=*}}= before=${{word%%=*}} word=${{word#*=}} ;;
        *) [[ $before == "=" ]] && before=${{COMP_WORDS[COMP_CWORD-2]}} ;;
    esac
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=( $(compgen -W "{tops} --help --version" -- "$word") )
        return
    fi
    case "$cmd ${{COMP_WORDS[2]-}}" in
        {_bash_pairs(commands)}) (( COMP_CWORD > 2 )) && cmd="$cmd ${{COMP_WORDS[2]}}" at=3 ;;
    esac
    for (( i = 1; i < COMP_CWORD; i++ )); do  # a word after an option may be its value
        [[ ${{COMP_WORDS[i]}} == [-=]* || ${{COMP_WORDS[i-1]}} == [-=]* ]] && continue
        typed="$typed ${{COMP_WORDS[i]}}"
        (( i >= at )) && given=1  # the first argument
    done
    case "$cmd" in
{cases}    esac
    [[ $before == -* ]] || case "$typed" in
{further}    esac
    case "$kind" in
        files) COMPREPLY=( $(compgen -P "$lead" -f -- "$word") ); return ;;
        =*) known=${{kind#=}} ;;
        ?*) known=$(covey completion --words "$kind" 2>/dev/null) ;;
    esac
    case "$word" in
        -*) COMPREPLY=( $(compgen -W "$flags" -- "$word") ) ;;
        *) COMPREPLY=( $(compgen -P "$lead" -W "$names $known" -- "$word") ) ;;
    esac
}}
complete -F _covey covey
"""


def _bash_pairs(commands: list[Described]) -> str:
    return "|".join(f'"{" ".join(command.words)}"' for command in commands if len(command.words) == 2)


def _bash_case(command: Described) -> str:
    kinds = values_of(command)
    first = kinds.pop("", "")
    groups: dict[str, list[str]] = {}
    for option, kind in kinds.items():
        groups.setdefault(kind, []).append(option)
    inner = "".join(f'                {"|".join(options)}) kind="{kind}" ;;\n' for kind, options in groups.items())
    otherwise = f'                *) [[ $given ]] || kind="{first}" ;;\n' if first else ""
    choose = f'            case "$before" in\n{inner}{otherwise}            esac\n' if inner or otherwise else ""
    names = " ".join(command.names)
    return (
        f'        "{" ".join(command.words)}")\n'
        f'            names="{names}" flags="{" ".join(_flags(command))}"\n{choose}            ;;\n'
    )


def zsh(commands: list[Described]) -> str:
    """By way of zsh's own support for bash completions: one script to keep right. In zsh `path` is that of programs."""
    head = "# covey completion zsh: put `source <(covey completion zsh)` into ~/.zshrc, after compinit.\n"
    script = bash(commands).split("\n", 1)[1]
    return f"{head}autoload -U +X bashcompinit && bashcompinit\n{script}"
