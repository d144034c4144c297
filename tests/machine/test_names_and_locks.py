"""Names that several parts of Covey must agree on, and locks that two of them want."""

from __future__ import annotations

from pathlib import Path

from covey.machine.locks import open_lock, try_lock
from covey.machine.names import run_tag, server_lock, tag_within, widest_tag, workspace_tag


def test_a_runs_tag_is_not_within_that_of_its_workspace() -> None:
    # The jobs of a workspace end with it; its runs end one by one.
    assert widest_tag(run_tag("w", "r")) == "covey-w-r"
    assert workspace_tag("w") == "covey-w"


def test_a_narrower_tag_leads_back_to_the_widest() -> None:
    assert tag_within(tag_within(run_tag("w", "r"), "call"), 1) == "covey-w-r/call/1"
    assert widest_tag("covey-w-r/call/1") == run_tag("w", "r")


def test_a_lock_is_held_by_one_and_free_when_it_is_closed(tmp_path: Path) -> None:
    path = server_lock(tmp_path)
    with open_lock(path) as first, open_lock(path) as second:
        assert try_lock(first)
        assert not try_lock(second)
    with open_lock(path) as third:
        assert try_lock(third)
    assert path.stat().st_mode & 0o777 == 0o600


def test_opening_a_lock_keeps_what_its_holder_wrote(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("somebody")
    with open_lock(tmp_path / "lock"):
        pass
    assert (tmp_path / "lock").read_text() == "somebody"
