"""The official conformance suite of MCP against `covey mcp serve --http`.

Scenarios that want a test server with tools, prompts and resources of their own (`test_simple_text` and so on) do not
apply: these here are all that are about a server as such. The suite knows no tokens, so a proxy adds ours.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import Home
from tests.extensions.npm import program
from tests.mcp_server.test_mcp_sdk import HttpServer

SCENARIOS = [
    ("server-initialize", "2025-06-18"),
    ("server-initialize", "2025-11-25"),
    ("server-session-lifecycle", "2025-11-25"),
    ("ping", "2025-11-25"),
    ("tools-list", "2025-11-25"),
    ("tools-list", "2026-07-28"),
    ("resources-list", "2025-11-25"),
    ("resources-list", "2026-07-28"),
    ("server-stateless", "2026-07-28"),
    ("sep-2164-resource-not-found", "2026-07-28"),
    ("caching", "2026-07-28"),
    ("http-header-validation", "2026-07-28"),
    ("dns-rebinding-protection", "2025-11-25"),
    ("dns-rebinding-protection", "2026-07-28"),
]


class TokenProxy:
    """Passes everything on, with our token in each request."""

    def __init__(self, url: str, token: str) -> None:
        where = urlsplit(url)
        self._to = (where.hostname or "", where.port or 0)
        self._header = b"\r\nAuthorization: Bearer " + token.encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{where.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                for source, sink, adds in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._pass_on, args=(source, sink, adds), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, adds: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(re.sub(rb"(?i)\r\nhost:", self._header + rb"\r\nhost:", data) if adds else data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def url(shared_home: Home) -> Iterator[str]:
    server = HttpServer(shared_home)
    proxy = TokenProxy(server.url, server.token)
    yield proxy.url
    proxy.close()
    assert server.close() == 0


NOT_HERE = {
    "sep-2549-prompts-list-caching-hints": "it has no prompts",
    "sep-2575-server-rejects-undeclared-capability": "wants the tool test_missing_capability",
    "sep-2575-missing-capability-http-400": "wants the tool test_missing_capability",
    "sep-2575-http-server-no-independent-requests-on-stream": "wants the tool test_streaming_elicitation",
    "sep-2575-server-no-log-without-loglevel": "wants the tool test_logging_tool",
}
"""Checks that fail because they are about something that this server does not have, and does not announce."""
_CHECK = re.compile(r"\[([\w-]+) *\] (SUCCESS|FAILURE|WARNING)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("scenario", "version"), SCENARIOS)
def test_a_scenario_passes(url: str, scenario: str, version: str) -> None:
    command = [*program("@modelcontextprotocol/conformance", "conformance"), "server", "--url", url]
    command += ["--scenario", scenario, "--spec-version", version]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    said = _COLOURS.sub("", done.stdout)
    checks = _CHECK.findall(said)
    succeeded = [name for name, outcome in checks if outcome == "SUCCESS"]
    failed = {name for name, outcome in checks if outcome == "FAILURE"}
    print(f"{scenario} {version}: {len(succeeded)} of {len(checks)} checks")
    assert succeeded and failed <= NOT_HERE.keys(), said[:6000] + done.stderr[-2000:]
