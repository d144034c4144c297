"""Other ways to say what a deny rule forbids, as far as a line says by itself what it runs. Yolo is on: deny holds."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide

RULES = Rules(
    allow=("bash",),
    deny=("bash:rm *", "bash:git push*", "bash:curl *", "write:**/.env", "edit:*.lock"),
    root="/p",
)


def verdict(line: str) -> Verdict:
    return decide(Intent("bash", "execute", line), RULES, frozenset(), skip=True)


@pytest.mark.parametrize(
    "line",
    [
        # Options of git itself, and aliases.
        "git -C . push",
        "git --no-pager push",
        "git -c a.b=c push origin",
        "git --git-dir=.git --work-tree . push",
        "git --git-dir .git push",
        "git -P -C sub push -f",
        "git -c alias.p=push p",
        "git -c alias.p='push -f' -C . p origin",
        "sudo git -C . push",
        # A shell that reads its commands.
        "cat <<E | sh\nrm x\nE",
        "cat <<'E' | bash -s\nls\nrm x\nE",
        "cat <<E | tee log | sh\ngit push\nE",
        "echo 'rm x' | cat | sh",
        "echo rm x | tee log | bash",
        "sh <<E\nrm x\nE",
        "cat - <<E | sudo sh\nrm x\nE",
        "echo push | xargs git",
        "echo push -f | xargs -n 2 git",
        # Variables of the line.
        "R=rm; $R x",
        "R=rm; ${R} -rf x",
        "R='rm -rf'; $R x",
        "S=sh; $S -c 'rm x'",
        "R=rm; sudo $R x",
        "A=r; B=m; $A$B x",
        "R=ls; $R; R=rm; $R x",
        "export R=rm; $R x",
        "for c in ls rm; do $c x; done",
        "rm$IFS-rf x",
        "rm${IFS}x",
        "r$@m x",
        "r${1}m x",
        "${X:-rm} x",
        "$(echo rm) x",
        "`echo rm` x",
        "P=push; git $P",
        "G=git; $G -C . push",
        # Files that programs write.
        "ls > .env",
        "ls | tee .env",
        "ls | tee -a sub/.env",
        "cp a .env",
        "cp a/.env .",
        "cp -t sub x/.env",
        "mv a sub/.env",
        "mv .env a",
        "install -m 600 a .env",
        "ln -sf a .env",
        "dd if=a of=.env",
        "sed -i s/a/b/ .env",
        "sort -o .env a",
        "wget -O .env http://a",
        "touch .env",
        "truncate -s 0 .env",
        "cd sub && cp a .env",
        "cd sub && ls > ../.env",
        "T=.env; ls | tee $T",
        "sudo tee .env < a",
        "cp a yarn.lock",
    ],
)
def test_a_deny_rule_finds_the_command_or_the_file(line: str) -> None:
    assert verdict(line) is Verdict.DENY


@pytest.mark.parametrize(
    "line",
    [
        "git -C . pull",
        "git -c alias.p=push pull",
        "git log --grep push",
        "cat <<E | sh\nls\nE",
        "cat <<E\nrm x\nE",
        "echo rm x | cat",
        "R=rm; echo $R",
        "R=rm; S=ls; $S x",
        "cp .env a",
        "cat .env | tee copy",
        "sort -o out .env",
        "cp yarn.lock other",
        "mv a b",
    ],
)
def test_it_leaves_other_lines_alone(line: str) -> None:
    assert verdict(line) is Verdict.ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "make clean",
        "./script.sh",
        "read R <<< rm; $R x",
        'X=mr; "$(echo $X | rev)" x',
        "printf '\\162m x' | sh",
        "base64 -d <<< cm0geA== | sh",
        "python3 -c 'import os; os.remove(\"x\")'",
        "git config alias.p push && git p",
        "cp a/.env sub",
        "unlink .env",
    ],
)
def test_what_only_a_running_shell_or_another_program_knows_is_not_found(line: str) -> None:
    """The limits that the documentation names. A line that moves away from here is good news."""
    assert verdict(line) is Verdict.ALLOW
