"""The tour in README.md, run as it stands there: only the port is another one."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tour_with_curl_works_as_it_is_written(tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- tour:start -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = "".join(blocks).replace("8790", str(port))
    result = subprocess.run(
        ["bash", "-e", "-u", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert '"cancelled":true' in result.stdout
    assert "both saw the same" in result.stdout
