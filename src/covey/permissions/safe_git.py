"""Git, as far as it only looks. Options that write (`--output`) or run programs (`--ext-diff`, `-O`) are not listed.

Git also runs what the repository's own configuration names. That is the owner's business, but only in the workspace's
root: another directory may hold a repository that somebody put there to be stepped into. So may the root itself, where
it is part of a clone (`tools/git_guard.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from covey.permissions.safe_options import ARGUMENT, NOT_LISTED, OPTION, VARIABLE, Spec, Words, by_spec
from covey.permissions.safe_paths import OUTSIDE, SECRET, Place, Repository, is_secret

DIRECTORY = "directory"
REPOSITORY = "repository"

_SHOW = (
    "oneline stat shortstat numstat name-only name-status patch no-patch graph all branches tags remotes decorate "
    "no-decorate abbrev-commit abbrev no-abbrev-commit pretty format "
    "all-match invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp merges "
    "no-merges first-parent reverse follow cached staged merge-base summary unified raw minimal patience histogram "
    "color no-color color-words word-diff ignore-space-change ignore-all-space ignore-blank-lines "
    "ignore-space-at-eol find-renames find-copies no-renames full-index exit-code quiet check "
    "date-order topo-order author-date-order relative-date left-right cherry-pick cherry-mark no-notes source "
    "full-history simplify-by-decoration no-ext-diff no-textconv text relative no-relative dirstat compact-summary "
    "pickaxe-regex pickaxe-all reflog walk-reflogs not cc root children parents boundary"
)
_SHOW_VALUED = "max-count skip since after until before author committer grep diff-filter date diff-merges"
_REFS = "format sort points-at merged no-merged contains no-contains"
_DIFF = Spec(short="pursziRwbaEFPicqmtMCDgWU", valued="nSGl", clusters=False, long=_SHOW, long_valued=_SHOW_VALUED)
_LOG = replace(_DIFF, valued="nSGlL")
"""These also follow a range of lines."""
_SPECS: dict[str, Spec] = {
    **dict.fromkeys(("log", "show", "whatchanged"), _LOG),
    **dict.fromkeys(("diff", "diff-tree", "diff-index", "diff-files", "rev-list"), _DIFF),
    "status": Spec(
        short="sbuvz", long="short branch porcelain long untracked-files ignored ahead-behind show-stash column"
    ),
    "shortlog": Spec(short="nsecw", long="summary numbered email all no-merges", long_valued="since until group"),
    "reflog": Spec(short="n", valued="n", long="oneline all format pretty", long_valued="max-count date", skip=1),
    "rev-parse": Spec(
        short="q",
        long="abbrev-ref short verify symbolic-full-name show-toplevel show-prefix show-cdup git-dir "
        "absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository "
        "is-shallow-repository all branches tags remotes quiet symbolic show-superproject-working-tree",
    ),
    "ls-files": Spec(
        short="cdmosktvuz",
        valued="x",
        long="cached deleted modified others ignored stage killed unmerged exclude-standard full-name "
        "error-unmatch directory deduplicate eol",
        long_valued="exclude",
    ),
    "ls-tree": Spec(
        short="drtlz",
        long="name-only name-status full-name full-tree abbrev object-only long",
        long_valued="format",
    ),
    "blame": Spec(
        short="lbtsfnewcpMCq",
        valued="L",
        clusters=False,
        long="line-porcelain porcelain show-email show-name abbrev",
        long_valued="date since",
    ),
    "grep": Spec(
        short="nivwEFPGlLchHoqpWazr",
        valued="ABCem",
        long="line-number ignore-case invert-match word-regexp extended-regexp fixed-strings perl-regexp "
        "basic-regexp count files-with-matches files-without-match name-only cached untracked show-function "
        "function-context break heading and or not all-match color no-color quiet only-matching column",
        long_valued="max-depth context after-context before-context",
        skip=1,
        skips_unless="-e",
    ),
    "describe": Spec(
        short="",
        long="tags all always long dirty abbrev exact-match contains first-parent",
        long_valued="match exclude",
    ),
    "cat-file": Spec(short="tpse", skip=1),
    "merge-base": Spec(short="a", long="all is-ancestor octopus independent fork-point"),
    "name-rev": Spec(short="", long="name-only tags always"),
    "for-each-ref": Spec(short="", long_valued=f"count {_REFS}"),
    "show-ref": Spec(short="dsq", long="head heads tags dereference hash abbrev verify quiet branches"),
    "count-objects": Spec(short="vH", long="verbose human-readable", most=0),
    "check-ignore": Spec(short="qvn", long="quiet verbose non-matching no-index"),
    "version": Spec(short="", long="build-options", most=0),
    "cherry": Spec(short="v", long="abbrev verbose"),
    "range-diff": Spec(short="", long="stat no-color color no-patch"),
    "branch": Spec(
        short="arv",
        long="list all remotes verbose show-current color no-color column ignore-case",
        long_valued=_REFS,
        most=0,
    ),
    "tag": Spec(short="ln", long="list column", long_valued=_REFS, most=0),
    "remote": Spec(short="v", long="verbose", most=0),
}
_LISTS_WITH_PATTERN = frozenset(
    {"-l", "--list", "--contains", "--merged", "--no-merged", "--points-at", "--no-contains"}
)
"""With one of these, `git branch x` and `git tag x` list instead of making something."""


_SIGNATURE = re.compile(r"%[-+ ]?G|%\(signature|^(?:--sort=)?-?signature")
_FROM_TOP = re.compile(r"^:|:(?!\./)[^:]*$|:.*\.\.")
"""Paths that are seen from the repository's own directory: `:/x`, `:(top)x`, `HEAD:x`."""


