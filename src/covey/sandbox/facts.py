"""Looks at the machine for what a policy is made from: names, links, some small files of git. Changes nothing."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from covey.machine.regular import read_regular
from covey.sandbox import places
from covey.sandbox.policy import Facts, GitPlaces, Paths, is_within

_SMALL = 64 * 1024
"""Bytes of a configuration of git, or of a file that says where it is."""
_MODULES = 200
"""Submodules whose configuration is protected. Who has more can be reached by those beyond."""
_NAMED = re.compile(rb"^\s*(?:path|excludesfile|attributesfile|hookspath|template)\s*=\s*\"?([^\"\n#;]+)", re.I | re.M)
"""Settings of git whose values are paths that it reads."""


def gather(
    workspace: Path, temp: Path, environ: Mapping[str, str], own: Sequence[Path], *, trusted_names: bool = True
) -> Facts:
    """The facts about a workspace. `own` are Covey's data, configuration and sockets. Blocks for some milliseconds.

    `environ` is that of the commands. Without `trusted_names` nothing is said of Covey's files in the workspace.
    """
    root = os.path.realpath(workspace)
    home = os.path.realpath(environ.get("HOME") or Path.home())
    system = _existing(places.SYSTEM)
    return Facts(
        workspace=root,
        temp=os.path.realpath(temp),
        system=(*system, *_toolchains(home, root, environ, system)),
        settings=_existing((*places.SETTINGS, *_matching(places.SETTINGS_PATTERNS))),
        etc=_existing(("/etc",)),
        devices=_existing(places.DEVICES),
        terminals=_existing(places.TERMINALS),
        kernel=_existing(places.KERNEL),
        git_settings=_git_settings(home, environ),
        tool_settings=(*_in_home(home, places.TOOL_SETTINGS), *_named(environ, places.CERTIFICATE_VARIABLES)),
        resolver=_existing(places.RESOLVER),
        caches=_caches(home, environ),
        credentials=(*_in_home(home, places.CREDENTIALS), *_named(environ, places.AGENT_VARIABLES)),
        secrets=_existing((*places.SECRETS, *_matching(places.SECRETS_PATTERNS))),
        covey=tuple(os.path.realpath(path) for path in own),
        guarded=tuple(f"{root}/{name}" for name in places.WORKSPACE_FILES) if trusted_names else (),
        repository=_repository(root),
    )


def looked_at_again(known: Facts) -> Facts:
    """The same facts with the repository as it is now: a command may have made one. Hardly blocks."""
    return replace(known, repository=_repository(known.workspace))


def top_links() -> tuple[tuple[str, str], ...]:
    """Links of the root directory that lead to parts of the system, as /bin does, with where they lead."""
    candidates = (path for path in places.SYSTEM if path.count("/") == 1 and os.path.islink(path))
    return tuple((path, os.readlink(path)) for path in candidates)


def _existing(paths: Iterable[str]) -> Paths:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))


def _matching(patterns: Iterable[str]) -> list[str]:
    return [path for pattern in patterns for path in glob.glob(pattern)]


def _in_home(home: str, names: Iterable[str]) -> Paths:
    return _existing(f"{home}/{name}" for name in names)


def _named(environ: Mapping[str, str], variables: Iterable[str]) -> Paths:
    """What exists of the paths in these variables."""
    named = (environ.get(name, "") for name in variables)
    return _existing(path for path in named if os.path.isabs(path))


# ── programs ──


def _toolchains(home: str, root: str, environ: Mapping[str, str], system: Paths) -> Paths:
    """Where programs are installed besides the system: places on PATH, and those that are known.

    Never the home itself or what is above it, nor what has the workspace in it: that would be far too much.
    """
    found = [*_in_home(home, places.TOOLCHAINS), str(Path(__file__).resolve().parents[1])]  # and our own code
    found += _named(environ, places.TOOLCHAIN_VARIABLES)
    for directory in (*environ.get("PATH", "").split(os.pathsep), os.path.dirname(sys.executable)):
        if os.path.isabs(directory) and os.path.isdir(directory):
            found += _installation(os.path.realpath(directory), home)
    return tuple(
        path
        for path in dict.fromkeys(found)
        if not is_within(home, path)
        and not is_within(root, path)
        and not is_within(path, root)
        and not any(is_within(path, part) for part in system)
    )


def _installation(directory: str, home: str) -> list[str]:
    """What belongs to a directory of programs: all that was installed with it, if it looks like that."""
    above = os.path.dirname(directory)
    found = [directory]
    is_prefix = any(os.path.exists(f"{above}/{name}") for name in ("pyvenv.cfg", "lib", "libexec"))
    if is_prefix and above not in (home, f"{home}/.local", f"{home}/.cargo"):
        found.append(above)
    for name in ("python", "python3", "node"):  # of a virtual environment: a link to the real one
        real = os.path.realpath(f"{directory}/{name}")
        if os.path.dirname(real) != directory and os.path.isfile(real) and real.count("/") > 3:
            found.append(os.path.dirname(os.path.dirname(real)))
    return found


def _caches(home: str, environ: Mapping[str, str]) -> Paths:
    """What exists, and what would be made by a program that is installed."""
    base = environ.get("XDG_CACHE_HOME", "")
    caches = base if os.path.isabs(base) else f"{home}/.cache"
    path = environ.get("PATH", os.defpath)
    found: list[str] = []
    for cache in places.CACHES:
        named = environ.get(cache.variable, "") if cache.variable else ""
        top = named if os.path.isabs(named) else cache.base.replace("$", f"{caches}/", 1)
        top = top if os.path.isabs(top) else f"{home}/{top}"
        installed = any(shutil.which(program, path=path) for program in cache.programs)
        for part in cache.below:
            place = os.path.realpath(f"{top}/{part}" if part else top)
            if os.path.exists(place) or (installed and not part.startswith(".")):
                found.append(place)
    return tuple(dict.fromkeys(place for place in found if not is_within(home, place)))


# ── git ──


def _git_settings(home: str, environ: Mapping[str, str]) -> Paths:
    """The user's own configuration of git, and the files that it names, but not where git keeps passwords."""
    base = environ.get("XDG_CONFIG_HOME", "")
    config = base if os.path.isabs(base) else f"{home}/.config"
    files = [f"{home}/.gitconfig", *(f"{config}/git/{name}" for name in ("config", "ignore", "attributes"))]
    named: list[str] = []
    for file in files[:2]:
        content = read_regular(os.path.realpath(file), _SMALL)
        for value in _NAMED.findall(content.data) if content else ():
            path = os.path.join(home, os.fsdecode(value).strip().replace("~/", f"{home}/", 1))
            if not is_within(home, os.path.realpath(path)):
                named.append(path)
    secret = _in_home(home, places.CREDENTIALS)
    return tuple(p for p in _existing((*files, *named)) if not any(is_within(p, s) for s in secret))


