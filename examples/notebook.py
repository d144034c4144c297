"""A whole Covey in one process, as in a notebook: a prompt, a stream, a permission, a second face, and a cancel.

In a notebook, leave out `main` and `asyncio.run`: each part is a cell, and `await` works as it stands.
"""

from __future__ import annotations

import asyncio
import sys

import covey


async def main() -> None:
    async with covey.open(".", temporary=True) as client:
        # A prompt, and its answer.
        answer = await client.ask("Which files are here?")
        print("answer:", answer.text)

        # A stream: the words as they come. The same session goes on.
        async for words in client.stream("And what are they for?", session=answer.session_id).text():
            print(words, end="", flush=True)
        print()

        # A permission: a function decides. Without one, it would be denied.
        def only_notes(request: covey.PermissionRequest) -> bool | covey.Deny:
            print("asked:", request.description)
            return "notes" in request.description or covey.Deny("only notes may be written")

        answer = await client.ask("Write a file with notes.", on_permission=only_notes)
        print("permission:", answer.text)

        # A second face on the same session: it sees what happens, and cancels.
        async with client.another(name="supervisor") as supervisor:
            story = client.stream("Tell me a very long story.")
            async for event in story:
                match event.payload:
                    case covey.MessageDelta(kind="text"):
                        await supervisor.cancel_run(supervisor.workspace_id, story.run_id)
            run = await supervisor.run(supervisor.workspace_id, story.run_id)
            print(f"cancel: {story.result.outcome} by {run.cancelled_by_client}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except covey.CoveyError as error:
        sys.exit(f"This stops here: {error}")
