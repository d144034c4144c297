"""`covey models`: what can be asked now, and which of it a prompt goes to. `covey models get`: the embedded model."""

from __future__ import annotations

import argparse

import msgspec

from covey.cli import common, exits
from covey.cli.listing import sentences
from covey.cli.screen import plain
from covey.cli.terminal_text import json_text
from covey.config import local_model
from covey.protocol.requests import ConfigView, SelectedModel


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    type: str
    id: str
    """Empty: the provider lists none, and takes any."""
    name: str
    context_window: int


class EmbeddedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The small model that can be had without a key, on this machine."""

    state: local_model.State
    name: str
    licence: str
    download_bytes: int
    file: str


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes."""

    large: str
    """Where a prompt goes; empty: nowhere yet."""
    small: str
    models: list[ModelEntry]
    keys: dict[str, str]
    """By provider, where its key comes from, or why it could not be had. Never a key."""
    embedded: EmbeddedEntry
    problem: str
    """Why the model that is configured cannot be asked; empty: it can, or none is configured."""


def main(args: argparse.Namespace) -> int:
    if args.action == "get":
        from covey.cli.models_get import get

        return get(source=args.source, agreed=args.yes)
    return common.run(_list(args))


async def _list(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace = await common.join(client, args.cwd)
        models = models_of(await client.config(workspace.id))
    if args.json:
        print(json_text(models))
        return exits.OK
    print(plain(sentences(_text(models))))
    if models.problem:
        common.complain(f"A prompt goes nowhere: {models.problem}.")
    elif not models.large:
        common.note("A prompt goes nowhere yet: `covey login` or `covey config edit` sets up a model.")
    return exits.OK


def models_of(config: ConfigView) -> Models:
    entries = []
    for provider in config.providers.values():
        entries += [
            ModelEntry(
                provider=provider.id,
                type=provider.type,
                id=model.id,
                name=model.name,
                context_window=model.context_window,
            )
            for model in provider.models
        ] or [ModelEntry(provider=provider.id, type=provider.type, id="", name=provider.name, context_window=0)]
    return Models(
        large=_reference(config.models.get("large")),
        small=_reference(config.models.get("small")),
        models=entries,
        keys={
            provider.id: provider.key_problem or provider.key_source
            for provider in config.providers.values()
            if provider.key_problem or provider.key_source
        },
        embedded=_embedded(),
        problem=config.model_problem,
    )


def _reference(model: SelectedModel | None) -> str:
    return f"{model.provider}/{model.model}" if model else ""


def _embedded() -> EmbeddedEntry:
    weights = local_model.SMOLLM2
    return EmbeddedEntry(
        state=local_model.state(),
        name=weights.name,
        licence=weights.licence,
        download_bytes=weights.wheel_size,
        file=str(local_model.find_weights() or ""),
    )


def _text(models: Models) -> str:
    names = [f"{model.provider}/{model.id or '<any>'}" for model in models.models]
    if models.large and models.large not in names:
        names.append(models.large)  # chosen without being listed: that is allowed
    known = dict(zip(names, models.models, strict=False))
    width = max(map(len, names), default=0)
    lines = []
    for name in names:
        model = known.get(name)
        about = [model.name] if model and model.name != model.id else []
        if model and model.context_window:
            about.append(f"{model.context_window:,} tokens")
        if name == models.large:
            about.append("a prompt goes here")
        if name == models.small != models.large:
            about.append("titles and other small things go here")
        lines.append(f"{'*' if name == models.large else ' '} {name:<{width}}  {', '.join(about)}".rstrip())
    lines += [f"The key of {provider}: {about}" for provider, about in models.keys.items()]
    if not models.large or models.embedded.state == "installed":  # who has another model does not look for this one
        lines.append(_about_embedded(models.embedded))
    return "\n".join(lines)


def _about_embedded(embedded: EmbeddedEntry) -> str:
    if embedded.state == "installed":
        return f"The embedded model, {embedded.name}, is installed: {embedded.file}"
    size = f"{embedded.download_bytes / 1e6:.0f} MB, {embedded.licence}"
    how = "`covey models get` says what it needs, and gets it"
    return f"The embedded model, {embedded.name}, is not there yet: {how} ({size})."
