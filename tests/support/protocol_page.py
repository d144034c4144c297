"""The tables of docs/PROTOCOL.md, made from the definitions by which the server works.

    python -m tests.support.protocol_page        writes them into the page

The prose and the examples are written by hand; `tests/test_docs_protocol.py` checks those, and that the tables are new.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from covey.protocol import events
from covey.server import openapi
from covey.server.app import ENDPOINTS, V1_ENDPOINTS
from covey.server.endpoint import Endpoint

PAGE = Path(__file__).parents[2] / "docs" / "PROTOCOL.md"
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
W, S = "/v1/workspaces/{id}", "/v1/workspaces/{id}/agent/sessions/{sid}"
REMAKE = "write the tables again: python -m tests.support.protocol_page"

_SPECIAL = (
    ("GET", f"{W}/events", "The event stream: see [Events](#events).", "", "`text/event-stream` of [Event](#events)"),
    (
        "GET",
        "/v1/activity",
        "What goes on in all workspaces: see [Everywhere](#everywhere).",
        "",
        "`text/event-stream`",
    ),
    ("GET", "/metrics", "Counters and gauges, in the text format of Prometheus.", "", "text"),
    ("GET", "/", "The page in the browser: see [The page](#the-page).", "", "HTML"),
    ("GET", "/web/{hash}/{path:path}", "A file of the page; `hash` is one of all its files.", "", "the file"),
    ("GET", "/openapi.json", "The API's own description, with every value and event on this page.", "", "JSON"),
)
"""Routes that are no `Endpoint`."""


def document() -> dict[str, Any]:
    return openapi.describe(ENDPOINTS)


def short(path: str) -> str:
    """With the letters that the page uses for the two longest beginnings."""
    return re.sub(f"^{re.escape(W)}", "W", re.sub(f"^{re.escape(S)}", "S", path))


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    return "\n".join([row(*head), "|" + "---|" * len(head), *(row(*cells) for cells in rows), ""])


# ── routes ──


def routes() -> str:
    """Every route that is meant for all clients."""
    described = [_route(endpoint) for endpoint in ENDPOINTS] + [_special(*special) for special in _SPECIAL]
    return table(("route", "what it does", "takes", "gives", "needs"), iter(sorted(described, key=_by_path)))


def v1_routes() -> str:
    """Those that only v1 clients know."""
    return table(("route", "what it does", "takes", "gives", "needs"), map(_route, V1_ENDPOINTS))


def _by_path(cells: tuple[str, ...]) -> tuple[bool, str, str]:
    method, path = cells[0].strip("`").split()
    return path[0] in "WS", path, method


def _route(endpoint: Endpoint) -> tuple[str, ...]:
    body = _type_name(endpoint.body) if endpoint.body is not None else ""
    takes = f"{body}{' or nothing' if endpoint.optional_body else ''}"
    gives = f"{endpoint.status} {_type_name(endpoint.answer) if endpoint.answer is not None else ''}".strip()
    needs = endpoint.needs or ("read" if endpoint.method == "GET" else "prompt")
    return f"`{endpoint.method} {short(endpoint.path)}`", endpoint.summary, takes, gives, needs


def _special(method: str, path: str, what: str, takes: str, gives: str) -> tuple[str, ...]:
    return f"`{method} {short(path)}`", what, takes, f"200 {gives}", "read"


def _type_name(kind: Any) -> str:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/{name}")
    return type_text(schema)


def parameters() -> str:
    """Every query parameter."""
    return table(("route", "parameter", "type", "meaning"), _parameters())


def _parameters() -> Iterator[tuple[str, ...]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            for given in operation["parameters"]:
                if given["in"] == "query":
                    must = ", must be given" if given["required"] else ""
                    route = f"`{method.upper()} {short(path)}`"
                    yield route, f"`{given['name']}`", type_text(given["schema"]) + must, given["description"]


# ── events and values ──


def event_types() -> str:
    """Every type of event, with its payload."""
    rows = (
        (f"`{name}`", f"[{kind.__name__}](#{kind.__name__.lower()})", "no" if name in events.WITHOUT_ID else "yes")
        for name, kind in events.TYPES.items()
    )
    return table(("type", "payload", "has an id"), rows)


def values() -> str:
    """Every value, field by field."""
    envelopes = {"Event", *(openapi.envelope_name(name) for name in events.TYPES)}
    schemas = openapi.describe((*ENDPOINTS, *V1_ENDPOINTS))["components"]["schemas"]
    structs = {cls.__name__: cls for cls in _structs(msgspec.Struct) if cls.__module__.startswith("covey.protocol")}
    names = sorted(set(schemas) - envelopes)
    return "\n".join(_value(name, schemas[name], structs[name]) for name in names)


def _structs(base: type[Any]) -> Iterator[type[Any]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _structs(cls)


def _value(name: str, schema: dict[str, Any], cls: type[Any]) -> str:
    about = " ".join(inspect.cleandoc(cls.__dict__.get("__doc__") or "").split())
    docs = field_docs(cls)
    required = schema.get("required", ())
    rows = (
        (
            f"`{field}`",
            type_text(inner),
            "always" if field in required else _default(inner),
            docs.get(field, ""),
        )
        for field, inner in schema.get("properties", {}).items()
    )
    return "\n".join(
        [f"#### {name}", "", *([about, ""] if about else []), table(("field", "type", "given", "meaning"), rows)]
    )


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema or schema["default"] is None:
        return "may be left out"
    return f"`{msgspec.json.encode(schema['default']).decode()}` if left out"


def field_docs(cls: type[Any]) -> dict[str, str]:
    """The sentences below the fields of a struct, by field."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("covey."):
            found |= _documented(base.__module__, inspect.getfile(base)).get(base.__name__, {})
    return found


@cache
def _documented(module: str, file: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(Path(file).read_text("utf-8"))
    return {node.name: dict(_field_docs(node.body)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _field_docs(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, after in pairwise(body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(inspect.cleandoc(text).split())


def type_text(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(type_text(inner) for inner in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            return f"list of {type_text(items)}" if items else "list"
        case "object":
            values = schema.get("additionalProperties")
            return f"table of {type_text(values)}" if isinstance(values, dict) and values else "table"
        case str(name):
            return _bounded(name, schema)
    return "anything"


def _bounded(name: str, schema: dict[str, Any]) -> str:
    if schema.get("contentEncoding"):
        return f"{name} in {schema['contentEncoding']}"
    if schema.get("format") == "uuid":
        return "UUID"
    if "maxLength" in schema:
        return f"{name} of at most {schema['maxLength']} characters"
    if "minimum" in schema:
        return f"{name} from {schema['minimum']}" + (f" to {schema['maximum']}" if "maximum" in schema else "")
    return str(name)


# ── the page ──

TABLES: dict[str, Callable[[], str]] = {
    "routes": routes,
    "v1_routes": v1_routes,
    "parameters": parameters,
    "events": event_types,
    "values": values,
}


def with_tables(page: str) -> str:
    """The page with its tables as they have to be."""
    return BLOCK.sub(lambda found: found[1] + "\n" + TABLES[found[2]]() + "\n" + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
