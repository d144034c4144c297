"""A hundred sessions stream at once, fifty words a second each: what one word costs from socket to socket."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.loader_client import crowd
from bench.report import Figure
from bench.rig import Options, rig

SESSIONS = 100
GAP_S = 0.02
MARGIN_S = 1.0
"""After the last prompt and before the first ending: what is measured between is streaming alone."""


def measure(options: Options) -> Iterator[Figure]:
    window_s = options.size(5, 2)
    words = int((window_s + 3 * MARGIN_S) / GAP_S)
    with rig(options) as made, crowd(made, 1) as watcher:
        ids = [made.session() for _ in range(SESSIONS)]
        watcher.start_watching(SESSIONS)
        for session_id in ids:
            made.prompt(session_id, f"chunks={words} gap={GAP_S}")
        time.sleep(MARGIN_S)
        before, start = made.server.cpu_s(), time.perf_counter()
        time.sleep(window_s)
        used, seconds = made.server.cpu_s() - before, time.perf_counter() - start
        seen = watcher.seen()
    yield Figure("100 sessions: words delivered", seen.words / (SESSIONS * words) * 100, "%", 100, "at_least")
    rate = seen.words / (seen.last_at - seen.first_at)  # what came, not what was offered: the model may be late too
    yield Figure("100 sessions: words per second", rate, "1/s", note=f"{SESSIONS / GAP_S:,.0f} are offered")
    cost = used * 1e6 / (rate * seconds)
    yield Figure("100 sessions: server CPU per word, model to client", cost, "us", 100)
    yield Figure("100 sessions: share of one core", used / seconds * 100, "%", 50)
