"""Read the configuration files, in order, into one checked value. Reads only; nothing in a file is ever executed.

The user's own file and `--config FILE` are believed, and only they may say what holds in one directory. A project's
file comes with code that somebody else may have written: until the user has trusted its directory it may choose among
the user's models and forbid things, and that is all. Else opening a stranger's project could send keys or code to a
stranger's server. For the same reason no variable in it is looked up until then: a refusal shows the model which rule
it broke, and with it the value of the variable.
"""

from __future__ import annotations

import os.path
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from covey.config.check import check, dotted
from covey.config.expand import expand
from covey.config.face_settings import FaceSettings
from covey.config.key_variables import key_variables
from covey.config.schema import (
    EXTENSION_SECTIONS,
    Config,
    ConfigError,
    ExtensionSections,
    Files,
    Settings,
)
from covey.machine.regular import NotRegular, open_regular
from covey.permissions.rule_names import why_never

PROJECT_FILE = "covey.toml"
NO_WISHES = FaceSettings()
OF_FACES = ("tui", "keys")
"""Tables that are read by the faces of a user alone."""
# A project's file may be hostile, and tomllib needs quadratic time for deep keys: 200 kB of `a.a.a…` take minutes. With
# these two bounds the worst file known takes about a second, and hundreds of models still fit.
MAX_FILE_BYTES = 128 * 1024
MAX_DOTS_IN_LINE = 100


@dataclass(frozen=True, slots=True)
class Layer:
    """What counts of one file, as it is written there: no variable is looked up."""

    path: Path
    data: dict[str, Any]
    project: str = ""
    """The directory that the file says it about, in its `projects`; '': it says so about all that it counts for."""

    def __repr__(self) -> str:
        return f"Layer({self.path})"  # it may hold keys


@dataclass(frozen=True, slots=True)
class Loaded:
    config: Config
    warnings: tuple[str, ...]
    """What was ignored or is empty, for people. Never shows a value."""
    files: tuple[Path, ...]
    """The files that were read, in order."""
    layers: tuple[Layer, ...] = ()
    """What counts of each of them."""
    faces: FaceSettings = NO_WISHES
    """What concerns no server."""
    unprotected: tuple[str, ...] = ()
    """Those of the warnings that tell of a rule to deny that never applies: somebody relies on it in vain."""

    def __repr__(self) -> str:
        return f"Loaded({self.config!r})"  # the layers may hold keys


class Approved(Settings, frozen=True):
    """What somebody has approved in one directory."""

    digests: tuple[str, ...] = ()
    """Of what its files name: see `approvals.py`."""


class Trusted(Settings, frozen=True):
    """The file `trusted.toml`: the directories whose `covey.toml` counts in full."""

    directories: tuple[str, ...] = ()
    approved: dict[str, Approved] = {}

    def digests(self, directory: Path) -> tuple[str, ...]:
        """What is approved in a directory."""
        return self.approved.get(str(directory.resolve()), Approved()).digests


