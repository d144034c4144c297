"""One tool call: check it, ask if need be, run it, and turn whatever happens into a result for the model."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from covey.context.freedom import Freedom
from covey.context.mentions import shortfall
from covey.engine.agent import Agent
from covey.engine.asks.permissions import PermissionDesk
from covey.engine.command_changes import Changes
from covey.engine.confining import Confining, Permit, Refusal
from covey.engine.session_book import SessionBook
from covey.engine.turns.beginnings import Beginnings
from covey.engine.turns.file_versions import owning_turn
from covey.engine.turns.hooks import HOOK_SAYS, TurnHooks
from covey.engine.turns.host import EngineHost
from covey.engine.turns.long_results import LongResults
from covey.engine.turns.watching import Watching
from covey.engine.world import World
from covey.lifecycle.budget import Purse
from covey.lifecycle.hooks import HookAnswer, HookDecision
from covey.machine.names import run_tag
from covey.permissions.judge import Intent, Judgement, Verdict, sentence, session_rule
from covey.permissions.network import may_need_network
from covey.permissions.outside import read_outside
from covey.permissions.prefixes import prefix_rules
from covey.permissions.reach import Reach
from covey.permissions.shell import parse
from covey.protocol.effects import Effect
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import BinaryPart, Message, SessionMode, ToolCall, ToolResult
from covey.protocol.runs import Run, RunOptions
from covey.tools.base import RESULT_LIMIT, Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.live_output import OpenSink
from covey.tools.seen_files import brought_along, seen_in
from covey.tools.spill import bounded
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

JOB_NAMED = re.compile(r'"job_id":\s*"(job-\d{1,9})"', re.ASCII)

FORBIDDEN = "Do not try it again in another way; go on without it."
NOT_FOR_PLANS = "this run only looks and makes a plan. Say what you would do."
NOT_FOR_LOOKERS = "you only look and report. Say what should be done."
ONLY_LOOKS = "You only look: you change nothing, and run no command that could."
CHANGED_SINCE = (
    "Nothing was done: the path leads elsewhere than when it was judged, because a link on it was changed. "
    "Look where it leads now, and call again."
)


@dataclass(frozen=True, slots=True)
class Done:
    """A call that has ended."""

    result: ToolResult
    changes: Changes = field(default_factory=Changes)
    """What it changed: written together with its result."""


class ToolCalls:
    """Runs tool calls for the turns of one workspace."""

    def __init__(
        self,
        agent: Agent,
        desk: PermissionDesk,
        world: World,
        workspace_id: str,
        host: EngineHost,
        long_results: LongResults,
        confining: Confining,
        sessions: SessionBook,
        watching: Watching,
        hooks: TurnHooks,
    ) -> None:
        self._agent = agent
        self._desk = desk
        self._world = world
        self._workspace_id = workspace_id
        self._host = host
        self.long_results = long_results
        self._confining = confining
        self._sessions = sessions
        self.watching = watching
        self._hooks = hooks

    def process_tag(self, run_id: str) -> str:
        """What marks the processes of a run, also after a crash of this server."""
        return run_tag(self._workspace_id, run_id)

    def purse_of_principal(self, run_id: str) -> Purse | None:
        """The money of the run which this one works for, if there is one."""
        return self._host.purse_of_principal(run_id)

    def recall(self, session_id: str, messages: Sequence[Message]) -> None:
        """Know what a session can still read of skills, and what it had seen of its files before this was opened."""
        self._host.skills.recall(session_id, messages)
        for job_id in _jobs_named(messages):
            self._agent.jobs.number_after(job_id)
        if self._agent.reads.needs_recall(session_id):
            self._agent.reads.recall(session_id, seen_in(messages))

    def forget_skills(self, session_id: str) -> None:
        """A summary stands for all before it: what was said of skills is gone from what the model sees."""
        self._host.skills.forget(session_id)

    async def take_in(self, run: Run, prompts: Sequence[Message]) -> None:
        """Files that came along with prompts count as seen; people are told which the model does not see whole."""
        if not any(isinstance(part, BinaryPart) for prompt in prompts for part in prompt.parts):
            return
        session_id, root = prompts[0].session_id, self._agent.root
        for path, version in await in_thread(lambda: list(brought_along(prompts, root))):
            self._agent.reads.record(session_id, path, version)
        parts = [part.data for prompt in prompts for part in prompt.parts if isinstance(part, BinaryPart)]
        told = (shortfall(part.Path, base64.b64decode(part.Data)) for part in parts if part.MIMEType == "text/plain")
        self._hooks.tell(run, list(filter(None, told)))

    def groups(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """The calls of a step in order; those that may run at the same time are together."""
        groups: list[list[ToolCall]] = []
        together = False
        for call in calls:
            tool = self._agent.find_tool(call.name)
            parallel = tool is not None and tool.is_parallel(call.input)
            if parallel and together:
                groups[-1].append(call)
            else:
                groups.append([call])
            together = parallel
        return groups

    async def run(
        self,
        call: ToolCall,
        run: Run,
        waiting_on: Callable[[str], None],
        open_sink: OpenSink,
        beginnings: Beginnings,
        *,
        sees: bool,
        offered: Sequence[str],
    ) -> Done:
        """The result of a call. Only cancelling it raises.

        `beginnings` are told before the tool does anything that could have effects; `sees`: the model can be shown
        pictures; `offered`: the names of the tools that it was told of.
        """
        context = self._context(call, run, open_sink, sees=sees)
        changes = Changes()
        try:
            output, changes = await self._run(call, run, context, waiting_on, beginnings, offered)
            self._host.files_changed(changes)
        except ToolFailed as error:
            never_ran = {} if call.id in beginnings.begun else {"never_ran": True}
            output = ToolOutput(str(error), is_error=True, metadata=never_ran)
        except Exception as error:
            log.exception("tool %s failed", call.name)
            output = ToolOutput(f"The tool failed: {type(error).__name__}: {error}", is_error=True)
        content = await self._bounded(_printable(output.content), call.name, context)
        await self.long_results.keep(content)
        result = ToolResult(
            tool_call_id=call.id,
            name=call.name,
            content=content,
            metadata=msgspec.json.encode(output.metadata).decode() if output.metadata else "",
            is_error=output.is_error,
            data=base64.b64encode(output.image.data).decode() if output.image else None,
            mime_type=output.image.mime_type if output.image else None,
        )
        return Done(result, changes)

    async def _bounded(self, content: str, name: str, context: ToolContext) -> str:
        tool = self._agent.find_tool(name)
        limit = tool.result_limit if tool else RESULT_LIMIT
        return content if len(content) <= limit else await in_thread(lambda: bounded(content, context, limit))

    def _context(self, call: ToolCall, run: Run, open_sink: OpenSink, *, sees: bool) -> ToolContext:
        return ToolContext(
            root=self._agent.root,
            session_id=run.session_id,
            run_id=run.run_id,
            call_id=call.id,
            env=self._agent.env,
            process_tag=self.process_tag(run.run_id),
            sees_images=sees,
            spill_dir=self.long_results.directory(run.session_id),
            denied=self._desk.rules.deny,
            host=self._host,
            open_sink=open_sink,
        )

    async def _run(
        self,
        call: ToolCall,
        run: Run,
        context: ToolContext,
        waiting_on: Callable[[str], None],
        beginnings: Beginnings,
        offered: Sequence[str],
    ) -> tuple[ToolOutput, Changes]:
        mode = self.mode_of(run)
        plan, delegate = mode == "plan", self._host.is_delegate(run.session_id)
        custom = self._agent.custom(run.session_id, run.effective_options.agent)
        tools = self._agent.tools_for(plan=plan, delegate=delegate, custom=custom)
        tool = tools.get(call.name)
        if tool is None and plan and self._agent.find_tool(call.name):
            raise ToolFailed(f"{call.name} is not available: {NOT_FOR_LOOKERS if delegate else NOT_FOR_PLANS}")
        if tool is None:
            raise ToolFailed(f"There is no tool {call.name!r}. There are: {', '.join(offered)}.")
        params = tool.decode(call.input)
        if tool.prepare:
            waiting_on(f"tool:{call.name}")
            params = await tool.prepare(params, context)
        options = run.effective_options
        intent = tool.intent(params, context)
        paths = [each.subject for each in intent.each if each.action == "write"]
        self._hooks.announce("PreToolUse", waiting_on)
        hooked = await self._hooks.before_call(run, tool, call.id, tool.own_names(call.input), paths, mode)
        if hooked.answer.decision is HookDecision.DENY:
            refusal = f"A hook forbids it: {hooked.answer.reason.rstrip('.')}."
            return ToolOutput(refusal, is_error=True, metadata={"denied": "hook"}), Changes()
        if hooked.is_rewritten:  # it is checked and judged like any other input, and whoever is asked sees it
            params = tool.decode(hooked.input)
            intent = tool.intent(params, context)

        def asks() -> None:
            waiting_on("permission")
            beginnings.asked(call)

        permit = await self._permit(tool, params, intent, context, asks, options, mode, hooked.answer)
        if isinstance(permit, Refusal):
            return ToolOutput(permit.text, is_error=True, metadata={"denied": permit.by}), Changes()
        if [each.grant for each in tool.intent(params, context).each] != [each.grant for each in intent.each]:
            raise ToolFailed(CHANGED_SINCE)
        waiting_on(f"tool:{call.name}")
        if tool.starts_processes:
            # In plan mode only what is harmless gets here, whoever may have allowed it.
            permit = Permit(approved=False) if plan else permit
            results = self.long_results.directory(run.session_id)
            seen = read_outside(intent, self._desk.rules.root) if permit.to_the_letter else ()
            confinement = await self._confining.confinement(permit, options.sandbox, results, seen)
            context = replace(context, confinement=confinement)
        await beginnings.begins(call)
        output, changes = await self.watching.run(tool, params, context, intent, owning_turn(run, self._sessions))
        output = _with_context(output, hooked.answer.context)
        self._hooks.announce("PostToolUse", waiting_on)
        return await self._hooks.after_call(run, tool, call.id, hooked.input, output, mode), changes

    def freedom_of(self, run: Run) -> Freedom:
        """What a run may do without asking, as far as that is known before it asks."""
        options, rules = run.effective_options, self._desk.rules
        return Freedom(
            self.mode_of(run),
            asks_nobody=options.yolo or self._desk.skip,
            allowed=rules.allow + options.allow,
            denied=rules.deny,
            is_sandboxed=self._confining.is_on(options.sandbox),
            is_unattended=options.unattended,
        )

    def mode_of(self, run: Run) -> SessionMode:
        """What is asked about in a run: as its prompt says, else its session, or the one that it writes for.

        Whatever else happens in the session of an agent only looks.
        """
        options = run.effective_options
        if options.plan or (self._host.is_delegate(run.session_id) and not options.writes_for):
            return "plan"
        session = self._sessions.find(owning_turn(run, self._sessions).session_id)
        mode = (session and session.mode) or "ask"
        return "accept_edits" if mode == "ask" and options.accept_edits else mode

    def _reason(self, judgement: Judgement, hooked: HookAnswer, session_id: str, intent: Intent) -> str:
        """Why somebody is asked, and what they might want to know besides."""
        by_hook = hooked.decision is HookDecision.ASK
        said = [hooked.reason or "A hook wants you to decide."] if by_hook else []
        if judgement.verdict is Verdict.ASK or not by_hook:
            said.append(sentence(judgement))
        if (wish := intent.reach.wish) and judgement.tag != wish:
            said.append(sentence(Judgement(Verdict.ASK, wish)))
        return " ".join(filter(None, (*said, self._host.skills.wish(session_id, intent.tool))))

    async def _permit(
        self,
        tool: Tool[Any],
        params: Any,
        intent: Intent,
        context: ToolContext,
        asks: Callable[[], None],
        options: RunOptions,
        mode: SessionMode,
        hooked: HookAnswer,
    ) -> Permit | Refusal:
        """What the call may do, or why it may not run. `asks` is called before somebody is asked."""
        session_id, run_id = self._host.principal(context)
        runs_commands = tool.starts_processes and tool.effect is Effect.RUNS_COMMANDS
        prospect = await self._confining.prospect(options.sandbox) if runs_commands else None
        judgement = self._desk.decide(
            intent, session_id, options, mode=mode, confines=prospect is not None and prospect.holds
        )
        if judgement.verdict is Verdict.DENY:
            looks = judgement.tag == "plan" and self._host.is_delegate(context.session_id)
            return Refusal(f"{ONLY_LOOKS if looks else sentence(judgement)} {FORBIDDEN}", by="rule")
        custom = self._agent.custom(context.session_id, options.agent)
        agent_asks = custom is not None and custom.asks_about(tool.name) and judgement.tag != "skip"
        if judgement.verdict is Verdict.ALLOW and not agent_asks and not _hook_asks(hooked, judgement):
            return Permit.of(judgement)
        if _hook_allows(hooked, judgement, intent) and not agent_asks:
            return Permit(approved=True)
        if prospect and prospect.refusal:
            return Refusal(f"The command cannot run: {prospect.refusal}", by="sandbox")
        asks()
        # Where a rule, a hook or an agent wants somebody to be asked, a rule that allows it would change nothing.
        by_rule = judgement.tag != "ask-rule" and hooked.decision is not HookDecision.ASK and not agent_asks
        request = PermissionRequest(
            id=self._world.new_id(),
            session_id=session_id,
            tool_call_id=context.call_id,
            tool_name=tool.name,
            description=tool.describe(params, context),
            action=intent.action,
            params=await in_thread(lambda: tool.preview(params, context)),
            path=str(context.root),
            run_id=run_id,
            reason=self._reason(judgement, hooked, context.session_id, intent),
            rules=session_rule(intent, self._desk.rules) if by_rule else (),
            prefix_rules=prefix_rules(intent, self._desk.rules) if by_rule else (),
            network=intent.reach >= Reach.NETWORK or (runs_commands and _may_connect(intent)),
            sandbox=prospect.text if prospect else None,
            confined=prospect is not None and prospect.confines_network,
            asks_for=intent.reach.wish,
        )
        return await self._desk.ask(request, intent)


def _jobs_named(messages: Sequence[Message]) -> Iterator[str]:
    """The names of jobs that calls of a session have given out, also where nothing is kept of them any more."""
    for message in messages:
        for result in message.tool_results:
            if result.name == "bash" and (found := JOB_NAMED.search(result.metadata)):
                yield found[1]


def _hook_asks(hooked: HookAnswer, judgement: Judgement) -> bool:
    """Whether a hook wants somebody to be asked about what would be allowed. Yolo answers for people here too."""
    return hooked.decision is HookDecision.ASK and judgement.tag != "skip"


def _hook_allows(hooked: HookAnswer, judgement: Judgement, intent: Intent) -> bool:
    """A hook spares a person a question, but lifts no rule, and gives a command no further reach (H2)."""
    return hooked.decision is HookDecision.ALLOW and judgement.tag != "ask-rule" and not intent.reach


def _with_context(output: ToolOutput, context: str) -> ToolOutput:
    return replace(output, content=f"{output.content}\n\n{HOOK_SAYS.format(text=context)}") if context else output


def _may_connect(intent: Intent) -> bool:
    return may_need_network(parse(intent.subject), intent.subject)


def _printable(text: str) -> str:
    """A file name that is no UTF-8 comes with characters that JSON cannot hold, also inside an error's text."""
    return text.encode("utf-8", "replace").decode()
