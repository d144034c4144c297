"""Covey: a coding agent that runs as a server, and what a program needs to use it.

    answer = await covey.ask("What does this project do?")

docs/API.md describes the names below. They are imported when they are used: `import covey` alone costs nothing.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this

if TYPE_CHECKING:
    from covey.client.answer import Answer
    from covey.client.answering import Allow, Deny, leave_to_others
    from covey.client.client import Client
    from covey.client.denials import Denied
    from covey.client.errors import Closed, ConnectionLost, RunTimedOut, ServerUnreachable
    from covey.client.event_stream import EventStream
    from covey.client.library import ask, ask_sync, connect
    from covey.client.prompt_stream import PromptOptions, PromptStream
    from covey.client.sync import SyncClient, SyncStream
    from covey.client.workspace_client import WorkspaceClient
    from covey.in_process.opened import Opened, open
    from covey.protocol.errors import ApiError, CoveyError
    from covey.protocol.events import (
        Event,
        MessageDelta,
        PermissionRequest,
        QuestionBatchRequest,
        ToolOutputDelta,
    )
    from covey.protocol.messages import Attachment, Message, Session
    from covey.protocol.paths import DataDirInUse
    from covey.protocol.requests import PostPrompt, QuestionResponse, WorkspaceView
    from covey.protocol.runs import PromptReceipt, Run, RunComplete, Usage

__all__ = [
    "Allow",
    "Answer",
    "ApiError",
    "Attachment",
    "Client",
    "Closed",
    "ConnectionLost",
    "CoveyError",
    "DataDirInUse",
    "Denied",
    "Deny",
    "Event",
    "EventStream",
    "Message",
    "MessageDelta",
    "Opened",
    "PermissionRequest",
    "PostPrompt",
    "PromptOptions",
    "PromptReceipt",
    "PromptStream",
    "QuestionBatchRequest",
    "QuestionResponse",
    "Run",
    "RunComplete",
    "RunTimedOut",
    "ServerUnreachable",
    "Session",
    "SyncClient",
    "SyncStream",
    "ToolOutputDelta",
    "Usage",
    "WorkspaceClient",
    "WorkspaceView",
    "ask",
    "ask_sync",
    "connect",
    "leave_to_others",
    "open",
]

_NAMES = {
    "client.answer": "Answer",
    "client.answering": "Allow Deny leave_to_others",
    "client.client": "Client",
    "client.denials": "Denied",
    "client.errors": "Closed ConnectionLost RunTimedOut ServerUnreachable",
    "client.event_stream": "EventStream",
    "client.library": "ask ask_sync connect",
    "client.prompt_stream": "PromptOptions PromptStream",
    "client.sync": "SyncClient SyncStream",
    "client.workspace_client": "WorkspaceClient",
    "in_process.opened": "Opened open",
    "protocol.errors": "ApiError CoveyError",
    "protocol.events": "Event MessageDelta PermissionRequest QuestionBatchRequest ToolOutputDelta",
    "protocol.messages": "Attachment Message Session",
    "protocol.paths": "DataDirInUse",
    "protocol.requests": "PostPrompt QuestionResponse WorkspaceView",
    "protocol.runs": "PromptReceipt Run RunComplete Usage",
}
"""Where each of them is defined."""
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # else every name would seem to be there

    def __getattr__(name):
        from importlib import import_module

        if name not in _WHERE:
            raise AttributeError(f"module 'covey' has no attribute {name!r}")
        return getattr(import_module(f"covey.{_WHERE[name]}"), name)

    def __dir__():
        return sorted({*globals(), *_WHERE})
