"""What is judged harmless does nothing, in a real bash among canaries; and the canaries do sing."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter

import pytest

from covey.permissions.judge import Rules, Verdict, decide
from tests.permissions.fuzz_harmless import fault, known_lines, made_up
from tests.permissions.trapped_project import Arena


def _has_new_bash() -> bool:
    found = shutil.which("bash") and shutil.which("git")
    version = subprocess.run(["bash", "-c", "echo $BASH_VERSINFO"], capture_output=True, check=False) if found else None
    return version is not None and int(version.stdout) >= 5


pytestmark = pytest.mark.skipif(not _has_new_bash(), reason="needs bash 5 and git")


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    return Arena(tmp_path_factory.mktemp("arena").resolve())


@pytest.mark.parametrize(
    ("line", "harm"),
    [
        # What `for`, `case` and `select` expand.
        ("for v in 'a[$(touch pwned)]'; do for x in $((v)); do :; done; done", "changed pwned"),
        ("for v in '$(touch pwned; id)'; do for x in \"${v@P}\"; do :; done; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do case $((v)) in *) :;; esac; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do case x in $((v))) :;; esac; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do for x in ${HOME:v}; do :; done; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do for x in ${BASH_VERSINFO[v]}; do :; done; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do for x in ${!v}; do :; done; done", "changed pwned"),
        ("case $((TOKEN)) in x) :;; esac", "printed a variable"),
        ("for x in ${!TOKEN}; do :; done", "printed a variable"),
        # What they set.
        ("for PS4 in '$(touch pwned)'; do set -x; ls; done", "changed pwned"),
        ("for PATH in ./evil; do ls; done", "ran evil-ls"),
        ("for PATH in ./evil; do :; done; ls", "ran evil-ls"),
        ("select PATH in ./evil; do ls; done < one", "ran evil-ls"),
        ("for HOME in ./evil; do git status; done", "ran fsmonitor"),
        ("for x in $((PATH=0)); do ls; done", "ran 0-ls"),
        ("case $((PATH=0)) in *) ls;; esac", "ran 0-ls"),
        ("for CDPATH in ../outside; do :; done; cd dir && cat f", "read a file outside"),
        # Conditions that calculate.
        ("for v in 'a[$(touch pwned)]'; do [[ v -eq 1 ]]; done", "changed pwned"),
        ("for v in 'a[$(touch pwned)]'; do [[ 1 -lt v ]]; done", "changed pwned"),
        ("[[ TOKEN -eq 1 ]]", "printed a variable"),
        # Programs named like a builtin.
        ("./cd .", "ran project-cd"),
        ("evil/cd sub", "ran evil-cd"),
        ("command ./cd .", "ran project-cd"),
        ("timeout 5 ./cd .", "ran project-cd"),
        ("find . -maxdepth 0 -exec ./cd . \\;", "ran project-cd"),
        # What `find` puts in the place of {}.
        ("find '{system(\"touch pwned\")}' -exec awk 'BEGIN{}' \\;", "changed pwned"),
        ("find . -path './X/*' -type f -exec sed -n 's/{}/a/p' in.txt \\;", "changed pwned"),
        ("find . -maxdepth 0 -exec cat {}/../outside/secret.txt \\;", "read a file outside"),
        ("find . -maxdepth 0 -exec cat {}/{}/{}/../outside/secret.txt \\;", "read a file outside"),
        ("find . -maxdepth 0 -exec grep -r canary {}/../outside \\;", "read a file outside"),
        # Files of arguments.
        ("strings @list", "read a file outside"),
        ("strings @*", "read a file outside"),
        # Words that become the end of an -exec, or what it works on.
        ("find . -maxdepth 0 -exec echo $(echo '; -exec touch pwned') \\;", "changed pwned"),
        ("find . -maxdepth 0 -exec echo \"$(echo ';')\" -fprintf pwned hi -exec echo \\;", "changed pwned"),
        ("find . -maxdepth 0 -exec cat [{]}/../outside/secret.txt \\;", "read a file outside"),
        ("find @list -exec strings {} \\;", "read a file outside"),
        # Where a name begins to awk.
        ("awk 'BEGIN{x=1system(\"touch pwned\")}'", "changed pwned"),
        ("awk 'BEGIN{print 1ENVIRON[\"SECRET\"]}'", "printed a variable"),
        # Options whose value is an option to somebody else.
        ("git log -1 --format=%s -U --output=pwned", "changed pwned"),
        ("git diff -U ../outside/secret.txt /dev/null", "read a file outside"),
        ("git rev-list -L --output=pwned HEAD", "changed pwned"),
        ("git shortlog --since -- --output=pwned HEAD", "changed pwned"),
        ("git branch --format --list newbranch", "changed newbranch, newbranch"),
        ("grep '' a.py --exclude -e ../outside/secret.txt", "read a file outside"),
        ("diff --exclude -x ../outside/secret.txt a.py", "read a file outside"),
        ("cut --output-delimiter -d ../outside/secret.txt -f1", "read a file outside"),
        ("paste --delimiters -d ../outside/secret.txt", "read a file outside"),
        # One word that becomes two files.
        ("uniq two/[12]", "changed 2, 2"),
        # A variable that is set by printing.
        ("printf '%n' PATH; ls", "ran 0-ls"),
        ("git log -iS --output=pwned", "changed pwned"),
        ("git blame -CL --contents=../outside/secret.txt a.py", "read a file outside"),
        # Where a here-document ends.
        ("cat <<'a\"b'\na\"b\ntouch pwned\nab", "changed pwned"),
        ("cat <<E\n\\\nE\ntouch pwned\nE", "changed pwned"),
        ("cat <<EF\nE\\\nF\ntouch pwned\nEF", "changed pwned"),
        ("echo $(cat <<E\nx\nE)\ntouch pwned\nE\n)", "changed pwned"),
        # Where a bracket ends.
        ("echo 'touch pwned 1' | sed 's/[[:digit:]/]/;s/e#/x/'", "changed pwned"),
        # What is a digit, and where a word ends.
        ("echo hi >&٣", "changed ٣"),
        ("grep -v -e ../outside/dir/{e.\\\n.f}", "read a file outside"),
        # Links.
        ("cat link", "read a file outside"),
        ("cat ./link", "read a file outside"),
        ("base64 -w 0 link | base64 -d", "read a file outside"),
        ("cat linkdir/f", "read a file outside"),
        ("cat linkdir/../secret.txt", "read a file outside"),
        ("cat src/sub/top/../outside/secret.txt", "read a file outside"),
        ("cd linkdir && cat f", "read a file outside"),
        ("cd src/sub/top && cat ../outside/secret.txt", "read a file outside"),
        ("cat *ink", "read a file outside"),
        ("cat [k-m]ink", "read a file outside"),
        ('cat l["!"i]nk', "read a file outside"),
        ("cat < link", "read a file outside"),
        ("head -n 1 */f", "read a file outside"),
        ("sed -n 1p link", "read a file outside"),
        ("awk 1 link", "read a file outside"),
        ("grep canary one link", "read a file outside"),
        ("grep -R canary .", "read a file outside"),
        ("grep -Rh canary", "read a file outside"),
        ("diff -r linkdir dir", "read a file outside; listed a directory outside"),
        ("diff --new-file -r . two", "read a file outside"),
        ("find . -name 'lin*' -exec cat {} +", "read a file outside"),
        ("find . -type l -exec cat {} \\;", "read a file outside"),
        ("find . -type f -o -name link -exec cat {} \\;", "read a file outside"),
        ("find . -maxdepth 1 -exec cat {}/f \\;", "read a file outside"),
        ("ls linkdir", "listed a directory outside"),
        ("echo linkdir/*", "listed a directory outside"),
        ("for x in linkdir/*; do set -x; ls one; done; echo linkdir/c*", "listed a directory outside"),
        ("tree -l", "listed a directory outside"),
        ("ls -RL .", "listed a directory outside"),
        ("du -aL .", "listed a directory outside"),
        # What is printed becomes names of files.
        ("echo $(echo '../outside/dir/*')", "listed a directory outside"),
        ("printf %s `echo ../outside/dir/'*'`", "listed a directory outside"),
        ("echo $(printf '../outside/dir/\\052')", "listed a directory outside"),
        # Lists of files in a file.
        ("printf '../outside\\0' | du -a --files0-from=-", "listed a directory outside"),
        # The name of a file as a program.
        ("jq -n en*", "printed a variable"),
    ],
)
def test_a_line_that_once_did_harm_unasked_is_asked_about(arena: Arena, line: str, harm: str) -> None:
    rules = Rules(root=str(arena.root))
    assert decide(arena.intent(line), rules, frozenset(), skip=False) is Verdict.ASK
    assert decide(arena.intent(line), rules, frozenset(), skip=True, plan=True) is Verdict.DENY
    done = arena.harm(line)
    if not done:
        pytest.skip("the programs of this machine do no harm here: they are missing, or of another version")
    assert done == harm


@pytest.mark.parametrize("line", ["touch new", "rm one", "echo x > b.txt", "rm -r src", "mkdir y; touch y/z"])
def test_every_change_is_noticed_and_taken_back(arena: Arena, line: str) -> None:
    assert arena.harm(line).startswith("changed ")
    assert arena.harm("ls") == ""


@pytest.mark.parametrize(
    ("line", "harm"),
    [
        ("cat ../outside/secret.txt", "read a file outside"),
        ("echo $SECRET", "printed a variable"),
        ("./ls", "ran project-ls"),
        ("evil/cd; touch new; cat ../outside/dir/f", "ran evil-cd; changed new; read a file outside"),
    ],
)
def test_every_canary_sings(arena: Arena, line: str, harm: str) -> None:
    assert arena.harm(line) == harm
    assert arena.harm("ls") == ""


def test_what_is_judged_harmless_does_no_harm(arena: Arena) -> None:
    """A short piece of what `python -m tests.permissions.fuzz_harmless` does for as long as one likes."""
    draw, tally, known = random.Random(11), Counter[str](), known_lines()
    lines = (made_up(draw, known) for _ in range(600))
    assert {line: harm for line in lines if (harm := fault(arena, line, tally))} == {}
    assert tally["judged harmless and run"] > 120, "else nothing was tried"
    assert all(tally[f"with {construct}"] for construct in ("for ", "case ", "[[ ", "-exec", "git "))


def test_no_line_that_is_known_as_harmless_does_harm(arena: Arena) -> None:
    tally = Counter[str]()
    assert {line: harm for line in known_lines()[::4] if (harm := fault(arena, line, tally))} == {}
    assert tally["judged harmless and run"] > 80