def config_dir(environ: Mapping[str, str]) -> Path:
    """Where the user's own files are. A relative XDG_CONFIG_HOME is ignored, as its specification asks."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path(environ.get("HOME") or Path.home()) / ".config"
    return base / "covey"


def load(project: Path | None, extra: Path | None, environ: Mapping[str, str]) -> Loaded:
    """The configuration for a project: the user's file, the project's, then `extra`; later files win.

    Tables are merged key by key and lists are replaced, but permission rules add up: no file can remove a deny rule.
    """
    merged: dict[str, Any] = {}
    warnings: list[str] = []
    unprotected: list[str] = []
    files: list[Path] = []
    variables: set[str] = set()
    layers: list[Layer] = []
    named: dict[str, Any] = {}
    project_file = project / PROJECT_FILE if project else None
    for path in (config_dir(environ) / "config.toml", project_file, extra):
        raw = _read(path) if path else None
        if path is None or raw is None:
            continue
        if path is project_file:
            _check_leaves_to_the_user(path, raw)
        if path is project_file and project and not is_trusted(project, environ):
            own = load(None, extra, environ).config  # a later file counts here as well: `extra` may name providers
            data, said, layer = _untrusted(path, project, raw, merged, own)
            layers.append(layer)
        else:
            data, said = _believed(path, project, raw, merged, environ)
            layers += _layers(path, project, raw)
            variables |= key_variables(raw)
        if path is project_file:
            named = {name: raw[name] for name in EXTENSION_SECTIONS if data.pop(name, None)}
        unprotected += (vain := _rules_that_never_fit(path, data, "deny"))
        warnings += said + _rules_that_never_fit(path, data, "allow", "ask") + vain
        _anchor_files(data, path.absolute().parent)
        merged = _merge(merged, data)
        files.append(path)
    if extra and extra not in files:
        raise ConfigError(f"{extra}: there is no such file")
    faces = {name: merged.pop(name) for name in OF_FACES if name in merged}
    of_project = msgspec.convert(named, ExtensionSections)
    config = msgspec.convert(merged, Config)
    config = msgspec.structs.replace(config, key_variables=tuple(sorted(variables)), of_project=of_project)
    shown = msgspec.convert(faces, FaceSettings)
    return Loaded(config, tuple(warnings), tuple(files), tuple(layers), shown, tuple(unprotected))


def _rules_that_never_fit(path: Path, data: dict[str, Any], *kinds: str) -> list[str]:
    """No mistake that stops anybody: another version of Covey may have that tool."""
    listed = (
        (kind, entry) for kind, entries in data.get("permissions", {}).items() if kind in kinds for entry in entries
    )
    rules = ((kind, entry["rule"] if isinstance(entry, dict) else entry) for kind, entry in listed)
    return [f"{path}: permissions.{kind}: {rule!r} {why}" for kind, rule in rules if (why := why_never(rule))]


def _layers(path: Path, project: Path | None, raw: dict[str, Any]) -> list[Layer]:
    """What a file says for this project: in general, and in its `projects` about this one."""
    root = str(project.resolve()) if project else ""
    mine = raw.get("projects", {}).get(root)
    general = Layer(path, {name: table for name, table in raw.items() if name != "projects"})
    return [general, Layer(path, mine, root)] if mine else [general]


def _believed(
    path: Path, project: Path | None, raw: dict[str, Any], merged: dict[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """What a file that counts in full says about this project, and what people should know about it."""
    with blaming(path):
        check(_merge(merged, expand(raw, environ, [])), Files)
    root = str(project.resolve()) if project else ""
    listed = raw.get("projects", {})
    unset: list[str] = []
    mine = {root: listed[root]} if root in listed else {}
    data: dict[str, Any] = expand({**raw, "projects": mine}, environ, unset)
    for table in data.pop("projects").values():
        data = _merge(data, table)
    warnings = [f"{path}: {key}: a variable in it is not set and counts as empty ($$ is a plain $)" for key in unset]
    return data, warnings + [_not_the_full_path(path, name, root) for name in listed if _leads_to(name, root)]


def _leads_to(name: str, root: str) -> bool:
    """Whether this is another name of the directory, by way of a link.

    Paths that end otherwise are not looked at: their file system may not answer.
    """
    return name != root and os.path.basename(name) == os.path.basename(root) and os.path.realpath(name) == root


def _not_the_full_path(path: Path, name: str, root: str) -> str:
    key = dotted("projects", name)
    return f"{path}: {key}: ignored, as there is a link in this path; write {dotted('projects', root)}"


def _untrusted(
    path: Path, project: Path, raw: dict[str, Any], merged: dict[str, Any], own: Config
) -> tuple[dict[str, Any], list[str], Layer]:
    """What of a project's file counts before the directory is trusted. No variable is looked up.

    What is ignored must be right as well, so that a mistake is found before the directory is trusted.
    """
    from covey.config.untrusted import how_to_trust, without_open_providers, without_trust  # late: for projects alone

    with blaming(path):
        check(_merge(merged, expand(without_open_providers(raw), None, [])), Files)
    kept, ignored = without_trust(raw, own, merged.get("permissions", {}).get("sandbox", "auto"))
    warnings = [how_to_trust(path, project, ignored)] if ignored else []
    literal: list[str] = []
    data: dict[str, Any] = expand(kept, None, literal)
    why = "a variable in it counts as it is written, as this directory is not trusted"
    return data, warnings + [f"{path}: {key}: {why}" for key in literal], Layer(path, kept)


def _check_leaves_to_the_user(path: Path, raw: dict[str, Any]) -> None:
    """What only the user can say, however trusted a project is: what holds where, who is notified, where keys are."""
    if "projects" in raw:
        raise ConfigError(f"{path}: projects: only your own config.toml can say what holds in which directory")
    for name in OF_FACES:
        if name in raw:
            raise ConfigError(f"{path}: {name}: only your own config.toml can say how the terminal behaves")
    if "notify" in raw:
        raise ConfigError(f"{path}: notify: only your own config.toml can say where notices are sent")
    if "cluster" in raw:
        raise ConfigError(f"{path}: cluster: only your own config.toml can say which database servers share")
    if "search" in raw:
        raise ConfigError(f"{path}: search: only your own config.toml can say where searches are sent")
    providers = raw.get("providers")
    for name, table in providers.items() if isinstance(providers, dict) else ():
        if isinstance(table, dict) and "api_key_command" in table:
            key = dotted(dotted("providers", name), "api_key_command")
            raise ConfigError(f"{path}: {key}: only your own config.toml can name a command that is run for a key")


def is_trusted(project: Path, environ: Mapping[str, str]) -> bool:
    """Whether the user has listed this very directory; those inside or above it do not count."""
    return project.resolve() in [Path(directory) for directory in trusted_directories(environ)]


def trusted_directories(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What the user has listed, in order."""
    return read_trusted(environ).directories


