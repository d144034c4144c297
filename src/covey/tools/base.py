"""What a tool is. What it gets is written by a model: untrusted input, checked before anything happens."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from covey.machine.names import tag_within
from covey.permissions.judge import Intent
from covey.protocol.changes import Origin
from covey.protocol.effects import Effect
from covey.sandbox.confinement import Confinement
from covey.tools.arguments import explain, own_names
from covey.tools.live_output import OpenSink, no_sink


class ToolFailed(Exception):
    """The call failed, and the text tells the model why and how to go on. Not an error of ours."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for a model that sees."""

    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A file that a call or a command changed: its content before and after, None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0
    """Permission bits of the file before; 0 where there was none."""
    before_mark: str = ""
    after_mark: str = ""
    """What a content is known by that is not given, because it is too large or no regular file's."""
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call gave. `metadata` is for screens (a diff, an exit code), never for the model."""

    content: str
    is_error: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    image: Image | None = None
    files: tuple[FileVersion, ...] = ()
    """What the call changed, so that it can be undone."""


class Todo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a session's list of things to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    active_form: str = ""


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    description: str = ""


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that only a person can answer."""

    question: str
    type: Literal["yes_no", "single_choice", "multi_choice", "free_text"]
    description: str = ""
    choices: tuple[Choice, ...] = ()


class ToolHost(Protocol):
    """The few things that a tool asks of the server rather than of the machine. `engine` has the real one."""

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None: ...

    async def ask(self, context: ToolContext, questions: Sequence[Question]) -> list[str] | None:
        """The answers, in order; None: nobody wanted to answer. Waits until somebody does."""
        ...

    async def delegate(self, context: ToolContext, prompt: str, *, writes: bool = False, agent: str = "") -> str:
        """Let an agent in a session of its own work on it; gives its last words. Raises ToolFailed.

        `agent`: a custom one, by its name; '': the ordinary one.
        `writes`: it may change files and run commands, as far as whoever sends it may. Otherwise it only looks.
        """
        ...

    async def skill(self, context: ToolContext, name: str, file: str) -> ToolOutput:
        """What a skill says, or one of its further files. Raises ToolFailed."""
        ...

    async def diagnostics(self, context: ToolContext, path: Path) -> str:
        """What is wrong with a file that was just changed, for the model; '' if nothing, or if nobody knows."""
        ...


class NoHost:
    """For tools that run without a server, as in tests: nothing can be asked."""

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None:
        raise ToolFailed("There is no list of things to do here.")

    async def ask(self, context: ToolContext, questions: Sequence[Question]) -> list[str] | None:
        return None

    async def delegate(self, context: ToolContext, prompt: str, *, writes: bool = False, agent: str = "") -> str:
        raise ToolFailed("There is nobody here to delegate to.")

    async def skill(self, context: ToolContext, name: str, file: str) -> ToolOutput:
        raise ToolFailed("There are no skills here.")

    async def diagnostics(self, context: ToolContext, path: Path) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call happens."""

    root: Path
    """The workspace's directory, resolved."""
    session_id: str
    run_id: str
    call_id: str
    env: Mapping[str, str]
    """The whole environment for processes that the call starts."""
    process_tag: str
    """A value unique to this run on this machine; each process of the run carries it in its environment."""
    sees_images: bool = False
    """Whether the model can look at a picture."""
    spill_dir: Path | None = None
    """Where results of this session that are too long are kept in full, to be viewed. It may not exist yet."""
    denied: tuple[str, ...] = ()
    """The user's deny rules, for tools that look at more than the one thing that they ask for."""
    host: ToolHost = field(default_factory=NoHost)
    open_sink: OpenSink = no_sink
    """For a tool that takes long: where what it prints meanwhile is seen."""
    confinement: Confinement = field(default_factory=Confinement)
    """What its processes are confined by. Only known once the call may run, and for tools that start processes."""

    @property
    def safe_call_id(self) -> str:
        """The call's id comes from a model: without what has no place in a file's name or an environment variable."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.call_id)[:64]

    @property
    def call_tag(self) -> str:
        """What the processes of this call carry: within the run's tag, so that the end of the run finds them."""
        return tag_within(self.process_tag, self.safe_call_id)


P = TypeVar("P")
S = TypeVar("S", bound=msgspec.Struct)

RESULT_LIMIT = 30_000
"""Characters of a result that a model gets, some 8,000 tokens; `spill.bounded` keeps the rest to be viewed."""


