"""One answer in a script: `python examples/one_answer.py "What does this project do?"`.

It uses your own server, which is started if none runs, so `covey sessions` shows what was said.
"""

from __future__ import annotations

import sys

import covey


def main() -> int:
    prompt = " ".join(sys.argv[1:]) or "What does this project do?"
    try:
        answer = covey.ask_sync(prompt, path=".", timeout=300)
    except covey.CoveyError as error:
        print(f"There is no answer: {error}", file=sys.stderr)
        return 1
    if answer.outcome != "completed":
        print(f"There is no answer: {answer.outcome}, {answer.error}", file=sys.stderr)
        return 1
    print(answer.text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
