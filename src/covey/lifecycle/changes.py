"""What a session has changed, as its recorded changes say: by file, and of each file by turn. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from covey.lifecycle.undo import NOT_KEPT, UNSURE, FileStep, chains, restored_bit, stays
from covey.protocol.changes import FileStatus, Maker

Chain = Sequence[FileStep]
"""Changes of one file that follow each other."""

OWN_COMMAND = "it was a command of a person, which belongs to no turn"


def by_file(steps: Iterable[FileStep], undone: Collection[str]) -> dict[str, Chain]:
    """The chain of each file that is not what it was, by its path. What was undone does not count."""
    found = chains(step for step in steps if step.run_id not in undone)
    return {path: chain for path, chain in sorted(found.items()) if status(chain)}


def by_turn(chain: Chain) -> list[Chain]:
    """A file's chain, cut where another turn, or another command of a person, went on with it."""
    turns: list[list[FileStep]] = []
    for step in chain:
        if turns and _turn(turns[-1][-1]) == _turn(step):
            turns[-1].append(step)
        else:
            turns.append([step])
    return [turn for turn in turns if status(turn)]


def _turn(step: FileStep) -> str:
    return step.run_id or step.message_id


def status(chain: Chain) -> FileStatus | None:
    """None: nothing is different after it."""
    before, after = chain[0].before, chain[-1].after
    if before == after:
        return None if before is None or restored_bit(chain) is None else "modified"
    if before is None:
        return "added"
    return "deleted" if after is None else "modified"


def became_executable(chain: Chain) -> bool | None:
    """Whether the file may be executed now, if that is different from before."""
    could = restored_bit(chain)
    return None if could is None else not could


def renamed(files: Mapping[str, Chain]) -> dict[str, str]:
    """New name → old name, of files that are gone and there again with the same content and no other twin."""
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    for path, chain in files.items():
        if chain[-1].after is None:
            gone.setdefault(chain[0].before or "", []).append(path)
        elif chain[0].before is None:
            come.setdefault(chain[-1].after, []).append(path)
    pairs = ((come[content], gone[content]) for content in come.keys() & gone.keys())
    return {new[0]: old[0] for new, old in pairs if len(new) == len(old) == 1}


def makers(chain: Chain) -> tuple[Maker, ...]:
    """Each once, in their order."""
    found = dict.fromkeys((step.origin.made_by, step.origin.label) for step in chain)
    return tuple(Maker(made_by=made_by, label=label) for made_by, label in found)


def why_not_undone(chain: Chain) -> str:
    """Why an undo of the turn would not restore the file, as far as that does not depend on what is there now."""
    if not chain[0].run_id:
        return OWN_COMMAND
    if why := stays(chain, chain[-1].after):
        return why
    if not chain[0].before_kept:
        return NOT_KEPT
    return "" if all(step.origin.is_sure for step in chain) else UNSURE
