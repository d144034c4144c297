"""What proves that a request was passed on by a node of the same cluster, and in whose name.

`x-covey-passed-on: <receiver> <sender> <rights> <digest of the body> <proof>`, where the proof is an HMAC of all of it
and of what is asked, by the secret that the nodes share. The secret itself is never on the way. No clock is in it,
since those of nodes may differ by hours; instead it names the receiver by the id of this one start, so what was
overheard is worth nothing at another node, with another body, or once the receiver has started again.

Who asked was found out by the first node, by token, Host and Origin (`access.py`). The second one believes it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from covey.protocol.errors import Forbidden

PASSED_ON = b"x-covey-passed-on"
RUN_ID = b"x-covey-run-id"
"""The id that the first node has chosen for a prompt without one, so that it can be passed on twice (R7: it does not
count as given by the caller)."""

ALL = "all"
"""Rights: the user's own."""
TOOLS = "tools"
"""A process that one of our tools started: it approves nothing."""
PAGE = "page:"
"""A page in a browser; its id follows."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one node asks of another."""

    method: str
    target: bytes
    """Path and query, as they were sent."""
    body: bytes = b""
    run_id: str = ""
    rights: str = ALL


@dataclass(frozen=True, slots=True)
class PassedOn:
    """What a valid header says."""

    receiver: str
    """The node that it is for, as the sender knew it: perhaps one that has started again since."""
    sender: str
    rights: str
    digest: str
    run_id: str

    def is_body(self, body: bytes) -> bool:
        return hmac.compare_digest(self.digest, _digest(body))

    @property
    def page(self) -> str:
        return self.rights.removeprefix(PAGE) if self.rights.startswith(PAGE) else ""


def sign(secret: bytes, ask: Ask, receiver: str, sender: str) -> bytes:
    """The value of the header."""
    said = f"{receiver} {sender} {ask.rights} {_digest(ask.body)}"
    return f"{said} {_proof(secret, ask.method, ask.target, ask.run_id, said)}".encode()


def verify(secret: bytes, method: str, target: bytes, header: bytes, run_id: str) -> PassedOn:
    """What the header says. Raises Forbidden if no node of this cluster has written it."""
    said, _, proof = header.decode("latin-1").rpartition(" ")
    parts = said.split(" ")
    if len(parts) != 4 or not hmac.compare_digest(proof, _proof(secret, method, target, run_id, said)):
        raise Forbidden(
            "this request says that another node passed it on, and proves it by another secret than this node's: "
            "give every node of the cluster the same --cluster-secret-file",
            "wrong_cluster_secret",
        )
    receiver, sender, rights, digest = parts
    return PassedOn(receiver, sender, rights, digest, run_id)


def _proof(secret: bytes, method: str, target: bytes, run_id: str, said: str) -> str:
    text = b"\n".join((method.encode(), target, run_id.encode("latin-1", "replace"), said.encode("latin-1", "replace")))
    return hmac.digest(secret, text, "sha256").hex()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest() if body else "-"
