#!/usr/bin/env bash
# Redis names other keys for some commands than the commands use.
#
# Version: Debian's redis-tools 7.0.15 (it has the server's program, too). Needs: apt-get and dpkg, of Debian 12.
# It prints the answers, and fails if they change.
#
# Clients of a cluster, proxies and access lists rely on COMMAND GETKEYSANDFLAGS. It looks for words rather than parsing:
# - SORT k STORE GET STORE d: the command stores into d, and the key that is named is GET.
# - GEORADIUS k 1 1 1 km STORE a STORE b: the command uses b, and the key that is named is a.
#
# Forerun's COMMAND GETKEYSANDFLAGS gives the same answers, since clients rely on them; its commands take their keys from their
# own parser.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
server=
apt-get download -q redis-tools > /dev/null 2>&1
for package in redis-tools_*; do dpkg -x "$package" .; done
programs=$folder/usr/bin
[ -e "$programs/redis-server" ] || ln -s redis-check-rdb "$programs/redis-server" # one program: its name decides what it does
"$programs/redis-server" --port 0 --unixsocket "$folder/s" --save '' > log &
server=$!
ask() { "$programs/redis-cli" -s "$folder/s" "$@"; }
until ask PING > /dev/null 2>&1; do sleep 0.1; done

expect() { # the answer in one line, then the command
  local want=$1 got; shift
  got=$(ask "$@" | tr '\n' ' ' | sed 's/ *$//')
  echo "$*: $got"
  [ "$got" = "$want" ] || { echo "it was: $want" >&2; exit 1; }
}

expect 'k RO access GET OW update' COMMAND GETKEYSANDFLAGS SORT k STORE GET STORE d
ask RPUSH k 1 2 > /dev/null
expect 2 SORT k STORE GET STORE d
expect d KEYS d
expect 'k RO access a OW update' COMMAND GETKEYSANDFLAGS GEORADIUS k 1 1 1 km STORE a STORE b
ask DEL k > /dev/null
ask GEOADD k 1 1 here > /dev/null
expect 1 GEORADIUS k 1 1 1 km STORE a STORE b
expect b KEYS '[ab]'
