"""Routes that only v1 clients use: their settings, the model of a workspace, and keys, which they may not set."""

from __future__ import annotations

from typing import Any, NoReturn

from covey.protocol.errors import Forbidden
from covey.protocol.requests import SelectedModel
from covey.protocol.v1 import (
    COMPACT_MODE,
    NO_KEYS,
    CompactMode,
    ImportedToken,
    InitPrompt,
    NeedsInit,
    PreferModel,
    RemoveConfig,
    SetConfig,
)
from covey.server.endpoint import Call, Endpoint


async def set_config(call: Call, body: SetConfig) -> None:
    workspace = await call.workspace()
    await workspace.settings.set_preference(body.key, body.value)


async def remove_config(call: Call, body: RemoveConfig) -> None:
    workspace = await call.workspace()
    await workspace.settings.remove_preference(body.key)


async def set_compact(call: Call, body: CompactMode) -> None:
    workspace = await call.workspace()
    await workspace.settings.set_preference(COMPACT_MODE, body.enabled)


async def prefer_model(call: Call, body: PreferModel) -> None:
    workspace = await call.workspace()
    await workspace.settings.prefer_model(body.model_type, body.model)


async def default_small_model(call: Call, _body: None) -> SelectedModel:
    workspace = await call.workspace()
    await workspace.settings.ensure_read()
    return workspace.settings.default_small_model(call.query.get("provider_id", ""))


async def refuse_key(call: Call, _body: object) -> NoReturn:
    await call.workspace()
    raise Forbidden(NO_KEYS, "not_by_clients")


async def import_nothing(call: Call, _body: object) -> ImportedToken:
    await call.workspace()
    return ImportedToken()


async def needs_init(call: Call, _body: None) -> NeedsInit:
    await call.workspace()
    return NeedsInit(needs_init=False)


async def mark_initialized(call: Call, _body: object) -> None:
    await call.workspace()


async def init_prompt(call: Call, _body: None) -> InitPrompt:
    workspace = await call.workspace()
    return InitPrompt(prompt=workspace.settings.init_prompt())


W = "/v1/workspaces/{id}"
C = W + "/config"
ANY = dict[str, Any]

ENDPOINTS = (
    Endpoint("POST", C + "/set", set_config, "Set how clients look; other settings are refused.", SetConfig),
    Endpoint("POST", C + "/remove", remove_config, "Set it back.", RemoveConfig),
    Endpoint("POST", C + "/compact", set_compact, "The same for one of them.", CompactMode),
    Endpoint(
        "POST", C + "/model", prefer_model, "Use this model in the workspace, for as long as it is open.", PreferModel
    ),
    Endpoint("POST", C + "/provider-key", refuse_key, "Refused: clients set no keys.", ANY, optional_body=True),
    Endpoint("POST", C + "/refresh-oauth", refuse_key, "Refused: clients set no keys.", ANY, optional_body=True),
    Endpoint(
        "POST", C + "/import-copilot", import_nothing, "Nothing is imported.", ANY, ImportedToken, optional_body=True
    ),
    Endpoint(
        "GET", W + "/agent/default-small-model", default_small_model, "The model of a provider for small things.",
        answer=SelectedModel,
    ),
    Endpoint("GET", W + "/project/needs-init", needs_init, "Never: `covey init` is there for it.", answer=NeedsInit),
    Endpoint("POST", W + "/project/init", mark_initialized, "Taken, and without effect.", ANY, optional_body=True),
    Endpoint("GET", W + "/project/init-prompt", init_prompt, "What `covey init` asks for.", answer=InitPrompt),
)  # fmt: skip