def git(words: Words, place: Place) -> str:
    """Why somebody should be asked about `git` with these arguments; empty if it only looks."""
    if place.directories != frozenset({()}):
        return DIRECTORY
    if place.repository is Repository.FOREIGN:
        return REPOSITORY
    rest = list(words)
    while rest and rest[0].text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "-P"):
        rest.pop(0)
    if not rest or not rest[0].known:
        return VARIABLE
    name, arguments = rest[0].text, rest[1:]
    texts = [word.text for word in arguments]
    if name == "--version":
        return "" if not arguments else OPTION
    if name in ("stash", "worktree") and texts[:1] == ["list"]:
        name, arguments = "log", arguments[1:]
    elif name == "reflog" and texts and texts[0] != "show" and not texts[0].startswith("-"):
        return ARGUMENT
    elif name in ("branch", "tag") and _LISTS_WITH_PATTERN.intersection(texts):
        arguments = [word for word in arguments if word.text.startswith("-") or not word.known]
    spec = _SPECS.get(name)
    if spec is None:
        return NOT_LISTED
    if any(is_secret(part) for text in texts for part in re.split(r"[:/]", text)):
        return SECRET
    if any(_SIGNATURE.search(text) for text in texts):
        return ARGUMENT  # checking a signature runs a program
    if place.repository is Repository.ABOVE and any(_FROM_TOP.search(text) for text in texts):
        return OUTSIDE
    if place.repository is Repository.ABOVE and _shows_all(name, texts):
        return OUTSIDE
    return by_spec(arguments, spec, place)


_CONTENT = re.compile(r"-[A-Za-z0-9]*[puUcmWL].*|--(?:patch|unified|cc|word-diff|color-words|full-diff|diff-merges).*")
"""Options with which a log shows what was changed."""
_SHOWN_BY = {"log": _CONTENT, "whatchanged": _CONTENT, "reflog": _CONTENT, "cat-file": re.compile("-p")}
_LIMITS = re.compile(r"--relative|\.|\./.*|.*:\./.*")


def _shows_all(name: str, texts: Sequence[str]) -> bool:
    """Whether content of the whole repository is shown, not only that of the directory in which git is called."""
    if any(map(_LIMITS.fullmatch, texts)) or ("--" in texts and texts[-1] != "--"):
        return False
    if name in ("show", "range-diff") or name.startswith("diff"):
        return True
    return name in _SHOWN_BY and any(map(_SHOWN_BY[name].fullmatch, texts))
