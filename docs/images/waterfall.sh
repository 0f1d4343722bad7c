#!/bin/bash
# Draws waterfall.svg, the picture in README.md: `docs/images/waterfall.sh` with `forerun` on the path and a server that is otherwise idle.
# Five functions wait as for services. The forecast changes before the last call, so one guess of that is wrong.
set -euo pipefail
out=$(cd "$(dirname "$0")" && pwd)/waterfall.svg
cd "$(mktemp -d)"
trap 'rm -r "$PWD"' EXIT

cat > trip.py <<'END'
import time


def search(args):
    time.sleep(0.08)
    return {"flight": "VIE-42", "changes": args["changes"]}


def forecast(args):
    time.sleep(0.12)  # an outside service, whose answer changes at some moment
    return {"flight": args["flight"], "delay": time.time() > args["changes"]}


def seats(args):
    time.sleep(0.06)
    return {"flight": args["flight"], "seats": 3 if args["delay"] else 8}


def price(args):
    time.sleep(0.1)
    return {"flight": args["flight"], "euros": 240}


def reserve(args):
    time.sleep(0.06)
    return {"reserved": args["flight"]}
END

for name in search forecast seats price reserve; do
  forerun action update "$name" trip.py --main "$name"
done
forerun action update trip --sequence search,forecast,seats,price,reserve
changes=$(($(date +%s) + 20)) # when the warm-up is over
for _ in 1 2 3; do forerun invoke trip --result -p changes 0; done          # it has seen both forecasts
for _ in 1 2 3 4 5 6; do forerun invoke trip --result -p changes "$changes"; done
sleep "$((changes + 1 - $(date +%s)))"
forerun invoke trip --result -p changes "$changes"
forerun activation trace --last
forerun activation trace --last --svg "$out"
