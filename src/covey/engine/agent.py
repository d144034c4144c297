"""What answers in a workspace: the configured model, the tools, and what the model reads about where it is."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from covey.config.defaults import ResolvedModel, Role, find, resolve
from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.schema import Config, ConfigError, ContextSettings, SearchSettings
from covey.context.custom_agents import CustomAgent, custom_agent
from covey.context.freedom import Freedom
from covey.context.prompt import Surroundings, agent_prompt, lines_for, read_surroundings, system_prompt
from covey.context.texts import NO_TEXTS, Texts
from covey.engine.expansion import NoPrompts, PromptSource
from covey.engine.model_cards import completed, model_info
from covey.lifecycle.budget import Price
from covey.models import families
from covey.models.base import KnowsWindows, ModelClient, ModelFailed, ToolSpec
from covey.models.connect import open_client
from covey.models.families import EditTool
from covey.protocol.effects import Effect
from covey.protocol.requests import AgentInfo, SelectedModel
from covey.tools.agent import that_only_looks, with_custom_agents
from covey.tools.base import Tool, without
from covey.tools.environment import tool_environment
from covey.tools.files import FileReads
from covey.tools.jobs import Jobs
from covey.tools.locales import in_utf8
from covey.tools.processes import LiveProcesses, LocalProcesses
from covey.tools.registry import for_writing_agents, make_tools, read_only
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

NO_MODEL = (
    "no usable model is configured. Log in to a provider with `covey login`, set OPENAI_API_KEY, ANTHROPIC_API_KEY or "
    "GEMINI_API_KEY, start a local server (Ollama, llama.cpp, LM Studio), get the embedded model with "
    "`covey models get`, or name a provider in "
    "~/.config/covey/config.toml (`covey config edit`); `covey help login` says more"
)

EDITING = frozenset({"edit", "multiedit"})
"""What apply_patch stands for, with models that are trained on it."""
ALONE = frozenset({"scripted", "embedded"})
"""The types of providers that are asked for nothing beside the work: a script has no answer to it, and a process of our
own has one place, in which the work would wait."""
TOLD_LIMIT = 1_000
"""Sessions whose surroundings are remembered; for an older one they are looked at anew."""


@dataclass(frozen=True, slots=True)
class ReadyModel:
    """A model that can be called."""

    client: ModelClient
    provider_id: str
    model_id: str
    max_tokens: int | None
    price: Price
    usual_window: int = 0
    """Tokens, as configured or as the catalogue says; 0: not known."""
    sees_images: bool = False
    effort: str = ""
    is_tiny: bool = False
    """Too small for tools and long instructions."""
    answers_aside: bool = True
    """It may be asked for something small while it works: it is no script, and has not one place for all requests."""
    edit_tool: EditTool = "edit"
    """By which tool it changes files."""
    families: tuple[families.Family, ...] = ()
    """By which it is told a few things that other models do not need."""
    max_attempts: int = 1
    """How often a step is asked for, if its answer breaks off."""

    @property
    def context_window(self) -> int:
        """Tokens that fit into it; 0: not known. A server may say that it is less than usual."""
        found = self.client.window_of(self.model_id) if isinstance(self.client, KnowsWindows) else 0
        return min(filter(None, (self.usual_window, found)), default=0)

    @property
    def reference(self) -> str:
        return f"{self.provider_id}/{self.model_id}"


class Agent:
    """The model and the tools of one workspace. Reloading never disturbs a turn that has them already."""

    def __init__(
        self,
        tag: str,
        root: Path,
        config: Config,
        env: Mapping[str, str],
        warnings: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.config = config
        self.warnings = warnings
        self._environ = os.environ if environ is None else environ
        """The server's own: a client's variables do not decide where the user's files are."""
        self.client_env = env
        self.processes: LiveProcesses = LocalProcesses(root)
        self.tag = tag
        """What marks the processes of the workspace: `workspace_tag`."""
        self.jobs = Jobs(self.processes, tag)
        self.reads = FileReads()
        self.tools: dict[str, Tool[Any]] = make_tools(self.processes, self.jobs, self.reads)
        self.more_tools: Callable[[], Mapping[str, Tool[Any]]] = dict
        """What extensions add, as it is now: each step sees the newest."""
        self.prompts: PromptSource = NoPrompts()
        """What people can ask for by name beside files."""
        self.untold: Callable[[str, int, Mapping[str, Tool[Any]]], Collection[str]] = lambda *_: ()
        """Of these tools, those that a session is not told of yet, as they would take too much of a context window."""
        self.look_around = look_around
        self.key_refused = False
        """A provider has refused a key since the configuration was read: perhaps there is a new one by now."""
        self._clients: dict[str, ModelClient] = {}
        self._retired: list[ModelClient] = []
        self._searching: tuple[SearchSettings, Tool[Any]] | None = None
        self._preferred: dict[Role, str] = {}
        """Models that somebody has chosen for this workspace, for as long as it is open."""
        self._known: dict[str, Surroundings] = {}
        """For each session, what its model read last about where it is."""

    @property
    def env(self) -> dict[str, str]:
        """For everything that tools start."""
        keys = PROVIDERS_KEYS.union(self.config.key_variables)
        return in_utf8(tool_environment({**self._environ, **self.client_env}, keys, self.config.tools.pass_env))

    @property
    def environ(self) -> Mapping[str, str]:
        """The server's variables, with those of the client that opened the workspace. It holds keys."""
        return {**self._environ, **self.client_env}

    def reload(self, config: Config, warnings: Sequence[str] = ()) -> None:
        self.warnings = warnings
        self.key_refused = False
        config = self._with_preferred(config)
        if config == self.config:
            return  # connections that are open stay so
        self.config = config
        self._retired.extend(self._clients.values())
        self._clients = {}

    def prefer(self, role: Role, reference: str) -> None:
        """Use another model than the configured one, from the next turn on. Raises ConfigError if nobody knows it."""
        find(self.config, reference)
        self._preferred[role] = reference
        self.config = self._with_preferred(self.config)

    def _with_preferred(self, config: Config) -> Config:
        """A preference for a provider that is gone has gone with it."""
        models = config.models
        for role, reference in self._preferred.items():
            if reference.partition("/")[0] in config.providers:
                models = msgspec.structs.replace(models, **{role: reference})
        return msgspec.structs.replace(config, models=models)

    @property
    def no_model(self) -> str:
        """What to tell somebody who has no model: also what in their files was not taken, and why."""
        without = [name for name, provider in self.config.providers.items() if not provider.models]
        hint = [f'The provider {name} lists no models: set models.large = "{name}/<model>".' for name in without]
        return "\n".join((NO_MODEL, *hint, *self.warnings))

    def choice(self, reference: str = "") -> ResolvedModel | None:
        """The model that a prompt would go to now; None: nothing usable is configured."""
        return find(self.config, reference) if reference else resolve(self.config, "large")

    def known_choice(self, reference: str = "") -> ResolvedModel | None:
        """The same, to be shown to people: also None if the reference or the configuration cannot be understood."""
        try:
            return self.choice(reference)
        except ConfigError:
            return None

    def model(self, reference: str = "") -> ReadyModel:
        """The model meant by `provider/model`, or the configured one.

        Raises ModelFailed or ConfigError if it cannot be built: the run fails with that.
        """
        choice = self.choice(reference)
        if choice is None:
            raise ModelFailed(self.no_model)
        return self._ready(choice)

    def small(self) -> ReadyModel | None:
        """The model that is configured for small things; None: the one that does the work does these too."""
        try:
            small = resolve(self.config, "small") if self.config.models.small else None
            return self._ready(small) if small else None
        except (ConfigError, ModelFailed) as error:
            log.warning("the small model cannot be used: %s", error)
            return None

    def fallback(self, tried: Sequence[str]) -> ReadyModel | None:
        """The next model to ask when those that were tried cannot be reached; None if there is none."""
        for reference in self.config.models.fallback:
            try:
                model = self._ready(find(self.config, reference))
            except (ConfigError, ModelFailed) as error:
                log.warning("the fallback %s cannot be used: %s", reference, error)
                continue
            if model.reference not in tried:
                return model
        return None

    def _ready(self, choice: ResolvedModel) -> ReadyModel:
        if (key := self.config.keys.get(choice.provider_id)) and key.problem:
            raise ModelFailed(key.problem, auth=True)
        client = self._clients.get(choice.provider_id)
        if client is None:
            client = self._clients[choice.provider_id] = open_client(choice.provider_id, choice.provider)
        settings = completed(choice.provider, choice.model)
        price = Price(
            settings.price_prompt or 0.0,
            settings.price_completion or 0.0,
            settings.price_cached,
            settings.price_cache_write,
        )
        return ReadyModel(
            client,
            choice.provider_id,
            settings.id,
            settings.max_tokens or None,
            price,
            usual_window=settings.context_window,
            sees_images=bool(settings.sees_images),
            effort=settings.effort,
            is_tiny=getattr(client, "is_tiny", False),
            answers_aside=choice.provider.type not in ALONE and getattr(client, "answers_aside", True),
            edit_tool=settings.edit_tool or families.edit_tool(settings.id),
            families=families.families(settings.id),
            max_attempts=choice.provider.max_attempts,
        )

    def effects(self) -> dict[str, Effect]:
        """What each tool does, by name: also of those that are not in use."""
        return {name: tool.effect for name, tool in self.all_tools().items()}

    def all_tools(self) -> dict[str, Tool[Any]]:
        """Our own, then those of extensions, which never take the place of one of ours."""
        own = {**self.tools, **self._search()}
        return {**own, **{name: tool for name, tool in self.more_tools().items() if name not in own}}

    def _search(self) -> dict[str, Tool[Any]]:
        """The tool for the search engine that is configured now, if one is."""
        settings = self.config.search
        if not settings.type:
            return {}
        if self._searching is None or self._searching[0] != settings:
            from covey.tools.web_search import SearchEngine, web_search_tool  # most people have none

            engine = SearchEngine(settings.type, settings.url, settings.api_key, settings.results)
            self._searching = (settings, web_search_tool(engine))
        return {"web_search": self._searching[1]}

    def find_tool(self, name: str) -> Tool[Any] | None:
        return self.tools.get(name) or self._search().get(name) or self.more_tools().get(name)

    def custom(self, session_id: str, name: str) -> CustomAgent | None:
        """The custom agent that works in a session; None: the ordinary one. Raises ConfigError if it is gone."""
        file = self.texts_of(session_id).find("agent", name) if name else None
        if name and file is None:
            raise ConfigError(f"there is no agent {name!r} any more")
        return custom_agent(file) if file else None

    def tools_for(self, *, plan: bool, delegate: bool, custom: CustomAgent | None = None) -> dict[str, Tool[Any]]:
        """The tools of a run; for a plan, and for most delegates, those that only look.

        They have commands too, of which those that are not harmless are denied, and what looks on the network, which is
        asked about as ever. A plan may send agents that only look.
        """
        tools = every = self.all_tools()
        if plan:
            more = ("bash", "fetch", "web_search")
            tools = read_only(every) | {name: every[name] for name in more if name in every}
            if "bash" in every:
                tools["bash"] = without(every["bash"], "background", "network", "unsandboxed")
            if "agent" in every and not delegate:
                tools["agent"] = that_only_looks(every["agent"])
        elif delegate:
            tools = for_writing_agents(every)
        disabled = set(self.config.tools.disabled)
        if disabled & {"edit", "write"}:
            disabled.add("apply_patch")  # which does what both of them do
        named = {name: tool for name, tool in tools.items() if custom is None or custom.has(name)}
        return {name: tool for name, tool in named.items() if name not in disabled}

    def _tools_of(
        self, model: ReadyModel, texts: Texts, custom: CustomAgent | None, freedom: Freedom, *, delegate: bool
    ) -> dict[str, Tool[Any]]:
        """The tools of a run, but none for other families of models, nor for skills and people that are not there."""
        tools = self.tools_for(plan=freedom.mode == "plan", delegate=delegate, custom=custom)
        unused = EDITING if model.edit_tool == "apply_patch" and "apply_patch" in tools else {"apply_patch"}
        if freedom.is_unattended:
            unused = {*unused, "question"}
        if not any(file.kind == "skill" and file.is_for_models for file in texts.files):
            unused = {*unused, "skill"}
        return {name: tool for name, tool in tools.items() if name not in unused}

    def tool_specs(
        self, session_id: str, model: ReadyModel, freedom: Freedom, *, delegate: bool, agent: str = ""
    ) -> list[ToolSpec]:
        """What the model learns about its tools, after it has read its system prompt."""
        if model.is_tiny:
            return []
        custom, texts = self.custom(session_id, agent), self.texts_of(session_id)
        tools = self._tools_of(model, texts, custom, freedom, delegate=delegate)
        untold = self.untold(session_id, model.context_window, tools)
        told = {name: tool for name, tool in tools.items() if name not in untold}
        means = (*told, *freedom.means)

        def description(tool: Tool[Any]) -> str:
            return lines_for(tool.description(), means) if tool.name in self.tools else tool.description()

        specs = {name: ToolSpec(name, description(tool), tool.schema) for name, tool in told.items()}
        if texts.all("agent") and (send := specs.get("agent")):
            specs["agent"] = replace(send, parameters=with_custom_agents(send.parameters))
        return list(specs.values())

    def texts_of(self, session_id: str) -> Texts:
        """Skills, commands and agents as the newest run of a session has them: later changes are for the next one."""
        known = self._known.get(session_id)
        return known.texts if known else NO_TEXTS

    async def system_prompt(
        self,
        session_id: str,
        model: ReadyModel,
        freedom: Freedom,
        *,
        delegate: bool,
        again: bool = False,
        agent: str = "",
    ) -> str:
        """What the model reads about itself and where it is: the same for all steps of a run.

        `again`: the run has read it before, and what it may do has changed since. `agent`: the custom one, by name.
        """
        plan = freedom.mode == "plan"
        known = self._known.pop(session_id, None)
        seen = await self.look_around(self.root, self.config.context, self._environ, (), model.reference, known)
        texts = known.texts if again and known else seen.texts
        self._known[session_id] = replace(seen, texts=texts)
        custom = self.custom(session_id, agent)
        # Those of extensions come and go, and what stands here must not change with them.
        has = self._tools_of(model, texts, custom, freedom, delegate=delegate)
        tools = tuple(name for name in has if name in self.tools)
        surroundings = replace(seen, tools=tools, families=model.families, texts=texts, window=model.context_window)
        self._known[session_id] = surroundings
        if len(self._known) > TOLD_LIMIT:
            del self._known[next(iter(self._known))]
        if delegate:
            return agent_prompt(surroundings, None if plan else freedom, custom)
        return system_prompt(surroundings, plan=plan, tiny=model.is_tiny, freedom=freedom)

    def info(self, *, is_busy: bool) -> AgentInfo:
        choice = self.known_choice()  # what is wrong with it whoever prompts gets to read
        if choice is None:
            return AgentInfo(is_busy=is_busy, is_ready=False, model=None, model_cfg=None)
        selected = SelectedModel(model=choice.model.id, provider=choice.provider_id)
        model = model_info(choice.provider, choice.model)
        return AgentInfo(is_busy=is_busy, is_ready=True, model=model, model_cfg=selected)

    async def close_retired(self) -> None:
        """Let go of connections that a configuration before this one opened. No turn may be under way."""
        retired, self._retired = self._retired, []
        for client in retired:
            await client.aclose()

    async def aclose(self) -> None:
        self._retired += self._clients.values()
        await self.close_retired()


async def look_around(
    root: Path,
    settings: ContextSettings,
    env: Mapping[str, str],
    tools: Sequence[str],
    model: str,
    known: Surroundings | None,
) -> Surroundings:
    return await in_thread(lambda: read_surroundings(root, settings, env, tools=tools, model=model, previous=known))
