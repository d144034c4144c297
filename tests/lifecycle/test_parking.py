"""When a parked run is not edited any more (R7)."""

from __future__ import annotations

from covey.lifecycle.parking import PARK_S, Parking


def here(client_id: str) -> bool:
    return client_id == "kim"


def test_parking_ends_after_five_minutes() -> None:
    assert PARK_S == 300
    parking = Parking().park("a", "kim", now=10.0)
    assert parking.next_deadline() == 310.0
    assert parking.due(309.9, here) == ()
    assert parking.due(310.0, here) == ("a",)


def test_parking_ends_when_its_client_has_left() -> None:
    parking = Parking().park("a", "kim", now=0.0).park("b", "lee", now=0.0)
    assert parking.due(1.0, here) == ("b",)


def test_whoever_does_not_say_who_it_is_has_the_whole_time() -> None:
    parking = Parking().park("a", "", now=0.0)
    assert parking.due(299.0, here) == ()
    assert parking.due(300.0, here) == ("a",)


def test_parking_again_begins_anew_and_unparking_ends_it() -> None:
    parking = Parking().park("a", "kim", now=0.0).park("a", "kim", now=100.0)
    assert parking.next_deadline() == 400.0
    assert len(parking.parked) == 1
    assert parking.unpark("a") == Parking()
    assert Parking().next_deadline() is None
