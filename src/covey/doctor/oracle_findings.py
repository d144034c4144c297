"""What can be wrong with a store, and what each of it means to people. Knows no SQL and repairs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class FindingKind(NamedTuple):
    """One way in which a store can break its promises."""

    means: str
    repair: str
    """What `covey doctor --repair` does about it; '' if it can do nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise that is broken."""

    kind: str
    what: str
    workspace_id: str = ""
    subject: str = ""
    """The id of the run, message or session, or the number of the event, that it is about."""

    def __str__(self) -> str:
        return f"{self.workspace_id}: {self.what}" if self.workspace_id else self.what

    @property
    def explanation(self) -> FindingKind:
        return KINDS[self.kind]


_NEW_EPOCH = "begins a new epoch of the event log: clients that come back get a gap and load everything again"
_FROM_THE_LOG = "writes the row again from the event log"

KINDS: dict[str, FindingKind] = {
    # ── the file ──
    "damaged_file": FindingKind(
        "the disk or another program has damaged the file: what is on the damaged pages cannot be read any more",
        "copies every row that can still be read into a new file, and checks that one",
    ),
    "lost_version": FindingKind(
        "no server can open the store, because it does not say how its tables are laid out",
        "writes down the version that its tables have",
    ),
    "lost_workspace": FindingKind(
        "nobody knows any more to which directory these sessions belong, so no client can open them",
        "gives them a new directory below `recovered` in the data directory",
    ),
    "unreadable_row": FindingKind(
        "a request for it fails, and a server may be unable to open its workspace",
        "writes it again from the event log; what the log does not have is taken out, and stays in the backup",
    ),
    "misfiled_row": FindingKind(
        "the columns by which it is looked up contradict what it says: it is found in the wrong place, or not at all",
        "files it under what it says",
    ),
    # ── the event log ──
    "unreadable_event": FindingKind("every client that reads the log fails at this event", _NEW_EPOCH),
    "lost_history": FindingKind(
        "events that clients may have seen, or still wait for, are gone from the log", _NEW_EPOCH
    ),
    "two_terminals": FindingKind(
        "a client may take the second end for that of another run: every run ends exactly once", _NEW_EPOCH
    ),
    "after_terminal": FindingKind(
        "clients have closed the run already, and show this wrongly or not at all", _NEW_EPOCH
    ),
    "wrong_terminal": FindingKind(
        "clients that watched the run and clients that ask for it get different answers", _NEW_EPOCH
    ),
    "wrong_owner": FindingKind("clients cannot tell to which run it belongs", _NEW_EPOCH),
    "wrong_order": FindingKind("clients see runs in an order in which they cannot have happened", _NEW_EPOCH),
    "two_turns": FindingKind(
        "the messages of two turns are mixed, although the runs of a session take turns", _NEW_EPOCH
    ),
    "missing_terminal": FindingKind(
        "clients that wait for the end of this run on the event stream wait for ever", "adds its terminal event"
    ),
    # ── rows ──
    "row_differs": FindingKind("clients that watched and clients that ask see different things", _FROM_THE_LOG),
    "row_missing": FindingKind("clients have seen it, but it cannot be requested any more", _FROM_THE_LOG),
    "message_order": FindingKind(
        "the conversation is shown, and given to the model, in another order", "restores the order"
    ),
    "message_count": FindingKind("lists of sessions show a wrong number", "counts the messages again"),
    "no_session": FindingKind("it cannot be seen, because its session is gone", "makes a session for it, or ends it"),
    "foreign_message": FindingKind(
        "it is shown in one session, and counted in another", "keeps it where it is, but not as part of that run"
    ),
    "stale_text": FindingKind(
        "text that was saved while a message was being written would be added to it wrongly", "takes that text out"
    ),
    "wrong_content": FindingKind(
        "a version of a file is not what it was when it was kept, so an undo cannot bring it back",
        "takes it out, so that an undo says that it is not kept",
    ),
    # ── runs ──
    "impossible_state": FindingKind(
        "the run is neither open nor ended: it blocks its session, or a server cannot take it up",
        "ends it as interrupted",
    ),
    "two_active": FindingKind(
        "only one run of a session may be active: a server cannot take up both", "ends them as interrupted"
    ),
    "incomplete_turn": FindingKind(
        "every turn leaves its prompt and an answer, but this one is not whole", "adds what is missing of them"
    ),
    "unfinished_answer": FindingKind(
        "clients show it as if it were still being written", "gives it a finish reason that fits how its run ended"
    ),
    "untimely_messages": FindingKind(
        "a prompt whose turn never began leaves nothing, so these messages have no beginning or no end",
        "keeps them: as a whole turn if the run has ended, else no longer as part of it",
    ),
    "tool_call": FindingKind(
        "models refuse a conversation in which a tool call and its result do not belong together",
        "adds a result that says why there is none; a result without a call is no longer counted as part of the run",
    ),
    # ── the machine ──
    "process": FindingKind("a tool has left it behind, and nothing will end it", ""),
}
