"""A check for CI: the agent may look, and run the commands that are listed here. Everything else is denied, and told.

Exits with 0 if it ends with the word PASS, with 1 if it does not, and with 2 if there is no answer.
"""

from __future__ import annotations

import asyncio
import sys

import covey

PROMPT = "Run the tests. If any fails, say which and why. End your answer with a line that says PASS or FAIL."
RULES = ["bash:python -m pytest*", "bash:git diff*"]


async def main() -> int:
    try:
        async with covey.open(".", temporary=True) as client:
            answer = await client.ask(PROMPT, allow=RULES, max_steps=30, timeout=900)
    except covey.CoveyError as error:  # no model, no time left: all that never became an answer
        print(f"There is no answer: {error}", file=sys.stderr)
        return 2
    for denied in answer.denied:
        print(f"denied: {denied.tool} {denied.input}", file=sys.stderr)
    if answer.outcome != "completed" or answer.text is None:
        print(f"There is no answer: {answer.outcome}, {answer.error}", file=sys.stderr)
        return 2
    print(answer.text)
    return 0 if answer.text.rstrip().endswith("PASS") else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
