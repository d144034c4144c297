"""A `match` over a closed union handles every kind, and a type checker proves it; no kind is passed over in silence.

Such a match ends with `case _: assert_never(subject)`, so that a kind that is added makes mypy fail wherever it is not
handled yet. A match over open data, which may be anything, is listed here with the reason why the rest may pass.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = [*sorted((ROOT / "src" / "covey").rglob("*.py")), ROOT / "tests" / "support" / "memory_store.py"]

EVENTS = "a stream has events of many types, and each reader takes those that concern it"
JSON = "JSON from outside can be anything"
PROVIDER = "a name from a provider, which may send new ones any day"
ERROR = "errors of any type come here"
INTENT = "an intent, of which each part of the face carries out those that concern it"
STATE = "the state of a run as a store has it, which may be damaged"

OPEN: dict[str, str] = {
    "acp/bridge.py _set_option: request.params.get('configId')": JSON,
    "acp/bridge.py internal: error": ERROR,
    "acp/bridge.py notification: notification.method": JSON,
    "acp/passed.py servers_of: each": JSON,
    "acp/prompts.py _block: block": JSON,
    "acp/transcript_updates.py _user: part": "a prompt has no parts but these, and an editor may be shown fewer",
    "acp/updates.py step: event.payload": EVENTS,
    "acp/updates.py step: fed": "a view is fed many things, and only what is said of a call or a run is looked at here",
    "cli/common.py explained: error": ERROR,
    "cli/tour.py _watch: event.payload": EVENTS,
    "tui/app.py _do: effect": "what is not its own is carried out beside it",
    "tui/app.py stepped: fed": EVENTS,
    "tui/face/answering.py _permission: intent": INTENT,
    "tui/face/questioning.py key: intent": INTENT,
    "tui/face/composing.py _special: intent": INTENT,
    "tui/face/picking.py page_key: intent": INTENT,
    "tui/face/picking.py picker_key: intent": INTENT,
    "tui/face/queueing.py key: intent": INTENT,
    "tui/face/reduce.py _transcript_key: intent": INTENT,
    "tui/face/reduce.py reduce: fed": "what no terminal sends is what the shell says",
    "tui/face/status_lines.py doing: (found.run.waiting_on or '').partition(':')": "what a server of any version says",
    "client/answer_text.py take: event.payload": EVENTS,
    "client/answering.py event: event.payload": EVENTS,
    "client/prompt.py _follow: event.payload": EVENTS,
    "client/transcript.py apply: event.payload": EVENTS,
    "engine/extensions/mcp_definitions.py cleaned_tree: tree": JSON,
    "tools/lsp/client_side.py answer_of: method": JSON,
    "tools/lsp/connection.py _settle: message.get('error')": JSON,
    "tools/lsp/connection.py _take: message": JSON,
    "tools/lsp/edits.py _read_edit: given": JSON,
    "tools/lsp/edits.py read_workspace_edit: change": JSON,
    "tools/lsp/positions.py read_position: given": JSON,
    "tools/lsp/positions.py read_range: given": JSON,
    "tools/mcp/client.py request: result.get('resultType', 'complete')": "what a server may say",
    "tools/mcp/results.py _words: block.get('type')": "what a server may say",
    "mcp_server/runs.py on_event: event.payload": EVENTS,
    "mcp_server/runs.py on_event: item": "of what is new about a run, a caller is told some",
    "mcp_server/service.py _either: method": JSON,
    "mcp_server/service.py answer: method": JSON,
    "lifecycle/history.py last_answer_end: state": STATE,
    "lifecycle/output_check.py _canonical: value": JSON,
    "lifecycle/history.py open_call_end: state": STATE,
    "permissions/safe_commands.py is_transparent: texts": "the words of a command line",
    "models/anthropic_answer.py _begin_block: block.type": PROVIDER,
    "models/anthropic_answer.py _grow_block: delta.type": PROVIDER,
    "models/responses_answer.py _rare_event: kind": PROVIDER,
    "models/responses_answer.py _whole_item: item.type": PROVIDER,
    "models/trouble.py _code_of: error": JSON,
    "models/trouble.py error_text: value": JSON,
    "notify/notices.py notice_of: event.payload": EVENTS,
    "protocol/activity.py shortened: event.payload": EVENTS,
    "protocol/messages.py _known: part": JSON,
    "protocol/messages.py _with_known_parts: message": JSON,
    "tui/terminal/answers.py fact_of_csi: (given[:1], between, last, numbers)": "a terminal may answer anything",
    "doctor/oracle_file.py _cannot_open: error": ERROR,
    "doctor/oracle_story.py _take: event.type": "the type of an event as a file has it, which may be of a newer Covey",
}


def silent_matches(path: str, source: str) -> Iterator[str]:
    """`file function: subject` of each match whose last case is not the proof that there is no other."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    owners: dict[ast.AST, str] = {}
    for node in ast.walk(ast.parse(source)):  # outer functions come before those inside of them
        for child in ast.walk(node) if isinstance(node, functions) else ():
            owners[child] = getattr(node, "name", "")
        if isinstance(node, ast.Match) and not _is_proved(node):
            yield f"{path} {owners.get(node, '')}: {ast.unparse(node.subject)}"


def _is_proved(node: ast.Match) -> bool:
    match node.cases[-1]:
        case ast.match_case(
            pattern=ast.MatchAs(pattern=None, name=None),
            guard=None,
            body=[ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"), args=[subject]))],
        ):
            return ast.unparse(subject) == ast.unparse(node.subject)
    return False


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT)).removeprefix("src/covey/")


def test_every_match_handles_all_kinds_or_is_over_open_data() -> None:
    found = [match for path in FILES for match in silent_matches(name_of(path), path.read_text("utf-8"))]
    assert sorted(set(found) - set(OPEN)) == [], "these need `case _: assert_never(...)`, or a reason in OPEN"
    assert sorted(set(OPEN) - set(found)) == [], "these are not silent any more"
    assert len(found) == len(set(found)), "two of one name"


@pytest.mark.parametrize(
    ("last", "is_silent"),
    [
        ("case _: assert_never(x)", False),
        ("case _: assert_never(y)", True),
        ("case _: pass", True),
        ("case _: return assert_never(x)", True),
        ("case y: assert_never(y)", True),
        ("case _ if y: assert_never(x)", True),
        ("case int(): assert_never(x)", True),
    ],
)
def test_a_silent_match_is_found(last: str, is_silent: bool) -> None:
    source = f"def outer(x, y):\n  def f():\n    match x:\n      case str(): return 1\n      {last}\n"
    assert list(silent_matches("a.py", source)) == (["a.py f: x"] if is_silent else [])
