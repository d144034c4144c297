"""A language server that does what its first argument says. Its second names a file for its notes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

MODE, NOTES = sys.argv[1], sys.argv[2]
texts: dict[str, tuple[int, str]] = {}


def note(text: str) -> None:
    with open(NOTES, "a") as file:
        file.write(text + "\n")


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def read() -> dict[str, Any]:
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    if not length:
        leave()
    return dict(json.loads(sys.stdin.buffer.read(length)))


def leave() -> None:
    while MODE == "stays":
        signal.pause()
    sys.exit(0)


def complaints(text: str) -> list[dict[str, Any]]:
    at = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    return [
        {"range": at, "severity": 1, "message": f"there is {word}"} for word in text.split() if word.startswith("BAD")
    ]


def push(uri: str, text: str, version: int | None) -> None:
    params = {"uri": uri, "diagnostics": complaints(text), **({"version": version} if version else {})}
    send(method="textDocument/publishDiagnostics", params=params)


def took(uri: str, version: int, text: str) -> None:
    before = texts.get(uri, (0, ""))[1]
    texts[uri] = (version, text)
    if MODE == "crash":
        sys.stderr.write("it was too much\n")
        os._exit(3)
    if MODE == "push":
        push(uri, before, version - 1)  # about the text before: nobody may be shown it
        push(uri, text, version)
    elif MODE == "unversioned":
        push(uri, before + " BADold", None)
        push(uri, text, None)


def answer(method: str, params: dict[str, Any]) -> Any:
    uri = params.get("textDocument", {}).get("uri", "")
    if method == "textDocument/diagnostic":
        return {"kind": "full", "items": complaints(texts[uri][1])}
    if method == "textDocument/rename" and MODE == "two files":
        at = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
        second = uri.replace("a.odd", "../out.odd" if params["newName"] == "out" else "b.odd")
        return {"changes": {each: [{"range": at, "newText": params["newName"]}] for each in (uri, second)}}
    if method == "textDocument/rename":
        shift = 1 if MODE == "wrong columns" else 0
        encoding, width = ("utf-8", 1) if MODE == "counts bytes" else ("utf-16-le", 2)
        asked, lines = params["position"], texts[uri][1].split("\n")
        note(f"asked at {lines[asked['line']].encode(encoding)[asked['character'] * width :].decode(encoding)[:3]}")
        edits = []
        for number, line in enumerate(lines):
            column = len(line[: line.index("old")].encode(encoding)) // width + shift if "old" in line else -1
            if column >= 0:
                start, end = {"line": number, "character": column}, {"line": number, "character": column + 3}
                edits.append({"range": {"start": start, "end": end}, "newText": params["newName"]})
        return {"changes": {uri: edits}}
    return None


def start(number: Any) -> None:
    if MODE == "asks":
        for asked, method in enumerate(("workspace/configuration", "window/workDoneProgress/create", "what/is/this")):
            send(id=f"q{asked}", method=method, params={"items": [{"section": "odd.name"}]})
            note(json.dumps(read(), sort_keys=True))
    able: dict[str, Any] = {"textDocumentSync": 1, "renameProvider": True}
    if MODE in ("names an encoding", "counts bytes"):
        able["positionEncoding"] = "utf-8"
    send(id=number, result={"capabilities": able})


def main() -> None:
    note(f"started {os.getpid()}")
    if MODE == "shim":
        sys.stderr.write("error: the component is not installed\n")
        sys.exit(1)
    if MODE == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
        note(f"started {left.pid}")
    while True:
        message = read()
        method, params = message.get("method", ""), message.get("params") or {}
        note(method)
        if MODE == "silent" and "id" in message:
            continue
        if method == "initialize":
            start(message["id"])
        elif method == "initialized" and MODE == "pull":
            send(
                id="r",
                method="client/registerCapability",
                params={"registrations": [{"id": "1", "method": "textDocument/diagnostic"}]},
            )
        elif method == "textDocument/didOpen":
            took(params["textDocument"]["uri"], params["textDocument"]["version"], params["textDocument"]["text"])
        elif method == "textDocument/didChange":
            took(params["textDocument"]["uri"], params["textDocument"]["version"], params["contentChanges"][0]["text"])
        elif method == "exit":
            leave()
        elif "id" in message and method:
            send(id=message["id"], result=answer(method, params))


main()
