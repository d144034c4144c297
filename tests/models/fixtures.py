"""The wire fixtures, and what each format makes of them. A new format is one more entry in FORMATS."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from covey.config.schema import ProviderSettings, ProviderType
from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.models.connect import open_client
from covey.models.wire import AnswerDecoder, WireClient
from tests.models.asking import request

ROOT = Path(__file__).parent / "wire"
KEY = "sk-very-secret"


@dataclass(frozen=True)
class Collected:
    """What an answer says, however it was cut: the same for all formats and for all SDKs."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name and whole input."""
    usage: tuple[int, int, int] | None = None
    """Tokens of the prompt, of the answer, and those of the prompt that came out of a cache."""
    stop: str = ""


def collected(facts: list[ModelFact]) -> Collected:
    begun: dict[int, tuple[str, str]] = {}
    inputs: dict[int, str] = {}
    text = reasoning = stop = ""
    usage = None
    for fact in facts:
        match fact:
            case TextDelta(more):
                text += more
            case ReasoningDelta(more, _):
                reasoning += more
            case ToolCallBegun(index, call_id, name):
                begun[index], inputs[index] = (call_id, name), ""
            case ToolInputDelta(index, more):
                inputs[index] += more
            case UsageReported():
                usage = (fact.prompt_tokens, fact.completion_tokens, fact.cached_tokens)
            case Stopped(reason):
                stop = reason
    return Collected(text, reasoning, tuple((*begun[index], inputs[index]) for index in begun), usage, stop)


@dataclass(frozen=True)
class Format:
    """A wire format, as the tests use it. `settings` open a client for it; `path` is a part of where it asks."""

    name: str
    module: str
    type: ProviderType
    path: str
    base_path: str = "/v1"
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def is_there(self) -> bool:
        return find_spec(self.module) is not None

    def client(self, url: str, **fields: Any) -> WireClient:
        values: dict[str, Any] = {"api_key": KEY, "idle_timeout_s": 5.0, "base_url": url + self.base_path}
        client = open_client("local", ProviderSettings(type=self.type, **dict(self.settings) | values | fields))
        assert isinstance(client, WireClient)
        return client

    def decoder(self) -> AnswerDecoder:
        return self.client("http://127.0.0.1:1")._decoder(request("hello"))

    def fixtures(self, *patterns: str) -> list[Path]:
        return sorted(path for pattern in patterns for path in (ROOT / self.name).glob(pattern))


_ALL = (
    Format("chat", "covey.models.openai_compatible", "openai-compatible", "/chat/completions"),
    Format("responses", "covey.models.openai_responses", "openai", "/responses", settings=(("api", "responses"),)),
    Format("anthropic", "covey.models.anthropic", "anthropic", "/messages"),
    Format("google", "covey.models.google", "google", ":streamGenerateContent", base_path="/v1beta"),
)
FORMATS = {wire.name: wire for wire in _ALL if wire.is_there}


def streamed(*names: str) -> list[Path]:
    """The streamed answers of these formats; of all, if none is named."""
    return [path for name in names or FORMATS for path in FORMATS[name].fixtures("*.sse")]


def refused(*names: str) -> list[Path]:
    """The errors that come instead of an answer."""
    return [path for name in names or FORMATS for path in FORMATS[name].fixtures("[345]*.json")]


def format_of(path: Path) -> Format:
    return FORMATS[path.parent.name]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def expected(path: Path) -> dict[str, Any]:
    """What must be understood of a fixture."""
    value: dict[str, Any] = json.loads((path.parent / "expected.json").read_text("utf-8"))[path.name]
    return value


def fed(
    decoder: AnswerDecoder, body: bytes, cuts: Callable[[bytes], list[bytes]] = lambda body: [body]
) -> list[ModelFact]:
    """All facts of a body, in pieces; raises AnswerBroken at its end as the decoder does."""
    facts: list[ModelFact] = []
    for piece in cuts(body):
        facts += decoder.feed(piece)
        if decoder.done:
            break
    return facts + decoder.end()
