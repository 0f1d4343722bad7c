#!/usr/bin/env bash
# cyclonedx-gomod names another licence for the modules of golang.org/x than these have.
#
# Versions: github.com/CycloneDX/cyclonedx-gomod v1.10.0, golang.org/x/sys v0.30.0, github.com/google/licenseclassifier/v2 v2.0.0.
# Needs: go. It prints the licence that each tool finds for golang.org/x/sys, and fails if the answers change.
#
# - The LICENSE file of golang.org/x/sys is the text of BSD-3-Clause, which licenseclassifier finds, too.
# - cyclonedx-gomod writes BSD-Source-Code into the SBOM: that licence has a fourth condition. A licence policy that allows
#   BSD-3-Clause refuses the module then, and one that trusts the SBOM obeys the wrong text.
#
# Forerun's `make sbom` takes the licences of Go modules from another classifier: see NOTICE.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS=-mod=mod GOBIN="$folder/bin"
go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

mkdir probe && cd probe
cat > go.mod <<'MOD'
module example.test/probe

go 1.22
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func main() { fmt.Println(unix.PAGE_SIZE) }
GO
go get golang.org/x/sys@v0.30.0 2> /dev/null
"$GOBIN/cyclonedx-gomod" mod -json -licenses -output sbom.json . 2> /dev/null
named=$(grep -A40 '"name": "golang.org/x/sys"' sbom.json | grep -om1 '"id": "[^"]*"' | cut -d'"' -f4)

mkdir ../classify && cd ../classify
cat > go.mod <<'MOD'
module example.test/classify

go 1.22
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/google/licenseclassifier/v2/assets"
)

func main() {
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	for _, match := range classifier.Match(text).Matches {
		if match.MatchType == "License" {
			fmt.Println(match.Name)
		}
	}
}
GO
go get github.com/google/licenseclassifier/v2@v2.0.0 2> /dev/null
found=$(go run . "$(go env GOMODCACHE)/golang.org/x/sys@v0.30.0/LICENSE" | sort -u)

echo "cyclonedx-gomod: $named"
echo "licenseclassifier: $found"
[ "$named" = BSD-Source-Code ] && [ "$found" = BSD-3-Clause ] || { echo "the answers have changed" >&2; exit 1; }