def read_trusted(environ: Mapping[str, str]) -> Trusted:
    """The file of trusted directories, and of what was approved in them. Raises ConfigError."""
    path = config_dir(environ) / "trusted.toml"
    raw = _read(path) or {}
    with blaming(path):
        check(raw, Trusted)
        trusted = msgspec.convert(raw, Trusted)
        if not all(os.path.isabs(directory) for directory in trusted.directories):
            raise ConfigError("directories: expected a list of absolute paths")
    return trusted


def keys_that_need_trust(project: Path, environ: Mapping[str, str]) -> list[str]:
    """What of a project's file counts only if the directory is trusted. Raises ConfigError for a mistake in it."""
    from covey.config.untrusted import without_trust

    path = project / PROJECT_FILE
    raw, user = _read(path) or {}, _read(config_dir(environ) / "config.toml") or {}
    _check_leaves_to_the_user(path, raw)
    with blaming(path):
        check(_merge(expand(user, environ, []), expand(raw, environ, [])), Files)
    return without_trust(raw, load(None, None, environ).config)[1]


@contextmanager
def blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None


def _read(path: Path) -> dict[str, Any] | None:
    """The file as TOML; None when there is none. A link that leads nowhere was meant to be one."""
    text = read_text(path)
    if text is None:
        if path.is_symlink():
            raise ConfigError(f"{path}: is a link to {path.readlink()}, which is not there")
        return None
    with blaming(path):
        return parse(text)


def read_text(path: Path) -> str | None:
    """The file as text, with its line ends as they are; None when there is none."""
    try:
        with open_regular(path, follow_links=True) as (file, _):
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
        return content.decode("utf-8-sig")
    except NotRegular as found:
        what = "a directory" if found.is_directory else "something"
        raise ConfigError(f"{path}: is {what}, not a regular file") from None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def parse(text: str) -> dict[str, Any]:
    """TOML, within bounds. Raises ConfigError."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.count(".") > MAX_DOTS_IN_LINE:
            raise ConfigError(f"line {number} has more than {MAX_DOTS_IN_LINE} dots; write it as several lines")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # wider than TOMLDecodeError: a number with too many digits is one as well
        end = f"at line {len(lines)}, column {len(lines[-1]) + 1}"
        raise ConfigError(f"is not valid TOML: {str(error).replace('at end of document', end)}") from None


def _merge(below: dict[str, Any], above: dict[str, Any], key: str = "") -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        old = below.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _merge(old, value, dotted(key, name))
        elif key == "permissions" and isinstance(old, list) and isinstance(value, list):
            value = old + [rule for rule in value if rule not in old]
        merged[name] = value
    return merged


def _anchor_files(data: dict[str, Any], directory: Path) -> None:
    """A script, or the file of a model, is named from the file that names it, wherever the server was started."""
    for provider in data.get("providers", {}).values():
        for key in ("script", "model_file"):
            if provider.get(key):
                provider[key] = str(directory / os.path.expanduser(provider[key]))
