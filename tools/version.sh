#!/bin/sh
# Prints the version of these sources: that of a tag like v0.1.0, else the next one with -dev and the commit.
cd "$(dirname "$0")/.." || exit
next=$(cat cmd/forerun/VERSION)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || { echo "$next-dev"; exit; }
dirty=$(git status --porcelain 2>/dev/null | head -n 1)
if tag=$(git describe --tags --exact-match --match 'v[0-9]*' HEAD 2>/dev/null); then
	echo "${tag#v}${dirty:++dirty}"
else
	echo "$next-dev+$commit${dirty:+.dirty}"
fi
