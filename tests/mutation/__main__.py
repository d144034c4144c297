"""`make mutate`: change the core in every small way and see whether anybody notices.

    python -m tests.mutation                     # lifecycle/runs.py: nothing may survive
    python -m tests.mutation FILE [--jobs 2]     # any file of tests/mutation/nets.py

Each mutant is put into a copy of the source and given to the nets of its file, the fastest first. What survives is
printed; what is known to survive, and why, is in `KNOWN`. (mutmut 3.8, the library for this, does not work with the
pytest that we use.)
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.nets import KNOWN, NETS

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
"""A mutant that makes a test hang is caught as well."""


def survives(mutant: Mutant, file: str, directory: Path) -> bool:
    source = directory / "src"
    if not source.exists():
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    target = source / "covey" / file
    target.write_text(mutant.source)
    path = os.pathsep.join([str(source), str(ROOT)])
    env = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/null",
    }
    for net in NETS[file]:
        command = [sys.executable, "-m", *net]
        try:
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode:
            return False
    return True


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="lifecycle/runs.py", choices=sorted(NETS))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args(argv)
    found = list(mutants((ROOT / "src" / "covey" / args.file).read_text()))
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(args.jobs) as pool:
        lanes = [Path(directory) / str(number) for number in range(args.jobs)]

        def judge(numbered: tuple[int, Mutant]) -> bool:
            lane = lanes.pop()
            try:
                return survives(numbered[1], args.file, lane)
            finally:
                lanes.append(lane)
                if numbered[0] % 20 == 0:
                    print(f"{numbered[0]} of {len(found)}", file=sys.stderr, flush=True)

        alive = [m for m, survived in zip(found, pool.map(judge, enumerate(found)), strict=True) if survived]
    unknown = [mutant for mutant in alive if mutant.name not in KNOWN]
    for mutant in alive:
        print(f"survived: {mutant.name}" + (f"   (known: {KNOWN[mutant.name]})" if mutant.name in KNOWN else ""))
    print(f"{args.file}: {len(found)} mutants, {len(found) - len(alive)} caught, {len(unknown)} unexplained survivors")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
