#!/usr/bin/env bash
# Looks for known vulnerabilities in what the code calls. Where the database cannot be reached it says so, and passes.
set -uo pipefail
echo govulncheck
for module in . bench; do
    out=$(cd "$module" && govulncheck ./... 2>&1)
    code=$?
    if [ $code -eq 1 ] && grep -q 'fetching vulnerabilities' <<<"$out"; then
        echo "govulncheck: skipped (its database cannot be reached)"
        exit 0
    fi
    if [ $code -ne 0 ]; then
        echo "$out"
        exit 1
    fi
done
