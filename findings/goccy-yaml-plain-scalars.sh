#!/usr/bin/env bash
# goccy/go-yaml reads plain scalars partly by YAML 1.1 and partly by no version: JSON numbers become strings.
#
# Version: github.com/goccy/go-yaml v1.19.2. Needs: go. It prints the node that the parser makes of each scalar, and
# fails if one differs from the nodes at its end.
#
# - `1e3` and integers over 64 bits are strings. In YAML 1.2's core schema, and in JSON, they are numbers.
# - `0123` is octal, 83, as in YAML 1.1, while `08` is a string. In YAML 1.2 they are 123 and 8.
# - `1_000` and `0b11` are integers as in YAML 1.1, but `yes` is a string as in YAML 1.2.
#
# Forerun reads plain scalars itself, and refuses the ones that the two versions read differently, by line and column.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

func main() {
	for _, scalar := range []string{"1e3", "12345678901234567890123", "0123", "08", "1_000", "0b11", "yes", "1.5"} {
		file, err := parser.ParseBytes([]byte("k: "+scalar), 0)
		if err != nil {
			panic(err)
		}
		value := file.Docs[0].Body.(*ast.MappingNode).Values[0].Value
		fmt.Printf("%s: %s", scalar, value.Type())
		if number, ok := value.(*ast.IntegerNode); ok {
			fmt.Printf(" %v", number.Value)
		}
		fmt.Println()
	}
}
GO
go mod init finding >go.log 2>&1
go get github.com/goccy/go-yaml@v1.19.2 >>go.log 2>&1
go run . | tee seen
diff seen - <<'NOTED'
1e3: String
12345678901234567890123: String
0123: Integer 83
08: String
1_000: Integer 1000
0b11: Integer 3
yes: String
1.5: Float
NOTED
