#!/usr/bin/env bash
# Looks for known vulnerabilities in what the code calls. Where the database cannot be reached it says that it did not run, and passes: a machine
# without the internet can make the other checks.
set -uo pipefail
echo govulncheck
for module in . bench; do
    out=$(cd "$module" && govulncheck ./... 2>&1)
    code=$?
    if [ $code -eq 1 ] && grep -q 'fetching vulnerabilities' <<<"$out"; then
        echo "govulncheck: DID NOT RUN, because its database (https://vuln.go.dev) cannot be reached: known vulnerabilities would not be found" >&2
        exit 0
    fi
    if [ $code -ne 0 ]; then
        echo "$out"
        exit 1
    fi
done
