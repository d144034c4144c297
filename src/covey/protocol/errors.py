"""The root of all errors of ours, and every one that the API can answer with: code, exception and HTTP status.

    ApiError
    ├── BadRequest 400        invalid_request, empty_prompt, no_model, invalid_client_id, unknown_command
    ├── BadRequest 400        invalid_answer, no_rule, invalid_rule, binary_file, other_data_dir, empty_command
    ├── BadRequest 400        unusable_schema, empty_query, query_too_long
    ├── Unauthorized 401      unauthorized, code_refused, signed_out
    ├── Forbidden 403         forbidden_host, forbidden_origin, may_not_approve
    ├── Forbidden 403         outside_workspace, denied_by_rule, secret_file, not_by_clients, not_trusted
    ├── Forbidden 403         may_not_administer, wrong_cluster_secret
    ├── NotFound 404          not_found, session_not_found, run_not_found, message_not_found
    ├── NotFound 404          workspace_not_found, workspace_released, file_not_found, job_not_found
    ├── NotFound 404          command_not_found, extension_not_found, page_not_found, node_not_found
    ├── MethodNotAllowed 405  method_not_allowed
    ├── Conflict 409          conflict, workspace_closing, client_retired, run_id_reused, too_late, not_attached, busy
    ├── Conflict 409          session_busy, nothing_to_undo, undo_conflict, extension_failed, no_cluster
    ├── TooLarge 413          body_too_large
    ├── WrongType 415         unsupported_media_type
    ├── Misdirected 421       not_the_owner
    ├── QueueFull 429         queue_full
    ├── Unavailable 503       shutting_down, store_unavailable, search_unavailable, workspace_moved
    └── Unavailable 503       owner_unreachable, outcome_unknown, node_unreachable, not_ready, secrets_differ

The code is stable; the message is for people and says what to do.
Errors that no server answers with, such as those of `client/errors.py`, are CoveyErrors too.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class CoveyError(Exception):
    """Whatever goes wrong with Covey, for whoever uses it from Python. Never raised bare."""

    code: str = "failed"

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code


class ApiError(CoveyError):
    """An error with an answer. Never raised bare: 500 is always a bug of ours."""

    status: ClassVar[int] = 500
    code = "internal"

    def __init__(self, message: str, code: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after


class BadRequest(ApiError):
    status = 400
    code = "invalid_request"


class Unauthorized(ApiError):
    status = 401
    code = "unauthorized"


class Forbidden(ApiError):
    status = 403
    code = "forbidden_host"


class NotFound(ApiError):
    status = 404
    code = "not_found"


class MethodNotAllowed(ApiError):
    status = 405
    code = "method_not_allowed"


class Conflict(ApiError):
    status = 409
    code = "conflict"


class TooLarge(ApiError):
    status = 413
    code = "body_too_large"


class WrongType(ApiError):
    status = 415
    code = "unsupported_media_type"


class Misdirected(ApiError):
    """Only between nodes of a cluster: the workspace is not at this one. No client gets to see it."""

    status = 421
    code = "not_the_owner"


class QueueFull(ApiError):
    status = 429
    code = "queue_full"


class Unavailable(ApiError):
    status = 503
    code = "shutting_down"


BY_STATUS: dict[int, type[ApiError]] = {
    cls.status: cls
    for cls in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        Conflict,
        TooLarge,
        WrongType,
        Misdirected,
        QueueFull,
        Unavailable,
    )
}


class ErrorBody(msgspec.Struct, omit_defaults=True):
    message: str
    code: str = ""
    retry_after: float | None = None


def decode_error(status: int, body: bytes) -> ApiError:
    """The exception for an answer of the server, whatever its body: ours, malformed, HTML or empty."""
    cls = BY_STATUS.get(status, ApiError)
    try:
        decoded = msgspec.json.decode(body, type=ErrorBody)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, not ours, or nested to do harm
        text = body[:200].decode("utf-8", "replace").strip()
        return cls(f"the server answered {status}" + (f": {text}" if text else " with an empty body"))
    return cls(decoded.message, decoded.code, retry_after=decoded.retry_after)
