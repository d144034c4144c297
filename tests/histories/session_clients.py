"""The clients of one session: what they can send, and what they remember of the answers. They decide nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import hypothesis.strategies as st

from tests.histories import lane_spec
from tests.histories.lane_spec import Prompt, Request, Spec, World, in_session
from tests.support.server import Answer

TOKEN = re.compile(r"<(\w+):(\w+)>")
"""How a prompt says which one it is, and what the model is to do."""
KINDS = (
    *("post",) * 14, "twins", "again", "other", "elsewhere", *("cancel",) * 2, *("cancel_run",) * 2, "cancel_early",
    "post_early", "clear", "remove", "edit", "unknown", "listing", "counting", "busy", "look", "delete",
)  # fmt: skip
"""What a client may do. Mostly it prompts: else there would be nothing to do the rest to."""


@dataclass(frozen=True)
class Command:
    """One thing that a client does."""

    kind: str
    pick: int
    """Which run it is about, of those that there are."""
    mode: str | None
    script: str
    has_id: bool


COMMANDS = st.builds(
    Command,
    kind=st.sampled_from(KINDS),
    pick=st.integers(0, 30),
    mode=st.sampled_from((None, None, "fold", "own_turn")),
    script=st.sampled_from(("plain", "plain", "tool", "fail")),
    has_id=st.booleans(),
)


class Clients:
    """All who talk about one session."""

    def __init__(self, session_id: str, name: str, numbers: Iterator[int]) -> None:
        self.spec = Spec()
        self.accepted: dict[str, Prompt] = {}
        """By run id: what was answered with 202."""
        self.cancelled: set[str] = set()
        """Runs that were reported to somebody as cancelled."""
        self.texts: dict[str, set[str]] = {}
        """By run id: what the text of its prompt may be in the end."""
        self.session_id = session_id
        self._name = name
        self._numbers = numbers
        self._early: list[str] = []
        """Ids that were cancelled before anybody posted them."""

    def requests(self, command: Command, elsewhere: Clients) -> list[Request]:
        """What to send; nothing if there is nothing yet that the command could be about."""
        if command.kind == "elsewhere":
            return self._taken(command, elsewhere)
        build: Callable[[Command], list[Request]] = getattr(self, f"_{command.kind}")
        return build(command)

    def remember(self, request: Request, answer: Answer, *, alone: bool) -> None:
        if request.prompt and (run_id := request.posted(answer)):
            self.accepted.setdefault(run_id, request.prompt)
            self.texts.setdefault(run_id, {text_of(request.prompt)})
        if answer.status == 200 and isinstance(answer.body, dict):
            self.cancelled.update(covered["run_id"] for covered in answer.body.get("covered", ()))
            if request.method == "PATCH":
                kept = set() if alone else self.texts[answer.body["run_id"]]
                self.texts[answer.body["run_id"]] = kept | {answer.body["prompt"]}

    # ── prompts ──

    def _new_prompt(self, command: Command, run_id: str) -> Prompt:
        mode = command.mode or ("own_turn" if run_id else "fold")
        return Prompt(f"{self._name}{next(self._numbers)}", command.script, mode)

    def _posting(self, prompt: Prompt, run_id: str, mode: str | None, *, same: bool = True) -> Request:
        body = {"session_id": self.session_id, "prompt": text_of(prompt), "run_id": run_id, "mode": mode}
        return Request("POST", "/agent", lane_spec.post(run_id, prompt, same=same), body, prompt)

    def _post(self, command: Command) -> list[Request]:
        run_id = f"{self._name}-run-{next(self._numbers)}" if command.has_id else ""
        return [self._posting(self._new_prompt(command, run_id), run_id, command.mode)]

    def _twins(self, command: Command) -> list[Request]:
        return self._post(Command("post", command.pick, command.mode, command.script, has_id=True)) * 2

    def _post_early(self, command: Command) -> list[Request]:
        if not self._early:
            return []
        run_id = self._early.pop()
        return [self._posting(self._new_prompt(command, run_id), run_id, command.mode)]

    def _again(self, command: Command) -> list[Request]:
        """The id of a run that the server has named works as well as one of one's own."""
        if not (run_id := self._chosen(command)):
            return []
        prompt = self.accepted[run_id]
        return [self._posting(prompt, run_id, prompt.mode)]

    def _other(self, command: Command) -> list[Request]:
        if not (run_id := self._chosen(command)):
            return []
        return [self._posting(self._new_prompt(command, run_id), run_id, command.mode, same=False)]

    def _taken(self, command: Command, owner: Clients) -> list[Request]:
        """A run id of another session, with the same text: it is the other session's all the same."""
        if not (run_id := owner._chosen(command)):
            return []
        prompt = owner.accepted[run_id]
        body = {"session_id": self.session_id, "prompt": text_of(prompt), "run_id": run_id, "mode": prompt.mode}
        return [Request("POST", "/agent", in_session(lane_spec.refused(409, "run_id_reused")), body)]

    # ── everything else ──

    def _chosen(self, command: Command) -> str:
        runs = list(self.accepted)
        return runs[command.pick % len(runs)] if runs else ""

    def _below(self, path: str) -> str:
        return f"/agent/sessions/{self.session_id}{path}"

    def _cancel(self, command: Command) -> list[Request]:
        return [Request("POST", self._below("/cancel"), lane_spec.cancel)]

    def _cancel_run(self, command: Command) -> list[Request]:
        run_id = self._chosen(command)
        return [Request("POST", f"/runs/{run_id}/cancel", lane_spec.cancel_run(run_id))] if run_id else []

    def _cancel_early(self, command: Command) -> list[Request]:
        run_id = f"{self._name}-early-{next(self._numbers)}"
        self._early.append(run_id)
        return [Request("POST", f"/runs/{run_id}/cancel", lane_spec.cancel_run(run_id))]

    def _clear(self, command: Command) -> list[Request]:
        return [Request("POST", self._below("/prompts/clear"), lane_spec.clear)]

    def _remove(self, command: Command) -> list[Request]:
        run_id = self._chosen(command)
        path = self._below(f"/prompts/{run_id}")
        return [Request("DELETE", path, lane_spec.change(run_id, drops=True))] if run_id else []

    def _edit(self, command: Command) -> list[Request]:
        if not (run_id := self._chosen(command)):
            return []
        body = {"prompt": f"{text_of(self.accepted[run_id])}, changed {next(self._numbers)} times"}
        return [Request("PATCH", self._below(f"/prompts/{run_id}"), lane_spec.change(run_id, drops=False), body)]

    def _unknown(self, command: Command) -> list[Request]:
        step = lane_spec.change("nobody", drops=True)
        return [Request("DELETE", self._below("/prompts/nobody"), step)]

    def _listing(self, command: Command) -> list[Request]:
        def step(world: World, answer: Answer) -> list[World]:
            seen = [TOKEN.findall(prompt)[0][0] for prompt in answer.body]
            return [world] if seen == [self.spec.prompts[run.run_id].token for run in world.lane.queued] else []

        return [Request("GET", self._below("/prompts/list"), in_session(step))]

    def _counting(self, command: Command) -> list[Request]:
        return [Request("GET", self._below("/prompts/queued"), in_session(lane_spec.count))]

    def _busy(self, command: Command) -> list[Request]:
        return [Request("GET", self._below(""), in_session(lane_spec.is_busy))]

    def _look(self, command: Command) -> list[Request]:
        run_id = self._chosen(command) or "nobody"
        return [Request("GET", f"/runs/{run_id}", lane_spec.look(run_id))]

    def _delete(self, command: Command) -> list[Request]:
        """Not often: it is the end of the story."""
        if command.pick % 3:
            return []
        return [Request("DELETE", f"/sessions/{self.session_id}", in_session(lane_spec.delete), deletes=True)]


def text_of(prompt: Prompt) -> str:
    return f"<{prompt.token}:{prompt.script}> please"
