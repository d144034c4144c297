"""The tools definition, references, symbols and diagnostics: questions to a language server that change nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, is_inside
from covey.tools.files import FileParams, name_for
from covey.tools.lsp.answers import SHOWN, SourcePlace, list_places, list_symbols, read_places, read_symbols
from covey.tools.lsp.complaints import describe
from covey.tools.lsp.connection import RequestRefused, ServerGone
from covey.tools.lsp.name_places import NameParams, position_of, read_text, workspace_file
from covey.tools.lsp.positions import LineIndex
from covey.tools.lsp.service import LanguageService


class SymbolsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, msgspec.Meta(description="List the symbols of this file.")] = ""
    query: Annotated[
        str, msgspec.Meta(max_length=200, description="Find symbols in the whole project by part of their name.")
    ] = ""


def looking_tools(service: LanguageService) -> list[Tool[Any]]:
    asking = _Asking(service)
    return [
        _looking("definition", NameParams, asking.definition, lambda params: params.file_path),
        _looking("references", NameParams, asking.references, lambda params: params.file_path),
        _looking("symbols", SymbolsParams, asking.symbols, lambda params: params.file_path or "."),
        _looking("diagnostics", FileParams, asking.diagnostics, lambda params: params.file_path),
    ]


def _looking(
    name: str,
    params: type[Any],
    ask: Callable[[Any, ToolContext], Coroutine[Any, Any, str]],
    subject: Callable[[Any], str],
) -> Tool[Any]:
    """They look at files of the workspace alone, so nobody need be asked."""

    def intent(given: Any, context: ToolContext) -> Intent:
        return Intent(name, "read", str(workspace_file(context, subject(given))), harmless=True)

    async def run(given: Any, context: ToolContext) -> ToolOutput:
        try:
            return ToolOutput(await ask(given, context))
        except (ServerGone, RequestRefused, TimeoutError) as error:
            why = str(error) or "it took too long"
            raise ToolFailed(f"The language server gave no answer: {why}. Use grep and view.") from None

    return built_in(name, Effect.LOOKS, params, intent=intent, run=run)


class _Asking:
    """One method for each tool: parameters in, the text that the model reads out."""

    def __init__(self, service: LanguageService) -> None:
        self._service = service

    async def definition(self, params: NameParams, context: ToolContext) -> str:
        places = await self._places("definition", "definitionProvider", params, context)
        return await _listed(places, context) or f"No definition of {params.name} was found."

    async def references(self, params: NameParams, context: ToolContext) -> str:
        included = {"context": {"includeDeclaration": True}}
        places = await self._places("references", "referencesProvider", params, context, included)
        return await _listed(places, context) or f"Nothing refers to {params.name}."

    async def symbols(self, params: SymbolsParams, context: ToolContext) -> str:
        def name(path: Path) -> str:
            return name_for(context, path)

        if not params.file_path:
            servers = await self._service.any_server("workspaceSymbolProvider")
            answers = [await server.ask("workspace/symbol", {"query": params.query}) for server in servers]
            found = list(dict.fromkeys(symbol for answer in answers for symbol in read_symbols(answer)))
            return list_symbols(found, name) or f"No symbol is called like {params.query!r}."
        path = workspace_file(context, params.file_path)
        server = await self._service.server_for(path, "documentSymbolProvider")
        document = server.documents.sync(path, await read_text(path, name(path)))
        answer = await server.ask("textDocument/documentSymbol", {"textDocument": {"uri": document.uri}})
        wanted = [symbol for symbol in read_symbols(answer) if params.query.lower() in symbol.name.lower()]
        return list_symbols(wanted, name) or f"{params.file_path} has no such symbols."

    async def diagnostics(self, params: FileParams, context: ToolContext) -> str:
        path = workspace_file(context, params.file_path)
        complaints = await self._service.complaints(path)
        if complaints is None:
            return f"Nothing is known of {params.file_path}: no language server is for it, or none answered in time."
        return describe(name_for(context, path), complaints) or f"Nothing is wrong with {params.file_path}."

    async def _places(
        self,
        what: str,
        capability: str,
        params: NameParams,
        context: ToolContext,
        further: Mapping[str, Any] | None = None,
    ) -> list[SourcePlace]:
        path = workspace_file(context, params.file_path)
        server = await self._service.server_for(path, capability)
        text = await read_text(path, name_for(context, path))
        position = position_of(server.index(text), params)
        return read_places(await server.ask_at(f"textDocument/{what}", path, text, position, **further or {}))


async def _listed(places: list[SourcePlace], context: ToolContext) -> str:
    """With the source of those inside the workspace: nobody has agreed to look elsewhere."""
    lines = await _lines((place for place in places[:SHOWN] if is_inside(context, place.path.resolve())), context)
    return list_places(places, lambda path: name_for(context, path), lambda place: lines.get(place, ""))


async def _lines(places: Iterable[SourcePlace], context: ToolContext) -> dict[SourcePlace, str]:
    by_path: dict[Path, list[SourcePlace]] = defaultdict(list)
    for place in places:
        by_path[place.path].append(place)
    found: dict[SourcePlace, str] = {}
    for path, those in by_path.items():
        try:
            index = LineIndex(await read_text(path, name_for(context, path)))
        except ToolFailed:  # gone, or too large: its place still says where
            continue
        found |= {place: index.line(place.line - 1) for place in those}
    return found