def _repository(root: str) -> GitPlaces:
    """The repository that the workspace is, or is a part of."""
    top = root
    while not os.path.lexists(f"{top}/.git"):
        above = os.path.dirname(top)
        if above == top:
            return GitPlaces()
        top = above
    dot_git = f"{top}/.git"
    git_dir = os.path.realpath(dot_git)
    protected = []
    if not os.path.isdir(git_dir):
        protected.append(dot_git)
        git_dir = _named_in(dot_git, b"gitdir:")
        if not git_dir:
            return GitPlaces(protected=(dot_git,))
    common = _named_in(f"{git_dir}/commondir", b"") or git_dir
    if not _belongs(dot_git, git_dir) or not os.path.isdir(f"{common}/objects"):
        return GitPlaces(protected=tuple(protected))
    for directory in dict.fromkeys((common, git_dir, *_modules(common))):
        protected += [f"{directory}/{name}" for name in ("config", "config.worktree", "commondir", "hooks")]
    return GitPlaces(tuple(dict.fromkeys((git_dir, common))), tuple(protected))


def _named_in(file: str, prefix: bytes) -> str:
    """The path that a file of git consists of; empty if it has none."""
    content = read_regular(file, _SMALL)
    if content is None or not content.data.startswith(prefix):
        return ""
    value = os.fsdecode(content.data.removeprefix(prefix).strip())
    path = os.path.realpath(os.path.join(os.path.dirname(file), value)) if value else ""
    return path if os.path.isdir(path) else ""


def _belongs(dot_git: str, git_dir: str) -> bool:
    """Whether the directory says itself that it is this work tree's. A file of a clone may name any."""
    if os.path.realpath(dot_git) == git_dir:
        return True
    content = read_regular(f"{git_dir}/gitdir", _SMALL)
    if content is not None:
        back = os.path.join(git_dir, os.fsdecode(content.data.strip()))
        return os.path.realpath(back) == os.path.realpath(dot_git)
    # A submodule: it lies in the repository above, and nobody can put one there by a clone.
    return "/.git/modules/" in git_dir and is_within(dot_git, git_dir.partition("/.git/modules/")[0])


def _modules(common: str) -> list[str]:
    """Repositories of submodules, also of those whose names have a slash, and of their own submodules."""
    escaped = glob.escape(f"{common}/modules")
    found = (os.path.dirname(p) for shape in ("*", "*/*", "*/modules/*") for p in glob.iglob(f"{escaped}/{shape}/HEAD"))
    return sorted(path for path in found if os.path.isdir(f"{path}/objects"))[:_MODULES]
