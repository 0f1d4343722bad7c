#!/usr/bin/env bash
# Writes bin/sbom.cdx.json: what the binary and the packages beside it contain, in CycloneDX's form. `make build` has made them.
# Each language has a tool of CycloneDX; tools/sbom joins what they say.
#   tools/sbom.sh VERSION MAVEN-PLUGIN
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
parts=$PWD/.forerun/sbom/parts spec=1.6
rm -rf "$parts"
mkdir -p "$parts"

.forerun/tools/cyclonedx-gomod bin -json -std -version "$1" -output-version $spec -output "$parts/go.json" bin/forerun

node .forerun/sbom/node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js \
    --omit dev --spec-version $spec --output-file "$parts/node.json" bin/runtimes/node/packages/package.json

node .forerun/sbom/node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js \
    --omit dev --spec-version $spec --output-file "$parts/console.json" .forerun/console/package.json

# Without site's folders, Python's path has only the packages for functions and the standard library.
PYTHONPATH=bin/runtimes/python/packages .forerun/venv/bin/cyclonedx-py environment \
    -S --spec-version $spec --output-file "$parts/python.json" .forerun/venv/bin/python

for module in runtimes/java offload; do
    if [ -d "bin/runtimes/$(basename $module)" ]; then
        mvn -q -B -Dstyle.color=never -f $module "$2:makeBom" -DincludeTestScope=false -DincludeProvidedScope=false \
            -DoutputFormat=json -DoutputName="$(basename $module)" -DoutputDirectory="$parts" -DschemaVersion=$spec
    fi
done

go run ./tools/sbom -version "$1" -out bin/sbom.cdx.json "$parts"/*.json
