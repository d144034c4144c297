"""`make run`: one real prompt through a real server, watched by two clients, without a key. Leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.prompt import new_run_id, run_prompt
from covey.protocol.events import Event, MessageDelta
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete

CONFIG = """\
[models]
large = "demo/scripted"

[providers.demo]
type = "scripted"
models = [{ id = "scripted" }]
"""


def main(prompt: str) -> int:
    print("Covey: a server with two clients on one session. No key is set up, so the model is `scripted`: it replays")
    print("a text and does not think. Name a real one in covey.toml (docs/CONFIGURATION.md).\n")
    with tempfile.TemporaryDirectory(prefix="covey-tour-") as directory:
        return asyncio.run(_tour(Path(directory), prompt))


async def _tour(directory: Path, prompt: str) -> int:
    (directory / "covey-tour.toml").write_text(CONFIG)
    async with _server(directory) as address, Client.connect(address) as one, Client.connect(address) as two:
        print(f"server    listening on {address}")
        workspace = await one.create_workspace(str(directory))
        await two.create_workspace(str(directory))
        session = await one.create_session(workspace.id, "The tour")
        async with EventStream(two, workspace.id, session_id=session.id) as events:
            watching = asyncio.create_task(_watch(events))
            print(f"client 1  prompts: {prompt}\n")
            request = PostPrompt(session_id=session.id, prompt=prompt, run_id=new_run_id())
            terminal = await run_prompt(one, workspace.id, request, on_event=_show)
            seen, text = await asyncio.wait_for(watching, 10)
        same = "the same text" if text == terminal.text else "ANOTHER TEXT"
        print(f"\nclient 2  saw {seen} events, {same}, and the one terminal event of run {terminal.run_id}")
        print("\nNow try it yourself:  .venv/bin/covey run --help  ·  the tour in README.md uses nothing but curl")
        return 0 if terminal.error is None and text == terminal.text else 1


def _show(event: Event, _change: object) -> None:
    if isinstance(event.payload, MessageDelta):
        sys.stdout.write(event.payload.delta)
        sys.stdout.flush()


async def _watch(events: EventStream) -> tuple[int, str]:
    """Follow the session until its run ends; gives the number of events and the text put together from deltas."""
    pieces: list[str] = []
    seen = 0
    async for event in events:
        seen += 1
        if isinstance(event.payload, MessageDelta):
            pieces.append(event.payload.delta)
        elif isinstance(event.payload, RunComplete):
            break
    return seen, "".join(pieces)


@contextlib.asynccontextmanager
async def _server(directory: Path) -> AsyncIterator[str]:
    """A server of our own, on a socket in `directory`, until the tour is over."""
    arguments = ["-m", "covey", "serve", "--host", f"unix://{directory / 'covey.sock'}"]
    arguments += ["--data-dir", str(directory / "data"), "--config", str(directory / "covey-tour.toml")]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        if " on " not in line:
            raise SystemExit("the server did not start; `.venv/bin/covey serve` says why")
        yield line.rpartition(" on ")[2]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
