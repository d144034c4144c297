"""`covey doctor --store`: the PostgreSQL that the nodes of a cluster share, judged by the same oracle."""

from __future__ import annotations

import re

from covey.cli.store import postgres_url
from covey.doctor.oracle import Examination


def look(url: str) -> Examination:
    """Everything that is in it. Raises StoreFailed or UsageError."""
    from covey.doctor.shared_store import examine_postgres

    return examine_postgres(postgres_url(url))


def shown(url: str) -> str:
    """The URL as it may be shown: without a password."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:…@", url)
