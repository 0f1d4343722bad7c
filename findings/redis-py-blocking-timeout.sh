#!/usr/bin/env bash
# redis-py 8 sends a blocking command again every 5 seconds, and fails after about a minute.
#
# Versions: PyPI's redis 8.1.0 and 5.2.1, Debian's redis-tools 7.0.15 (it has the server's program, too).
# Needs: python3 with venv, apt-get and dpkg, of Debian 12. It prints the answers, and fails if they change.
#
# - A client has a socket timeout of 5 seconds by default since version 8, and tries 11 times. BLPOP with a timeout of 7 seconds
#   never returns None: it raises TimeoutError after about 59 seconds.
# - Version 5.2.1 waits: None comes after 7 seconds.
# - With socket_timeout=None version 8 waits, too.
#
# Forerun's functions get redis-py 8: docs/guide/state.md tells to pass socket_timeout=None for commands that wait.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
server=
apt-get download -q redis-tools > /dev/null 2>&1
for package in redis-tools_*; do dpkg -x "$package" .; done
ln -s redis-check-rdb usr/bin/redis-server # one program: its name decides what it does
usr/bin/redis-server --port 0 --unixsocket "$folder/s" --save '' > log &
server=$!
until usr/bin/redis-cli -s "$folder/s" PING > /dev/null 2>&1; do sleep 0.1; done
python3 -m venv venv
for version in 8.1.0 5.2.1; do
  venv/bin/pip install --quiet --disable-pip-version-check --target "$version" "redis==$version" async-timeout==5.0.1
done

ask() { # version, options, timeout of BLPOP
  PYTHONPATH=$1 venv/bin/python - "$folder/s" "$2" "$3" << 'PY'
import json, sys, time
import redis

client = redis.Redis(unix_socket_path=sys.argv[1], **json.loads(sys.argv[2]))
began = time.monotonic()
try:
    got = client.blpop("empty", int(sys.argv[3]))
except redis.exceptions.TimeoutError:
    got = "TimeoutError"
took = time.monotonic() - began
print(got, "after", "more than 50 s" if took > 50 else f"{took:.0f} s")
PY
}

expect() { # the answer, then what to ask
  local want=$1 got; shift
  got=$(ask "$@")
  echo "redis $1 $2, BLPOP empty $3: $got"
  [ "$got" = "$want" ] || { echo "it was: $want" >&2; exit 1; }
}

expect 'TimeoutError after more than 50 s' 8.1.0 '{}' 7
expect 'None after 7 s' 5.2.1 '{}' 7
expect 'None after 7 s' 8.1.0 '{"socket_timeout": null}' 7
