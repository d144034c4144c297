"""What commands do in projects works when it was approved, unchanged: files, processes, terminals, small servers."""

from __future__ import annotations

import pytest

from tests.sandbox.conftest import Place, needs_landlock
from tests.sandbox.work import PYTHON, Work, check

pytestmark = [pytest.mark.anyio, needs_landlock]

SERVER = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/a.txt").read().decode())
"""
POOL = """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(abs, range(-5, 5))))
"""
MANAGER = """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        print(len(manager.dict(a=1)))
"""
SHARED = """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=9)
memory.buf[0] = 42
print(memory.buf[0])
memory.close()
memory.unlink()
"""
BUILD = "all:\n\techo 'echo built' > built\n\tchmod +x built\n"

WORK = {
    "make": Work("make && ./built", "built", "make", {"Makefile": BUILD}),
    "bytecode": Work(f"{PYTHON} -c 'import m' && ls __pycache__", "m.cpython", files={"m.py": "X = 1\n"}),
    "archive": Work("tar czf x.tgz src && mkdir o && tar xzf x.tgz -C o && cat o/src/main.py", "hello"),
    "temporary files": Work("f=$(mktemp) && echo 42 > $f && d=$(mktemp -d) && cp $f $d/x && cat $d/x", "42"),
    "/tmp": Work("echo 42 > /tmp/log && cat /tmp/log", "42", view_only=True),
    "here-document": Work('cat <<< "$(seq 100000)" | tail -1', "100000"),
    "big sort": Work("seq 50000 | tac | sort -n -S 100K | tail -1", "50000"),
    "terminal": Work(f'{PYTHON} -c \'import pty; pty.spawn(["echo", "on a terminal"])\'', "on a terminal"),
    "shared memory": Work(f"{PYTHON} s.py", "42", files={"s.py": SHARED}),
    "processes": Work(f"{PYTHON} p.py", "25", files={"p.py": POOL}),
    "a server of its own": Work(f"{PYTHON} s.py", "alpha", files={"s.py": SERVER}, view_only=True),
    "sockets of its own": Work(f"{PYTHON} m.py", "1", files={"m.py": MANAGER}, view_only=True),
    "asyncio": Work(f"{PYTHON} -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, 42)))'", "42"),
    "sqlite": Work(f'{PYTHON} -c \'import sqlite3; sqlite3.connect("x").execute("create table t (a)")\' && ls x', "x"),
    "background": Work("(trap 'echo caught' TERM; kill -TERM $BASHPID); sleep 0.01 & wait $! && echo waited", "waited"),
    "permissions": Work("chmod 600 a.txt && touch -d @0 a.txt && stat -c '%a %Y' a.txt", "600 0"),
    "strace": Work("strace -o t.out true && grep -c exit_group t.out", "1", "strace"),
    "perl": Work("perl -pi -e 's/alpha/omega/' a.txt && cat a.txt", "omega", "perl"),
    "node": Work('node -e \'require("fs").writeFileSync("o", "42")\' && cat o', "42", "node"),
    "docker's absence": Work("docker ps || echo no docker", "no docker", "docker"),
}


@pytest.mark.parametrize("name", [*WORK])
@pytest.mark.parametrize("how", ["view", "landlock"])
async def test_it_works_approved(place: Place, monkeypatch: pytest.MonkeyPatch, how: str, name: str) -> None:
    await check(WORK[name], place, monkeypatch, how)
