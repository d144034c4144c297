"""`covey config`: what is configured and by which file, whether it is right, and simple changes. Needs no server."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from covey.cli import common, exits
from covey.cli.keys_here import with_keys_here
from covey.cli.screen import plain
from covey.cli.terminal_text import json_text
from covey.config.defaults import lacks_only_key, why_no_prompt, why_unknown
from covey.config.edit import set_value
from covey.config.load import config_dir, load
from covey.config.origins import SettingOrigin, origins, plain_key
from covey.config.schema import ConfigError

VARIABLES = ("COVEY_HOST", "COVEY_DATA_DIR", "COVEY_CONFIG", "COVEY_MODEL")


def main(args: argparse.Namespace) -> int:
    if args.action != "set" and args.words:
        raise exits.UsageError(f"`covey config {args.action}` takes nothing more, not {args.words[0]!r}")
    try:
        return {"show": _show, "path": _path, "check": _check, "edit": _edit, "set": _set}[args.action](args)
    except ConfigError as error:
        raise exits.CommandFailed(error.message) from error


def own_file() -> Path:
    return config_dir(os.environ) / "config.toml"


def _project(args: argparse.Namespace) -> Path:
    return Path(common.working_directory(args.cwd))


def _extra(args: argparse.Namespace) -> Path | None:
    return Path(args.config).expanduser().absolute() if args.config else None


def _path(args: argparse.Namespace) -> int:
    print(json_text({"path": str(own_file())}) if args.json else plain(str(own_file())))
    return exits.OK


def _show(args: argparse.Namespace) -> int:
    found = origins(_project(args), _extra(args), os.environ)
    if args.json:
        print(json_text([_as_json(one) for one in found]))
        return exits.OK
    last = None
    for one in sorted(found, key=lambda origin: (str(origin.path), origin.project, origin.key)):
        if (one.path, one.project) != last:
            print(plain(f"# {one.path}{f', for {one.project} only' if one.project else ''}"))
            last = one.path, one.project
        print(plain(f"{one.key} = {json_text(one.value)}"))
    for name in VARIABLES:
        if value := os.environ.get(name):
            print(plain(f"# {name} is set: {value}"))
    if not found:
        common.note(f"Nothing is configured, so Covey looks for what there is. Your own file: {own_file()}")
    return exits.OK


def _as_json(one: SettingOrigin) -> dict[str, Any]:
    return {"key": one.key, "value": one.value, "file": str(one.path), "project": one.project or None}


def _check(args: argparse.Namespace) -> int:
    loaded = load(_project(args), _extra(args), os.environ)
    for warning in loaded.warnings:
        if warning not in loaded.unprotected:
            common.complain(warning)
    if doubts := [*loaded.unprotected, *filter(None, [why_no_prompt(with_keys_here(loaded.config))])]:
        raise exits.CommandFailed("\n".join(doubts))
    if args.json:
        print(json_text({"files": [str(path) for path in loaded.files], "warnings": loaded.warnings}))
        return exits.OK
    print(plain("\n".join(f"{path}: OK" for path in loaded.files) or "There is no configuration file; none is needed."))
    return exits.OK


def _edit(args: argparse.Namespace) -> int:
    """With the user's editor. What it leaves is checked, and stays as it is also if it is wrong."""
    if args.json:
        raise exits.UsageError("an editor is for people: `covey config edit` has no --json")
    path = own_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 - the user's own editor
    except (OSError, ValueError) as error:
        raise exits.UsageError(
            f"{editor!r} cannot be started ({error}); set $EDITOR, or edit {path} yourself"
        ) from None
    if done.returncode:
        common.complain(f"{editor} ended with {done.returncode}.")
        return exits.FAILED
    code = _check(args)
    return common.reload_servers(args) if code == exits.OK else code


def _set(args: argparse.Namespace) -> int:
    if len(args.words) != 2:
        raise exits.UsageError("write a key and a value: covey config set model anthropic/claude-opus-5-5")
    try:
        section, key, value = plain_key(*args.words)
    except ConfigError as error:
        raise exits.UsageError(error.message) from None
    doubts = _model_doubts(args, str(value)) if section == "models" else []
    path = set_value(os.environ, section, key, value)
    if args.json:
        done = {"key": f"{section}.{key}", "value": value, "file": str(path), "warnings": doubts}
        print(json_text(done))
    else:
        print(plain(f"{section}.{key} = {json_text(value)} in {path}"))
    for doubt in doubts:
        common.complain(doubt)
    return common.reload_servers(args)


def _model_doubts(args: argparse.Namespace, reference: str) -> list[str]:
    """What to know of a model that is to be set. Raises UsageError for one with which no prompt would be taken.

    Only a key may come later: a provider that nobody knows has to be named first.
    """
    config = with_keys_here(load(_project(args), _extra(args), os.environ).config)
    why = why_unknown(config, reference) if reference else ""
    if why and not lacks_only_key(config, reference):
        raise exits.UsageError(f"{why}. Nothing was changed; `covey config edit` names a provider of your own")
    return [why] if why else []
