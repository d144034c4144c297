"""What the result of a command says about the sandbox: to the model, and as metadata for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from covey.sandbox.denials import Denial, Remedy
from covey.sandbox.policy import Network, Policy


def sandbox_note(denial: Denial | None, put_back: Sequence[str], unseen: Sequence[str]) -> str:
    """For the model: what was refused or stays unseen, and the way out. Empty if the sandbox made no difference."""
    notes = []
    if put_back:
        notes.append(f"Protected from commands, and put back as it was: {', '.join(put_back)}.")
    if unseen:
        notes.append(
            f"Private to commands, so the user does not see what is written there: {', '.join(unseen)}. Files for the "
            "user belong in the workspace; if it must be there, call bash again with unsandboxed set to true."
        )
    if denial:
        notes.append(f"{denial.for_model} {_way_out(denial.remedy)}")
    return f"[sandbox: {' '.join(notes)}]" if notes else ""


def _way_out(remedy: Remedy) -> str:
    match remedy:
        case Remedy.NETWORK:
            return "If it is needed, call bash again with network set to true."
        case Remedy.CREDENTIALS | Remedy.WRITE | Remedy.OUTSIDE:
            return "If it is needed, call bash again with unsandboxed set to true, or do without."
        case Remedy.ASK:
            return "If it is needed, call bash again with network set to true: the user is asked then."
        case _:
            assert_never(remedy)


def sandbox_facts(
    policy: Policy | None, denial: Denial | None, put_back: Sequence[str], unseen: Sequence[str]
) -> dict[str, Any]:
    """For screens: how the command was confined, what was refused, and where it may have written unseen."""
    if policy is None:
        return {}
    facts: dict[str, Any] = {"policy": policy.kind.value, "network": policy.network is Network.ALLOWED}
    if denial:
        facts["denied"] = {"what": denial.for_model, "remedy": denial.remedy.value, "offer": denial.for_person}
    if put_back:
        facts["put_back"] = list(put_back)
    if unseen:
        facts["unseen"] = list(unseen)
    return {"sandbox": facts}
