"""What git says of a directory for a snapshot of it. It is asked in a stand-in, so nothing of the project runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from covey.context import git_index
from covey.context.snapshot import Blob, Listed, Snapshot
from covey.context.stand_in import (
    CAREFUL,
    GitOutput,
    GitRepository,
    Unreadable,
    copied_settings,
    find_git,
    find_root,
    head,
    open_repository,
    output,
    stand_in,
    stand_in_without,
)

FILES = 20_000
"""New and changed files that are looked at. A project with more of them has too few ignore rules, or is no project."""
FILE_BYTES = 1024 * 1024
"""Of one file: a larger one is known to have changed, but its content is not kept."""
CONTENTS_BYTES = 64 * 1024 * 1024
"""Of the contents that are read at once."""

_NAMES_BYTES = 8 * 1024 * 1024
_HEADER_BYTES = 200
"""Before and after each content that git gives out; more than an id, a type and a number have."""
_BREATH = 500
"""Files of an index that are read without a pause: half a millisecond."""
_NO_INDEX = Path("/nonexistent/covey-index")
_MODES = frozenset({0o100644, 0o100755, 0o120000})
"""Of files and links. Others are directories, and repositories inside of this one."""


class KnownSettings:
    """What of a repository's configuration is taken over, read again only when that file has changed."""

    def __init__(self) -> None:
        self._known: tuple[object, list[str]] | None = None

    def flags(self, git: str, repository: GitRepository, env: Mapping[str, str], deadline: float) -> list[str]:
        try:
            status = os.stat(repository.common_dir / "config")
        except OSError:
            return copied_settings(git, repository, env, deadline)
        key = (repository, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if self._known and self._known[0] == key:
            return self._known[1]
        flags = copied_settings(git, repository, env, deadline)
        if time.monotonic() < deadline:  # else git may have been cut off
            self._known = key, flags
        return flags


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """A directory, and the repository that it is in."""

    root: Path
    git: str
    repository: GitRepository | None
    commit: str
    settings: KnownSettings

    @property
    def top(self) -> Path:
        return self.repository.work_tree if self.repository else self.root

    @property
    def prefix(self) -> bytes:
        """From the top of the work tree to the root, with a slash; empty if they are the same."""
        return b"" if self.root == self.top else os.fsencode(self.root.relative_to(self.top)) + b"/"

    @property
    def oid_size(self) -> int:
        return 32 if len(self.commit) == 64 else 20


def find_place(root: Path, environ: Mapping[str, str], settings: KnownSettings) -> SnapshotPlace | None:
    """None: there is no git. A repository that cannot be read counts as none: then all files are new."""
    top = find_root(root)
    git = find_git(environ, top or root)
    if git is None:
        return None
    if top is not None:
        with contextlib.suppress(Unreadable, OSError):
            repository = open_repository(top)
            return SnapshotPlace(root, git, repository, head(repository)[1], settings)
    return SnapshotPlace(root, git, None, "", settings)


def list_loose(place: SnapshotPlace, index: Path | None, ignored: Collection[str], deadline: float) -> Listed | None:
    """What git calls changed, gone or new; None: it cannot say. `index`: a copy of the repository's."""
    excluded = [f"--exclude={name}" for name in sorted(ignored)]
    try:
        with _running(place, index, deadline) as run:
            raw = run("diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=all", "--relative")
            new = run("ls-files", "-z", "--others", "--exclude-standard", *excluded)
    except (Unreadable, OSError):
        return None
    return None if raw is None or new is None else _listed(raw, new)


def _listed(raw: GitOutput, new: GitOutput) -> Listed:
    fields = raw.data.split(b"\0")[:-1]  # what is not whole was cut off
    status = dict(zip(fields[1::2], fields[0::2], strict=False))
    names = new.data.split(b"\0")[:-1]
    known = sorted({path for path, meta in status.items()} | {name for name in names if not name.endswith(b"/")})
    ends = [known[FILES - 1]] if len(known) > FILES else []
    if not raw.is_whole:
        ends.append(fields[1::2][-1] if len(fields) > 1 else b"")
    if not new.is_whole:
        ends.append(names[-1] if names else b"")
    upto = min(ends, default=None)
    reached = known if upto is None else [path for path in known if path <= upto]
    gone = {path for path, meta in status.items() if meta.endswith(b"D")}
    return Listed(
        [path for path in reached if path not in gone],
        [path for path in reached if path in gone],
        upto,
        has_inner=any(name.endswith(b"/") for name in names),
    )


def tracked(place: SnapshotPlace, snapshot: Snapshot, wanted: Collection[bytes] | None) -> dict[bytes, Blob]:
    """The files below the root that git knew: these, or all (None). Raises BadIndex or OSError."""
    if snapshot.index is None:
        return {}
    prefix, start = place.prefix, len(place.prefix)
    found: dict[bytes, Blob] = {}
    for number, entry in enumerate(git_index.entries(snapshot.index.read_bytes(), place.oid_size)):
        if number % _BREATH == 0:
            time.sleep(0)  # this is a thread beside an event loop, which shares the interpreter with it
        path = entry.path[start:]
        if entry.path.startswith(prefix) and entry.mode in _MODES and (wanted is None or path in wanted):
            found[path] = Blob(entry.mode, entry.oid, entry.size)
    return found


def read_blobs(
    place: SnapshotPlace, index: Path | None, blobs: Mapping[bytes, Blob], deadline: float
) -> dict[bytes, bytes]:
    """Contents in git that are those on the disk to the byte: of the same size, and without a filter.

    git may convert a file when it takes it up: line ends, encodings, filters. All but a filter change its size.
    """
    small = {path: blob for path, blob in blobs.items() if blob.size <= FILE_BYTES}
    if not small or place.repository is None:
        return {}
    try:
        with _running(place, index, deadline) as run:
            attributes = run("check-attr", "-z", "--stdin", "filter", given=b"".join(path + b"\0" for path in small))
            if attributes is None:
                return {}
            plain = _unfiltered(attributes.data)
            oids = "".join(f"{blob.oid}\n" for blob in small.values()).encode()
            sizes = run("cat-file", "--batch-check=%(objectsize)", given=oids)
            said = sizes.data.split(b"\n") if sizes else []
            same = [
                (path, blob)
                for (path, blob), size in zip(small.items(), said, strict=False)
                if size == b"%d" % blob.size and path in plain
            ]
            return _contents(run, same)
    except (Unreadable, OSError):
        return {}


def _unfiltered(attributes: bytes) -> set[bytes]:
    fields = attributes.split(b"\0")[:-1]
    rows = zip(fields[0::3], fields[2::3], strict=False)
    return {path for path, value in rows if value in (b"unspecified", b"unset")}


def _contents(run: _Run, wanted: Sequence[tuple[bytes, Blob]]) -> dict[bytes, bytes]:
    chosen: list[tuple[bytes, Blob]] = []
    total = 0
    for path, blob in wanted:
        total += blob.size + _HEADER_BYTES
        if total > CONTENTS_BYTES:
            break
        chosen.append((path, blob))
    given = "".join(f"{blob.oid}\n" for _, blob in chosen).encode()
    written = run("cat-file", "--batch", given=given, limit=CONTENTS_BYTES) if chosen else None
    found: dict[bytes, bytes] = {}
    offset = 0
    for path, blob in chosen if written else []:
        assert written
        end = written.data.find(b"\n", offset)
        if written.data[offset:end] != f"{blob.oid} blob {blob.size}".encode():
            break  # not what it said before
        found[path] = written.data[end + 1 : end + 1 + blob.size]
        offset = end + blob.size + 2
    return found


class _Run:
    """Runs git, again and again, in one stand-in."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path, deadline: float) -> None:
        self._command = command
        self._env = env
        self._cwd = cwd
        self._deadline = deadline

    def __call__(self, *arguments: str, given: bytes = b"", limit: int = _NAMES_BYTES) -> GitOutput | None:
        return output([*self._command, *arguments], self._env, self._cwd, self._deadline, limit, given=given)


@contextmanager
def _running(place: SnapshotPlace, index: Path | None, deadline: float) -> Iterator[_Run]:
    with contextlib.ExitStack() as stack:
        flags: list[str] = []
        if place.repository is None:
            env = stack.enter_context(stand_in_without(place.root))
        else:
            env = stack.enter_context(stand_in(place.repository, place.commit, index or _NO_INDEX))
            flags = place.settings.flags(place.git, place.repository, env, deadline)
        yield _Run([place.git, *flags, *CAREFUL, "-c", "core.untrackedCache=false"], env, place.root, deadline)
