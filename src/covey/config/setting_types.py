"""What settings are made of: the base of all of them, and kinds of values with words for their mistakes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from covey.protocol.errors import BadRequest


class ConfigError(BadRequest):
    """A mistake in a configuration. The message says where it is and what was expected, and shows no secret."""


# Each description completes "expected ..." in the message for a wrong value.
Count = Annotated[int, Meta(ge=0, description="a whole number, 0 or more")]
Positive = Annotated[int, Meta(ge=1, description="a whole number, 1 or more")]
Price = Annotated[float, Meta(ge=0, le=1_000_000, description="a number, from 0 to 1000000")]
Seconds = Annotated[float, Meta(gt=0, le=86_400, description="seconds, above 0 and at most 86400 (a day)")]
Url = Annotated[str, Meta(pattern=r"^(https?://[^\s/]\S*)?\Z", description='a URL such as "http://127.0.0.1:8080/v1"')]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all settings: a key that nobody reads is a mistake of the writer, so it is refused by name."""
