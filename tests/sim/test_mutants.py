"""Ten deliberate defects of different kinds: each is applied to a copy of the source and must be caught."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = Path(__file__).parent / "mutants"

CAUGHT_BY = {
    "lost_cancel": "core",
    "poisoned_idle_cancel": "core",
    "mark_off_by_one": "core",
    "stranded_queue": "core",
    "double_terminal": "shell",
    "late_error_after_terminal": "shell",
    "popped_then_lost_prompt": "crash",
    "replayed_prompt": "crash",
    "gap_in_the_sequence": "store",
    "leaked_process": "tools",
}


def hunt(layer: str, source: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.sim.hunt", layer]
    return subprocess.run(command, capture_output=True, text=True, cwd=source, env=env, check=False)


def test_every_patch_is_hunted() -> None:
    assert {path.stem for path in MUTANTS.glob("*.patch")} == CAUGHT_BY.keys()


@pytest.mark.heavy  # the explorations of this folder say the same
@pytest.mark.parametrize("layer", ["core", "shell", "crash"])
def test_without_a_defect_nothing_is_caught(layer: str) -> None:
    result = hunt(layer, ROOT / "src")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_deliberate_defect_is_caught(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    patch = ["patch", "--batch", "--strip=1", f"--input={MUTANTS / name}.patch"]
    applied = subprocess.run(patch, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, f"the patch does not fit any more: {applied.stdout}"
    result = hunt(CAUGHT_BY[name], tmp_path / "src")
    assert result.returncode == 1, f"{name} was not caught: {result.stdout}{result.stderr}"
    print(name, CAUGHT_BY[name], result.stdout.strip())
