"""docs/PROTOCOL.md against the code: every route, parameter, value, event and error is in it, and nothing else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.routing import Route

from covey.protocol import errors
from covey.protocol.events import TYPES, Event, decode_event
from covey.server.app import ENDPOINTS, V1_ENDPOINTS
from covey.server.event_stream import EventStreamApp
from tests.histories.openapi_requests import Generator
from tests.server.site import serving
from tests.support import protocol_page
from tests.support.protocol_page import PAGE, REMAKE, W, short

TEXT = PAGE.read_text("utf-8")
PROSE = re.sub(r"```.*?```", "", protocol_page.BLOCK.sub("", TEXT), flags=re.DOTALL)
"""What is written by hand, without the examples."""
EXAMPLES = [(name, text) for name, text in re.findall(r"```json (\w+)\n(.*?)```", TEXT, re.DOTALL)]
ROW = re.compile(r"^\| `([A-Z]+ [^`]+)` \|", re.MULTILINE)
ERROR_ROW = re.compile(r"^\| (\d{3}) \| `(\w+)` \| \S", re.MULTILINE)
PARAMETER = re.compile(r"query(?:\.get\(|\[)\"(\w+)\"|\.(?:number|count)\(\"(\w+)\"|\"(\w+)\" (?:not )?in call\.query")
EVERYWHERE = {"client_id"}
"""Any request may say who makes it."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(protocol_page.document()))
    return described


def test_the_tables_are_those_of_the_code() -> None:
    assert protocol_page.with_tables(TEXT) == TEXT, f"docs/PROTOCOL.md does not say what the code does: {REMAKE}"


@pytest.mark.anyio
async def test_the_page_has_every_route_that_is_served_and_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        served = {
            f"{method} {short(route.path)}"
            for route in site.app._router.routes
            if isinstance(route, Route)
            for method in (route.methods or set()) - {"HEAD"}
        }
    assert not (missing := served - set(ROW.findall(TEXT))), (
        f"docs/PROTOCOL.md does not have {sorted(missing)}: put the endpoint into ENDPOINTS (an app of its own: into "
        f"_SPECIAL of tests/support/protocol_page.py), then {REMAKE}"
    )
    assert not (unknown := set(ROW.findall(TEXT)) - served), f"no route of the server: {sorted(unknown)}; {REMAKE}"


def test_a_route_that_the_prose_names_exists() -> None:
    known = {path for cell in ROW.findall(TEXT) for path in [cell.split()[1]]}
    known |= {path.replace("W/agent/sessions/{sid}", "S") for path in known}
    named = re.findall(r"`(?:GET|POST|PUT|PATCH|DELETE) ([^`? ]+)", PROSE)
    assert len(named) > 5
    assert {path for path in named if "…" not in path} <= known


def _asked_for(handler: Any) -> set[str]:
    """The query parameters that the source of a handler names."""
    source = inspect.getsource(handler)
    names = PARAMETER.findall(source)
    return {name for found in names for name in found if name}


def test_every_query_parameter_of_a_handler_is_described(document: dict[str, Any]) -> None:
    handlers = {(e.method, e.path): e.handler for e in ENDPOINTS} | {("GET", f"{W}/events"): EventStreamApp.__call__}
    seen = 0
    for (method, path), handler in handlers.items():
        given = document["paths"][path][method.lower()]["parameters"]
        described = {each["name"] for each in given if each["in"] == "query"}
        seen += len(described)
        assert _asked_for(handler) - EVERYWHERE == described - EVERYWHERE, (
            f"{method} {path}: its parameters stand in _QUERY of server/openapi.py; then {REMAKE}"
        )
        assert all(each["description"] for each in given if each["in"] == "query"), (
            f"{method} {path}: say what its parameters mean in ABOUT of server/openapi.py; then {REMAKE}"
        )
    assert seen > 10, "the reader of the sources sees nothing"


def test_the_parameters_of_v1_routes_are_in_the_prose() -> None:
    for endpoint in V1_ENDPOINTS:
        for name in _asked_for(endpoint.handler) - EVERYWHERE:
            assert f"{short(endpoint.path)}?{name}=" in PROSE, f"say in docs/PROTOCOL.md what {name} is"


def test_the_page_has_every_error_code_and_no_other() -> None:
    drawn = {
        (status, code)
        for status, codes in re.findall(r"[├└]── \w+ (\d+) +(.+)", errors.__doc__ or "")
        for code in codes.split(", ")
    }
    written = ERROR_ROW.findall(TEXT)
    assert set(written) == drawn, "say in the table of errors of docs/PROTOCOL.md when each code is sent"
    assert len(written) == len(drawn)


def _faults(document: dict[str, Any], name: str, value: Any) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    assert name in schemas, f"the code knows no {name}"
    yield from Generator(document, 0, {}).faults(schemas[name], value, name)


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(EXAMPLES)])
def test_each_example_is_as_the_code_has_it(name: str, text: str, document: dict[str, Any]) -> None:
    assert not list(_faults(document, name, msgspec.json.decode(text)))
    if name == "Event":
        assert isinstance(decode_event(text), Event)


def test_the_check_of_examples_can_fail(document: dict[str, Any]) -> None:
    assert list(_faults(document, "PostPrompt", {"prompt": 7}))
    assert list(_faults(document, "PostPrompt", {"prompts": "hello"}))
    assert list(_faults(document, "Event", {"type": "gap", "payload": {"type": "created", "payload": {}}}))


def test_every_type_of_event_and_every_body_has_an_example() -> None:
    shown = {event.type for name, text in EXAMPLES if name == "Event" and (event := decode_event(text))}
    assert shown == set(TYPES), "write an example into docs/PROTOCOL.md: ```json Event"
    bodies = {e.body.__name__ for e in ENDPOINTS if isinstance(e.body, type) and issubclass(e.body, msgspec.Struct)}
    missing = bodies - {name for name, _ in EXAMPLES}
    assert not missing, f"write examples into docs/PROTOCOL.md: ```json {' and '.join(sorted(missing))}"


def test_every_link_inside_the_page_leads_to_a_heading() -> None:
    headings = re.findall(r"^#+ (.+)", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= anchors
