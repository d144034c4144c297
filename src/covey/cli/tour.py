"""`make run`: one real prompt through a real server, watched by two clients; needs no key and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.prompt import new_run_id, run_prompt
from covey.config.defaults import resolve, with_defaults
from covey.config.load import load
from covey.config.probe import probe
from covey.protocol.events import Event, MessageDelta, PermissionRequest
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete

CONFIG_NAME = "covey-tour.toml"
CONFIG = """\
[models]
large = "demo/scripted"

[providers.demo]
type = "scripted"
models = [{ id = "scripted" }]
"""


NO_MODEL = """\
No model is set up, so it is `scripted`: it replays a text and does not think. Name a real one in the configuration
file of your own (docs/CONFIGURATION.md), or set OPENAI_API_KEY.
"""


def main() -> int:
    prompt = os.environ.get("COVEY_PROMPT", "").strip() or "Say hello, and tell me what Covey is."
    try:
        with tempfile.TemporaryDirectory(prefix="covey-tour-") as directory:
            return asyncio.run(_tour(Path(directory), prompt))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own last flush is quiet
        return 0


async def _tour(directory: Path, prompt: str) -> int:
    model = resolve(await with_defaults(load(None, None, os.environ).config, os.environ, probe), "large")
    print("Covey: a server with two clients on one session.")
    print(f"The model is {model.provider_id}/{model.model.id}.\n" if model else NO_MODEL)
    if model is None:
        (directory / CONFIG_NAME).write_text(CONFIG)
    async with _server(directory) as address, Client.connect(address) as one, Client.connect(address) as two:
        print(f"server    listening on {address}")
        workspace = await one.create_workspace(str(directory))
        await two.create_workspace(str(directory))
        session = await one.create_session(workspace.id, "The tour")
        async with EventStream(two, workspace.id, session_id=session.id) as events:
            watching = asyncio.create_task(_watch(two, workspace.id, events))
            print(f"client 1  prompts: {prompt}\n")
            request = PostPrompt(session_id=session.id, prompt=prompt, run_id=new_run_id())
            terminal = await run_prompt(one, workspace.id, request, on_event=_show)
            seen, text = await asyncio.wait_for(watching, 10)
    if terminal.error:
        print(f"\nthe run failed: {terminal.error}")
        return 1
    same = "the same text" if text == terminal.text else "ANOTHER TEXT"
    print(f"\nclient 2  saw {seen} events, {same}, and the one terminal event of run {terminal.run_id}")
    print("\nNow try it yourself:  .venv/bin/covey run --help  ·  the tour in README.md uses nothing but curl")
    return 0 if text == terminal.text else 1


def _show(event: Event, _change: object) -> None:
    if isinstance(event.payload, MessageDelta) and event.payload.kind == "text":
        sys.stdout.write(event.payload.delta)
        sys.stdout.flush()


async def _watch(client: Client, workspace_id: str, events: EventStream) -> tuple[int, str]:
    """Follow the session until its run ends, and allow what it asks for: the tour's directory is empty.

    Gives the number of events, and the last message's text put together from deltas.
    """
    texts: dict[str, str] = {}
    seen = 0
    async for event in events:
        seen += 1
        match event.payload:
            case MessageDelta(message_id=message_id, kind="text", delta=delta):
                texts[message_id] = texts.get(message_id, "") + delta
            case PermissionRequest(id=request_id, tool_name=tool, description=description):
                print(f"\nclient 2  allows {tool}: {description}\n")
                await client.answer_permission(workspace_id, request_id, "allow")
            case RunComplete(message_id=message_id):
                return seen, texts.get(message_id, "")
    return seen, ""


@contextlib.asynccontextmanager
async def _server(directory: Path) -> AsyncIterator[str]:
    """A server of our own, on a socket in `directory`, until the tour is over."""
    arguments = ["-m", "covey", "serve", "--host", f"unix://{directory / 'covey.sock'}"]
    arguments += ["--data-dir", str(directory / "data")]
    if (directory / CONFIG_NAME).exists():
        arguments += ["--config", str(directory / CONFIG_NAME)]
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
    sys.exit(main())
