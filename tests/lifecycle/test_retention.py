"""What is thrown away by age, count and size, and what never is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from covey.lifecycle.retention import DAY_S, Candidate, Keep, events_to_keep, outdated

NOW = 1000 * DAY_S


def session(name: str, days_old: int = 0, *, is_open: bool = False, is_archived: bool = False) -> Candidate:
    return Candidate(name, NOW - days_old * DAY_S, is_open, is_archived)


def dropped(sessions: list[Candidate], keep: Keep, *, size: int = 10, limit: int = 100) -> str:
    return "".join(outdated(sessions, keep, NOW, lambda session_id: size, limit))


AGES = [session("a", 0), session("b", 5), session("c", 10), session("d", 40)]


def test_without_a_bound_nothing_goes_and_nothing_is_measured() -> None:
    def measured(session_id: str) -> int:
        raise AssertionError(session_id)

    assert outdated(AGES, Keep(), NOW, measured, 100) == []
    assert outdated(AGES, Keep(days=7), NOW, measured, 100) == ["d", "c"]


def test_what_did_not_change_for_so_many_days_goes_the_oldest_first() -> None:
    assert dropped(AGES, Keep(days=7)) == "dc"
    assert dropped(AGES, Keep(days=10)) == "d", "so many days are not more"
    assert dropped(AGES, Keep(days=7), limit=1) == "d", "a few at a time"


def test_the_newest_stay_by_count_and_by_size() -> None:
    assert dropped(AGES, Keep(count=3)) == "d"
    assert dropped(AGES, Keep(size=20)) == "dc"
    assert dropped(AGES, Keep(size=25)) == "dc"
    assert dropped(AGES, Keep(size=5)) == "dcb", "the newest stays, however large it is"
    assert dropped(AGES, Keep(days=7, count=1, size=1000)) == "dcb", "the strictest bound counts"


def test_sizes_are_asked_for_only_until_the_bound_is_reached() -> None:
    asked: list[str] = []

    def size_of(session_id: str) -> int:
        asked.append(session_id)
        return 10

    many = [session(f"s{number}") for number in range(1000)]
    assert len(outdated(many, Keep(size=50), NOW, size_of, 10_000)) == 995
    assert len(asked) == 5


def test_a_session_with_an_open_run_and_an_archived_one_never_go() -> None:
    sessions = [session("a"), session("b", 50, is_open=True), session("c", 50, is_archived=True), session("d", 50)]
    for keep in (Keep(days=7), Keep(count=1), Keep(size=5)):
        assert dropped(sessions, keep) == "d"
    kept = [session("x", is_archived=True), session("a"), session("b")]
    assert dropped(kept, Keep(count=2)) == "", "an archived one takes nobody's place"


@given(
    st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), max_size=20),
    st.builds(Keep, st.integers(0, 50), st.integers(0, 10), st.integers(0, 100)),
)
def test_whatever_the_settings_only_what_may_go_goes(rows: list[tuple[int, bool, bool]], keep: Keep) -> None:
    sessions = [session(f"{n:02}", age, is_open=o, is_archived=a) for n, (age, o, a) in enumerate(sorted(rows))]
    gone = set(outdated(sessions, keep, NOW, lambda _: 10, 1000))
    for one in sessions:
        if one.session_id in gone:
            assert not one.is_open and not one.is_archived
        elif not one.is_open and not one.is_archived and keep.days:
            assert one.updated_at >= NOW - keep.days * DAY_S
    if keep.count:
        assert sum(not (s.is_open or s.is_archived or s.session_id in gone) for s in sessions) <= keep.count


def test_events_stay_by_count_and_size_and_the_newest_always() -> None:
    assert events_to_keep([10] * 100, 30, 0) == 30
    assert events_to_keep([10] * 100, 30, 55) == 5
    assert events_to_keep([1000], 30, 55) == 1
    assert events_to_keep([], 30, 55) == 1
    assert events_to_keep([10] * 3, 30, 0) == 3
