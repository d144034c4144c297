"""The findings of a review, each tried as it was described: `python -m tests.security.table TREE [TREE…] [--only S10]`.

For each tree of sources a real server is started for each finding. What is printed is what was seen, and whether the
finding still holds (OPEN) or not (closed). Nothing but loopback is used.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.security.place import Place, place

Seen = tuple[bool, str]
"""Whether it still holds, and what was seen."""


def bash(command: str) -> list[list[dict[str, Any]]]:
    return [[{"tool": "bash", "input": {"command": command}}], [{"text": "Done."}]]


def tool(name: str, **given: Any) -> list[list[dict[str, Any]]]:
    return [[{"tool": name, "input": given}], [{"text": "Done."}]]


def rules(**lists: list[str]) -> str:
    return "[permissions]\n" + "".join(f"{name} = {json.dumps(rule)}\n" for name, rule in lists.items())


def unasked(here: Place, text: str, what: str) -> Seen:
    """Whether it happened, or was read, without a question."""
    asked, said = here.go()
    done = text in said and not asked
    return done, f"{what}: {'unasked' if done else 'asked' if asked else 'refused'}"


def s10(here: Place) -> Seen:
    paths = [here.home / ".bashrc", here.project / ".git/hooks/pre-commit", here.base / "config.toml"]
    steps = [[{"tool": "write", "input": {"file_path": str(path), "content": "PWNED"}} for path in paths]]
    here.start([*steps, [{"text": "Done."}]], rules(allow=["edit", "write"]))
    asked, _ = here.go()
    written = [path.name for path in paths if path.exists() and "PWNED" in path.read_text()]
    return bool(written), f"written by allow = [write]: {written}; asked {len(asked)} times"


def s11(here: Place) -> Seen:
    (here.project / "docs").mkdir()
    here.start(tool("write", file_path="docs/notes.md", content="hello"))

    def turned(_: Any) -> str:
        (here.project / "docs").rename(here.project / "old")
        (here.project / "docs").symlink_to(here.outside)
        return "allow"

    here.go(turned)
    gone = (here.outside / "notes.md").exists()
    return gone, "written outside" if gone else "not written through the link"


def s12(here: Place) -> Seen:
    command = "\n".join(["make test", *(f"# {n}" for n in range(45)), "rm -rf HIDDENVICTIM", "x=(a b)"])
    here.start(bash(command))
    screen = here.terminal("run", "--host", f"unix://{here.socket}", "go", stop="HIDDENVICTIM")
    return "HIDDENVICTIM" not in screen, f"its end is {'' if 'HIDDENVICTIM' in screen else 'not '}on the screen"


def s13(here: Place) -> Seen:
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    here.env |= dict.fromkeys(names, "CANARY-KEY-0123456789")
    here.start(bash("env"), rules(allow=["bash:env"]))
    _, said = here.go(lambda _: "allow")
    leaked = [name for name in names if f"{name}=CANARY" in said]
    return bool(leaked), f"providers' keys in `env`: {leaked}"


APPROVER = """
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(sys.argv[1])
c = C("localhost"); c.request("POST", sys.argv[2], '{"skip": true}', {"Content-Type": "application/json"})
print("STATUS", c.getresponse().status)
"""


def s14(here: Place) -> Seen:
    (here.project / "test.py").write_text(APPROVER)
    here.start()
    words = f"python3 test.py {here.socket} {here.of('permissions/skip')}"
    replies = {"replies": [{"when": "go", "steps": bash(words)}]}
    (here.base / "script.json").write_text(json.dumps(replies))
    here.go(lambda _: "allow")
    on = here.call("GET", here.of("permissions/skip"))[1]["skip"]
    return bool(on), f"yolo is {'on' if on else 'off'} after one approved program"


def s15(here: Place) -> Seen:
    here.start([[{"text": "a \x1b]0;PWNED\x07 b \x1b[2J c"}]])
    session = here.session()
    here.call("POST", here.of("agent"), {"session_id": session, "prompt": "go", "run_id": "r1"})
    while here.call("GET", here.of("runs/r1"))[1]["state"] != "completed":
        time.sleep(0.05)
    screen = here.terminal("sessions", "export", session, "--host", f"unix://{here.socket}", stop="\0")
    return "\x1b]0;" in screen, "escapes arrived" if "\x1b]0;" in screen else "plain text"


def s16(here: Place) -> Seen:
    (here.project / "link").symlink_to(here.outside / "secret.txt")
    return unasked(here.start(bash("cat link")), "CANARY-OUTSIDE", "`cat link` to a file outside")


def s17(here: Place) -> Seen:
    command = f"printf '{here.outside}\\0' | du -a --files0-from=-"
    return unasked(here.start(bash(command)), "outside/secret.txt", "a tree outside, listed by du --files0-from")


def s18(here: Place) -> Seen:
    (here.project / ".env").write_text("KEY=CANARY-ENV\n")
    ways = [bash("cat .[^a]nv"), bash("find . -name .env -exec cat {} +"), tool("view", file_path=".env")]
    here.start([step for way in ways for step in way[:1]] + [[{"text": "Done."}]])
    asked, said = here.go()
    shown = said.count("CANARY-ENV")
    return shown > 0, f".env shown {shown} times, asked {len(asked)} times for 3 ways"


def s19(here: Place) -> Seen:
    (here.base / "config.toml").write_text("")
    here.env["COVEY_TOKEN"] = "t" * 40
    port = int(here.serve("--host", "tcp://127.0.0.1:0", "--data-dir", str(here.data)).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.settimeout(40)
        start = time.monotonic()
        try:
            silent.sendall(b"GET / HTTP/1.1\r\n")
            closed = silent.recv(1000) is not None
        except TimeoutError:
            closed = False
        after = f"{time.monotonic() - start:.0f} s"
        return not closed, f"half a head: {'answered or closed' if closed else 'still open'} after {after}"


def s20(here: Place) -> Seen:
    (here.base / "config.toml").write_text("")
    here.data.mkdir()
    here.data.chmod(0o777)
    said = here.serve("--host", f"unix://{here.socket}", "--data-dir", str(here.data))
    return "listening" in said, f"a data directory with 0777: {said.strip()[:60]}"


def s21(here: Place) -> Seen:
    (here.base / "config.toml").write_text("")
    here.env["COVEY_TOKEN"] = "x"
    said = here.serve("--host", "tcp://0.0.0.0:0", "--data-dir", str(here.data))
    log = (here.base / "log").read_text()
    silent = "listening" in said and "other machines" not in log
    return silent, f"0.0.0.0 with a token of one character: {'no word' if silent else (log or said).strip()[:70]}"


def s22(here: Place) -> Seen:
    here.start([[{"text": "a\u202eb"}, {"tool": "bash\nFAKE LINE", "input": {}}], [{"text": "Done."}]])
    screen = here.terminal("run", "--host", f"unix://{here.socket}", "go", stop="Done.")
    lines = [line for line in screen.splitlines() if line.strip().startswith("FAKE LINE")]
    return bool(
        lines
    ) or "\u202e" in screen, f"a line of its own: {bool(lines)}; U+202E on the screen: {chr(0x202E) in screen}"


def s23(here: Place) -> Seen:
    spellings = ["git -C . push", "git --no-pager push", "R=rm; $R -rf x", "echo x | tee .env", "cp a .env"]
    steps = [bash(line)[0] for line in spellings]
    here.start([*steps, [{"text": "Done."}]], rules(deny=["bash:git push*", "bash:rm *", "bash:> .env"]))
    here.call("POST", here.of("permissions/skip"), {"skip": True})
    _, said = here.go()
    denied = said.count(" forbids it")
    return denied < len(spellings), f"{denied} of {len(spellings)} spellings denied"


def s24(here: Place) -> Seen:
    target = here.project / "profile"
    here.start(bash(f"git log -1 --format=format:%s --output={target}"), rules(allow=["bash:git log*"]))
    asked, _ = here.go()
    return target.exists() and not asked, f"git log --output: {'written unasked' if target.exists() else 'not written'}"


class _Pages(http.server.BaseHTTPRequestHandler):
    target = ""

    def do_GET(self) -> None:
        self.send_response(302 if self.target else 200)
        if self.target:
            self.send_header("Location", self.target)
        self.end_headers()
        self.wfile.write(b"" if self.target else b"CANARY-PORT-B")

    def log_message(self, *_: Any) -> None:
        pass


def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> int:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def s25(here: Place) -> Seen:
    second = serving(type("B", (_Pages,), {}))
    first = serving(type("A", (_Pages,), {"target": f"http://127.0.0.1:{second}/"}))
    here.start(tool("fetch", url=f"http://127.0.0.1:{first}/", format="text"))
    asked, said = here.go(lambda _: "allow")
    read = "CANARY-PORT-B" in said
    return read and len(
        asked
    ) < 2, f"the page of another port: {'read' if read else 'not read'}, asked {len(asked)} times"


def s26(here: Place) -> Seen:
    here.start()
    session = here.session()
    for path in here.data.iterdir():
        if path.name.startswith("covey.db"):
            path.unlink()
    status, _ = here.call("POST", here.of("agent"), {"session_id": session, "prompt": "go", "run_id": "r1"})
    return status == 202, f"a prompt after the database was deleted: {status}"


def s27(here: Place) -> Seen:
    here.start()
    status, _ = here.call("POST", here.of("sessions"), {"title": "x" * 3_000_000})
    for _ in range(3):
        here.session()
    pages = len(here.call("GET", here.of("sessions?limit=2"))[1])
    return status < 300 or pages > 2, f"a title of 3 MB: {status}; limit=2 gives {pages} sessions"


def s28(here: Place) -> Seen:
    here.start()
    head, _ = here.call("GET", "/v1/health", headers={"X-Long": "x" * 70_000})
    stop = here.of(f"agent/sessions/{here.session()}/cancel")
    typed, _ = here.call("POST", stop, b"<a/>", {"Content-Type": "text/xml"})
    return head == 200 or typed != 415, f"a head of 70 KB: {head}; a body of XML where none is taken: {typed}"


class _Provider(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if "deep" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b'data: {"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n\n")
        else:
            self.send_response(404)
            self.end_headers()
            self.wfile.write(json.dumps({"error": {"message": f"no such path {self.path}"}}).encode())

    def log_message(self, *_: Any) -> None:
        pass


def provider(here: Place, path: str) -> str:
    url = f"http://127.0.0.1:{serving(_Provider)}{path}"
    extra = f'[providers.p]\ntype = "openai-compatible"\nbase_url = "{url}"\nmodels = [{{ id = "m" }}]\n'
    here.start(extra=extra, model="p/m")
    return here.go()[1]


def s29(here: Place) -> Seen:
    said = provider(here, "/v1?q=CANARY-QUERY")
    return (
        "CANARY-QUERY" in said,
        f"?q= of the base_url in an error: {'shown' if 'CANARY-QUERY' in said else 'not shown'}",
    )


def s30(here: Place) -> Seen:
    fake = here.project / "bash"
    fake.write_text(f"#!/bin/sh\ntouch {here.project}/pwned\n")
    fake.chmod(0o755)
    here.env["PATH"] = f".:{here.project}:{here.env['PATH']}"
    here.start(bash("echo hi"))
    here.go()
    ran = (here.project / "pwned").exists()
    return ran, f"the project's ./bash {'ran' if ran else 'did not run'}"


def s31(here: Place) -> Seen:
    said = provider(here, "/deep/v1")
    return (
        "RecursionError" in said,
        "an internal RecursionError" if "RecursionError" in said else "a sentence about the provider",
    )


QUEUED = 2_000


def s32(here: Place) -> Seen:
    here.start(extra=f"[limits]\nqueue_per_session = {QUEUED + 1}\n")
    session = here.session()

    def post(number: int) -> None:
        body = {"session_id": session, "prompt": "wait", "run_id": f"{uuid.uuid4()}"}
        assert here.call("POST", here.of("agent"), body)[0] == 202, number

    costs = []
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4):
            before = here.cpu_s()
            list(pool.map(post, range(QUEUED // 4)))
            costs.append((here.cpu_s() - before) / (QUEUED // 4) * 1e3)
    before = here.cpu_s()
    here.call("POST", here.of(f"agent/sessions/{session}/cancel"))
    cancel = here.cpu_s() - before
    each = f"{costs[0]:.1f} ms of CPU each in the first quarter, {costs[3]:.1f} in the last"
    return costs[3] > 1.5 * costs[0], f"{QUEUED:,} prompts: {each}; a cancel of all {cancel:.1f} s"


FINDINGS: Mapping[str, Callable[[Place], Seen]] = {
    f.__name__.upper(): f
    for f in (s10, s11, s12, s13, s14, s15, s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30)
} | {"S31": s31, "S32": s32}


def tried(name: str, source: Path) -> str:
    with place(source) as here:
        try:
            is_open, seen = FINDINGS[name](here)
        except Exception as error:
            return f"could not be tried: {type(error).__name__}: {error}"
        return f"{'OPEN' if is_open else 'closed'} · {seen}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--only", action="append", choices=[*FINDINGS])
    given = parser.parse_args()
    for tree in given.trees:
        commit = subprocess.run(
            ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
        print(f"{tree}: {commit.stdout.strip()}")
    for name in given.only or FINDINGS:
        print(f"| {name} | {' | '.join(tried(name, tree.resolve()) for tree in given.trees)} |", flush=True)


if __name__ == "__main__":
    os.umask(0o022)
    main()
