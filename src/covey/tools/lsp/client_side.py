"""What this client tells a language server about itself, and what it answers when a server asks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.tools.lsp.connection import Unanswerable

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "symbol": {},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
        "workspaceEdit": {"documentChanges": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True},
        "definition": {"linkSupport": True},
        "references": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
    },
}


def initialize_params(root: Path, process_id: int, options: Mapping[str, Any]) -> dict[str, Any]:
    folder = {"uri": root.as_uri(), "name": root.name}
    return {
        "processId": process_id,
        "clientInfo": {"name": "covey"},
        "rootUri": folder["uri"],
        "rootPath": str(root),
        "workspaceFolders": [folder],
        "capabilities": CAPABILITIES,
        "initializationOptions": dict(options),
    }


def answer_of(method: str, params: Any, root: Path, settings: Mapping[str, Any]) -> Any:
    """The result of a server's request. Nothing that it asks for changes a file. Raises Unanswerable."""
    match method:
        case "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            return [_section(settings, item) for item in items or ()]
        case "workspace/workspaceFolders":
            return [{"uri": root.as_uri(), "name": root.name}]
        case "workspace/applyEdit":
            return {"applied": False, "failureReason": "edits are made by the user's own tools"}
        case (
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
        ):
            return None
        case _:
            raise Unanswerable(method)


def _section(settings: Mapping[str, Any], item: Any) -> Any:
    """The settings under a dotted name; null if there are none."""
    found: Any = settings
    section = item.get("section") if isinstance(item, dict) else None
    for name in section.split(".") if isinstance(section, str) and section else ():
        found = found.get(name) if isinstance(found, dict) else None
    return found


def registered_methods(params: Any, key: str) -> list[str]:
    """The methods that a server registers (`registrations`) or takes back (`unregisterations`: so the protocol)."""
    listed = params.get(key) if isinstance(params, dict) else None
    found = [each.get("method") for each in listed or () if isinstance(each, dict)] if isinstance(listed, list) else []
    return [method for method in found if isinstance(method, str)]