def parameters(params: Any, context: ToolContext) -> dict[str, Any]:
    """The preview of a tool that has nothing better to show: its parameters as they are."""
    del context
    values: dict[str, Any] = msgspec.to_builtins(params)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[P]):
    """One tool, as the engine sees it. It belongs to one workspace: its functions may share what was learned there.

    Nothing here is particular to the tools of this package: a schema that came from elsewhere will do.
    """

    name: str
    effect: Effect
    description: Callable[[], str]
    """What the model reads. Made when it is needed, as it may be in a file."""
    schema: dict[str, Any]
    """The JSON Schema of the parameters, with nothing but the object itself."""
    decode: Callable[[str], P]
    """The checked parameters; raises ToolFailed with a sentence that helps the model to correct itself."""
    own_names: Callable[[str], str] = lambda text: text
    """The input of a call by the names of `schema`, where the model used those of another agent. Whoever looks into an
    input rather than at decoded parameters, such as a hook, gets this one: a rule must not depend on a synonym."""
    prepare: Callable[[P, ToolContext], Coroutine[Any, Any, P]] | None = None
    """For a tool that has to look before it can say what a call would do: the parameters with what it found. It only
    looks, and at nothing that would have to be asked about. Raises ToolFailed: the call ends there."""
    intent: Callable[[P, ToolContext], Intent]
    """What the call is about to do, for the permission decision. Must not touch anything.

    Raises ToolFailed if that cannot even be said (a path that leads nowhere): the call ends there.
    """
    describe: Callable[[P, ToolContext], str]
    """One line for the person who is asked."""
    preview: Callable[[P, ToolContext], dict[str, Any]] = parameters
    """What the person who is asked gets to see.

    May read files: call it in a thread. Raises ToolFailed if the call cannot succeed: then nobody need be asked.
    """
    run: Callable[[P, ToolContext], Coroutine[Any, Any, ToolOutput]]
    """Do it. Cancelling the task stops it and all processes it started, and returns when they are gone."""
    independent: bool = False
    """Calls of one step may run at the same time even where the effect alone does not say so."""
    alone: Callable[[P], bool] = lambda params: False
    """Which of them may not, all the same: they change what the others see."""
    starts_processes: bool = False
    """Its calls start processes, which have to be confined."""
    result_limit: int = RESULT_LIMIT

    @property
    def parallel(self) -> bool:
        """Calls of one step may run at the same time, unless a call is one for itself."""
        return self.effect.is_parallel or self.independent

    def is_parallel(self, text: str) -> bool:
        """Whether the call with this input may run at the same time as others of its step."""
        try:
            return self.parallel and not self.alone(self.decode(text))
        except ToolFailed:
            return self.parallel  # it will not run


def built_in(
    name: str,
    effect: Effect,
    params: type[S],
    *,
    intent: Callable[[S, ToolContext], Intent],
    run: Callable[[S, ToolContext], Coroutine[Any, Any, ToolOutput]],
    describe: Callable[[S, ToolContext], str] | None = None,
    preview: Callable[[S, ToolContext], dict[str, Any]] = parameters,
    independent: bool = False,
    alone: Callable[[S], bool] = lambda params: False,
    starts_processes: bool = False,
    result_limit: int = RESULT_LIMIT,
) -> Tool[S]:
    """A tool of this package: a msgspec struct gives its schema and its decoder, the .md file of its name describes it.

    `intent` need not mention the effect. Without `describe` the subject of the intent is the line that people read.
    """

    def with_effect(given: S, context: ToolContext) -> Intent:
        return replace(intent(given, context), effect=effect)

    return Tool(
        name=name,
        effect=effect,
        description=lambda: _text_of(name),
        schema=schema_of(params),
        own_names=lambda text: own_names(text, schema_of(params)),
        decode=lambda text: _decoded(name, text, params),
        intent=with_effect,
        describe=describe or (lambda given, context: intent(given, context).subject),
        preview=preview,
        run=run,
        independent=independent,
        alone=alone,
        starts_processes=starts_processes,
        result_limit=result_limit,
    )


def without(tool: Tool[P], *names: str) -> Tool[P]:
    """The same tool for a model that is not told of these parameters."""
    properties = {name: about for name, about in tool.schema.get("properties", {}).items() if name not in names}
    return replace(tool, schema={**tool.schema, "properties": properties})


def _decoded(name: str, text: str, params: type[S]) -> S:
    try:
        return msgspec.json.decode(own_names(text, schema_of(params)) or "{}", type=params)
    except (msgspec.MsgspecError, UnicodeError) as error:
        why = explain(str(error), schema_of(params))
        raise ToolFailed(f"The input of {name} is not valid: {why} Correct it and call again.") from None


@cache
def _text_of(name: str) -> str:
    return resources.files("covey.tools").joinpath(f"{name}.md").read_text("utf-8").strip()


@cache
def schema_of(params: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct. Made once for all workspaces: it takes longer than a step may wait."""
    (_,), components = msgspec.json.schema_components([params])
    schema: dict[str, Any] = _inlined(components[params.__name__], components)
    return schema


def _inlined(schema: Any, components: Mapping[str, Any]) -> Any:
    """A schema without references, which not every provider follows, and without names of our own classes."""
    if isinstance(schema, list):
        return [_inlined(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(components[schema["$ref"].rpartition("/")[2]], components)
    if "enum" in schema and "type" not in schema:
        return {"type": "string", **schema}  # all of ours are, and some providers insist
    if schema.get("type") == "object":
        schema = {key: schema[key] for key in ("type", "properties", "required") if key in schema}
    return {key: _inlined(value, components) for key, value in schema.items()}


def resolve(context: ToolContext, path: str) -> Path:
    """`path` as the model wrote it, made absolute and free of links and `..`."""
    try:
        found = (context.root / Path(path).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, a NUL character
        raise ToolFailed(f"The path {path!r} leads nowhere: {error}.") from None
    own = context.spill_dir
    # A long result of this session that another node has kept is here under the same name, in this one's directory.
    return own / found.name if own and found.parent.parts[-3:] == own.parts[-3:] else found


def is_inside(context: ToolContext, path: Path) -> bool:
    return path.is_relative_to(context.root)
