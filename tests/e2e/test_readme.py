"""The tour in README.md, run as it stands there: only the port is another one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.machine import free_port

ROOT = Path(__file__).parents[2]


def test_the_tour_with_curl_works_as_it_is_written(tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- tour:start -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    for _ in range(3):  # the demo model speaks for two seconds: on a busy machine a cancel may come too late
        script = "".join(blocks).replace("8790", str(free_port()))
        result = subprocess.run(
            ["bash", "-e", "-u", "-c", script],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        if '"cancelled":true' in result.stdout:
            break
    assert '"cancelled":true' in result.stdout
    assert "both saw the same" in result.stdout
