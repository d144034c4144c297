"""A sample of the dangerous lines is run with nobody judging them: what the sandbox alone stops.

`python -m tests.sandbox.corpus_runner` runs all of them; docs/SECURITY.md has what came out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest

from tests.permissions.dangerous_project import dangerous_lines
from tests.sandbox import isolation
from tests.sandbox.conftest import ABLE, needs_landlock, needs_view
from tests.sandbox.corpus_runner import CANNOT, Job, NoIsolation, Result, run, sample, stopped
from tests.sandbox.corpus_trap import How

pytestmark = needs_landlock

LINES = dangerous_lines()
SAMPLE = sample(LINES, 48)


def tried(numbers: Sequence[int], how: How) -> list[Result]:
    try:
        return list(run([Job(number, how) for number in numbers]))
    except NoIsolation as reason:
        pytest.skip(str(reason))


def not_stopped(results: Sequence[Result]) -> list[tuple[str, tuple[str, ...], str]]:
    failed = (result for result in results if not stopped(result))
    return [(LINES[result.number].line, result.harms, result.output) for result in failed]


def test_the_sample_has_each_harm_and_many_mechanisms() -> None:
    assert len({LINES[number].harm for number in SAMPLE}) == 8
    assert len({LINES[number].how for number in SAMPLE}) > 30


def test_nothing_is_run_where_the_isolation_has_a_hole() -> None:
    pretended = isolation.Outer(devices=0, file="/tmp/can-be-written-inside", port=1, abstract="nobody")
    command = [sys.executable, "-m", "tests.sandbox.corpus_runner", "--inside", msgspec.json.encode(pretended).decode()]
    jobs = msgspec.json.encode([Job(0, How.BARE)])
    done = subprocess.run(command, input=jobs, capture_output=True, cwd=isolation.SOURCE, check=False)
    assert done.returncode == CANNOT
    assert done.stdout == b""
    if b"No isolation here" in done.stderr:
        pytest.skip("this system has no isolation for us")
    assert b"nothing was run: ['a file outside can be written']" in done.stderr


def test_without_the_sandbox_the_lines_do_harm() -> None:
    """Not each does everywhere: programs may be missing."""
    results = tried(SAMPLE[:24], How.BARE)
    assert len(not_stopped(results)) > 12


@pytest.mark.skipif(ABLE.landlock < 6, reason="this kernel's Landlock cannot keep processes apart")
def test_what_nobody_was_asked_about_does_no_harm() -> None:
    """But print its own environment, which is not hidden from it."""
    results = tried([number for number in SAMPLE if LINES[number].harm != "env"], How.UNASKED)
    assert results
    assert not_stopped(results) == []


@needs_view
def test_what_was_approved_does_no_harm_outside() -> None:
    results = tried([number for number in SAMPLE if LINES[number].harm != "env"][:24], How.APPROVED)
    assert results
    assert not_stopped(results) == []
