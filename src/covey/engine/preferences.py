"""How the user likes clients to look: kept in one small file of the data directory, for every directory alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from covey.machine.replace import replace_file
from covey.protocol.errors import BadRequest, Forbidden, Unavailable
from covey.protocol.v1 import NO_KEYS, PREFERENCES, SECRETS

log = logging.getLogger(__name__)

FILE = "preferences.json"


class Preferences:
    """Settings by key: only those of `PREFERENCES`, each of its type."""

    def __init__(self, path: Path | None = None, values: Mapping[str, Any] | None = None) -> None:
        self._path = path
        """None: they last as long as the server."""
        self._values = dict(values or {})
        self._writing = asyncio.Lock()

    @property
    def values(self) -> dict[str, Any]:
        return dict(self._values)

    async def set(self, key: str, value: Any) -> None:
        """Raises Forbidden for a setting that no client may change, BadRequest for a value that makes no sense."""
        self._values[key] = _checked(key, value)
        await self._write()

    async def remove(self, key: str) -> None:
        _type_of(key)
        self._values.pop(key, None)
        await self._write()

    async def _write(self) -> None:
        if self._path is None:
            return
        async with self._writing:
            content = msgspec.json.encode(self._values)
            try:
                await asyncio.to_thread(replace_file, self._path, content, mode=0o600)
            except OSError as error:
                message = f"it is set, but could not be written to {self._path}: {error.strerror}"
                raise Unavailable(message, "store_unavailable") from None


def load_preferences(data_dir: Path) -> Preferences:
    """Those that were kept. What cannot be understood is left out: a taste is no reason not to start."""
    path = data_dir / FILE
    values: dict[str, Any] = {}
    try:
        for key, value in msgspec.json.decode(path.read_bytes(), type=dict[str, Any]).items():
            values[key] = _checked(key, value)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, BadRequest, Forbidden) as error:
        log.warning("%s is not taken: %s", path, error)
    return Preferences(path, values)


def _checked(key: str, value: Any) -> Any:
    kind = _type_of(key)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{key} cannot be that: {error}") from None


def _type_of(key: str) -> Any:
    if key in PREFERENCES:
        return PREFERENCES[key]
    if key.startswith(SECRETS):
        raise Forbidden(NO_KEYS, "not_by_clients")
    raise Forbidden(f"{key!r} is not set by clients: write what you want into config.toml", "not_by_clients")
