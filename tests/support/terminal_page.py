"""`python -m tests.support.terminal_page`: writes the table of keys in docs/TERMINAL.md from the key table itself."""

from __future__ import annotations

from pathlib import Path

from covey.tui.face.help import ORDER
from covey.tui.face.keys import TITLES, KeyTable

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "TERMINAL.md"
BEGIN, END = "<!-- keys: begin -->\n", "<!-- keys: end -->\n"


def keys_text() -> str:
    table, parts = KeyTable(), []
    for context in ORDER:
        rows = [
            f"| {', '.join(f'`{key}`' for key in binding.keys)} | {binding.about} | `{binding.intent}` |\n"
            for binding in table.of(context)
        ]
        parts.append(
            f"### {TITLES[context]}\n\n| key | what it does | name in `[keys]` |\n|---|---|---|\n{''.join(rows)}\n"
        )
    return "".join(parts)


def written(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{keys_text()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
