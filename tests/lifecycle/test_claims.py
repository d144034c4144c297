"""Who keeps a workspace open (R17). Time is a number that the test gives."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from covey.lifecycle.claims import CREATE_GRACE_S, DETACH_GRACE_S, Claim, Claims


def test_r17_creating_holds_the_workspace_for_thirty_seconds() -> None:
    claims = Claims().create("a", now=100.0)
    assert claims == Claims((Claim("a", held_until=130.0),))
    assert claims.next_deadline() == 130.0
    assert claims.expire(now=129.9)
    assert not claims.expire(now=130.0)


def test_r17_open_streams_hold_it_for_ever() -> None:
    claims = Claims().create("a", now=0.0).attach("a").attach("a")
    assert claims == Claims((Claim("a", streams=2),))
    assert claims.next_deadline() is None
    assert claims.expire(now=1e9) == claims


def test_r17_a_dropped_stream_holds_it_for_ten_seconds_more() -> None:
    claims = Claims().create("a", now=0.0).attach("a").attach("a")
    claims = claims.detach("a", now=5.0)
    assert claims.next_deadline() is None, "another stream is open"
    claims = claims.detach("a", now=6.0)
    assert claims.next_deadline() == 16.0
    assert claims.expire(now=15.9)
    assert not claims.expire(now=16.0)


def test_r17_coming_back_in_time_holds_it_again() -> None:
    claims = Claims().create("a", now=0.0).attach("a").detach("a", now=5.0)
    claims = claims.expire(now=14.0).attach("a")
    assert claims.expire(now=1e9) == Claims((Claim("a", streams=1),))


def test_r17_creating_again_while_an_old_stream_lingers_gives_the_full_time_to_attach() -> None:
    claims = Claims().create("a", now=0.0).attach("a")
    claims = claims.create("a", now=100.0)
    assert claims.next_deadline() is None, "the stream is still open"
    claims = claims.detach("a", now=101.0)
    assert claims.next_deadline() == 130.0


def test_r17_a_goodbye_without_streams_lets_go_at_once() -> None:
    claims = Claims().create("a", now=0.0).create("b", now=0.0)
    assert claims.release("a") == Claims((Claim("b", held_until=30.0),))
    assert claims.release("nobody") == claims


def test_r17_a_goodbye_with_open_streams_lets_go_when_the_last_one_ends() -> None:
    claims = Claims().create("a", now=0.0).attach("a").attach("a").release("a")
    claims = claims.detach("a", now=1.0)
    assert claims
    assert not claims.detach("a", now=2.0), "no ten seconds after a goodbye"


def test_r17_who_comes_back_after_a_goodbye_has_not_left() -> None:
    left = Claims().attach("a").release("a")
    for came_back in (left.attach("a").detach("a", now=1.0), left.create("a", now=1.0)):
        assert came_back.detach("a", now=1.0)


def test_r17_a_client_that_is_dropped_is_gone_streams_or_not() -> None:
    claims = Claims().attach("a").attach("b").drop("a")
    assert claims == Claims((Claim("b", streams=1),))
    assert claims.detach("a", now=1.0) == claims, "its streams end later, and nobody minds"


def test_a_stream_that_ends_twice_is_counted_once() -> None:
    claims = Claims().attach("a").detach("a", now=0.0)
    assert claims.detach("a", now=5.0) == claims


def test_presence_needs_an_open_stream_and_ends_with_it() -> None:
    claims = Claims().create("a", now=0.0)
    assert claims.look_at("a", "s1") is None
    assert claims.look_at("nobody", "s1") is None
    looking = claims.attach("a").attach("b").look_at("a", "s1")
    assert looking is not None
    assert (looking.watching("s1"), looking.watching("s2")) == (1, 0)
    moved = looking.look_at("a", "s2")
    assert moved is not None
    assert (moved.watching("s1"), moved.watching("s2")) == (0, 1)
    assert moved.detach("a", now=0.0).watching("s2") == 0
    assert moved.detach("a", now=0.0).attach("a").watching("s2") == 0, "who reconnects says anew where they look"


FACTS = st.lists(
    st.tuples(
        st.sampled_from(["create", "attach", "detach", "release"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0.0, 1.0, 9.0, 10.0, 29.0, 31.0]),
    ),
    max_size=30,
)


@given(FACTS)
@settings(derandomize=True, database=None, deadline=None)
def test_the_next_deadline_is_the_moment_at_which_something_expires(facts: list[tuple[str, str, float]]) -> None:
    claims, now = Claims(), 0.0
    for what, client_id, later in facts:
        now += later
        claims = claims.expire(now)
        match what:
            case "create":
                claims = claims.create(client_id, now)
            case "attach":
                claims = claims.attach(client_id)
            case "detach":
                claims = claims.detach(client_id, now)
            case "release":
                claims = claims.release(client_id)
        deadline = claims.next_deadline()
        if deadline is None:
            assert all(claim.streams for claim in claims.by_client)
        else:
            assert now < deadline <= now + max(CREATE_GRACE_S, DETACH_GRACE_S)
            assert claims.expire(deadline - 0.5) == claims
            assert len(claims.expire(deadline).by_client) < len(claims.by_client)
