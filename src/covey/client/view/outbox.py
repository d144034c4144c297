"""What the user has sent, until the server has it: prompts, and cancels with what they still have to end."""

from __future__ import annotations

from covey.client.view.commands import SendCancel, SendPrompt, ViewCommand
from covey.client.view.inputs import CancelAnswered, CancelAsked, PromptGiven, PromptRefused
from covey.client.view.records import SentCancel, SentPrompt
from covey.protocol.runs import PromptReceipt, Run


class Outbox:
    """Prompts by run id. One that has become a run is no longer here, so each is shown exactly once."""

    def __init__(self) -> None:
        self.prompts: dict[str, SentPrompt] = {}
        self.cancels: dict[tuple[str, str], SentCancel] = {}
        """By session and run."""

    def give(self, given: PromptGiven) -> list[ViewCommand]:
        """A second tap gives the same id again, and changes nothing. A refused prompt may be given again."""
        run_id = given.prompt.run_id
        known = self.prompts.get(run_id)
        if known and known.state != "refused":
            return []
        self.prompts[run_id] = SentPrompt(given.prompt, given.at)
        return [SendPrompt(run_id)]

    def accepted(self, receipt: PromptReceipt) -> None:
        """It stays until the run itself is known. One that has ended was posted before: it was known once."""
        if receipt.state not in ("accepted", "queued", "active", "folded"):
            self.prompts.pop(receipt.run_id, None)
        elif sent := self.prompts.get(receipt.run_id):
            sent.state, sent.error = "accepted", ""

    def refused(self, refusal: PromptRefused) -> None:
        if sent := self.prompts.get(refusal.run_id):
            sent.state, sent.error = "refused", refusal.message

    def cancel(self, asked: CancelAsked) -> list[ViewCommand]:
        key = asked.session_id, asked.run_id
        if key in self.cancels:
            return []
        self.cancels[key] = SentCancel(asked.session_id, asked.run_id, asked.at)
        return [SendCancel(asked.session_id, asked.run_id)]

    def cancel_answered(self, answered: CancelAnswered, open_runs: set[str]) -> None:
        key = answered.session_id, answered.run_id
        cancel = self.cancels.get(key)
        covered = {one.run_id: one for one in answered.receipt.covered if one.run_id in open_runs}
        if cancel and covered:
            cancel.covered = covered
        else:
            self.cancels.pop(key, None)

    def run_known(self, run: Run) -> None:
        """There is a run: its prompt is not on its way any more, and a cancel that waits for its end may be over."""
        self.prompts.pop(run.run_id, None)
        if not run.ended or not self.cancels:
            return
        for key, cancel in list(self.cancels.items()):
            if cancel.covered and cancel.covered.pop(run.run_id, None) and not cancel.covered:
                del self.cancels[key]

    def connected(self) -> list[ViewCommand]:
        """What got no answer is sent again: prompts and cancels of one run, which may come twice.

        A cancel of a session may not: it would cover prompts that were accepted after it.
        """
        commands: list[ViewCommand] = [SendPrompt(i) for i, sent in self.prompts.items() if sent.state == "sending"]
        for key, cancel in list(self.cancels.items()):
            if cancel.covered is None and cancel.run_id:
                commands.append(SendCancel(*key))
            elif cancel.covered is None:
                del self.cancels[key]
        return commands

    def drop_session(self, session_id: str) -> None:
        self.prompts = {i: sent for i, sent in self.prompts.items() if sent.prompt.session_id != session_id}
        self.cancels = {key: cancel for key, cancel in self.cancels.items() if key[0] != session_id}
