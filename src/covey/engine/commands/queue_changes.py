"""What somebody may change about a queued prompt, checked before anything is touched."""

from __future__ import annotations

from covey.lifecycle.decisions import QueueChange
from covey.protocol.errors import BadRequest
from covey.protocol.requests import EditPrompt


def queue_change(request: EditPrompt, client: str) -> QueueChange:
    """What a request asks for; BadRequest if it asks for nothing, or for two things that exclude each other."""
    if request.prompt is not None and not request.prompt.strip():
        raise BadRequest("the prompt is empty", "empty_prompt")
    places = [place for place in (request.before, request.after, request.first) if place]
    if len(places) > 1:
        raise BadRequest("give only one of before, after and first: a prompt has one place")
    if request.park and request.unpark:
        raise BadRequest("give only one of park and unpark")
    parked_by = client if request.park else "" if request.unpark or request.park is False else None
    if request.prompt is None and not places and parked_by is None:
        raise BadRequest("nothing to change: give prompt, before, after, first, park or unpark")
    return QueueChange(request.prompt, bool(places), request.before, request.after, parked_by)
