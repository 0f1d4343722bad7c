package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/compose"
)

// composeCommand is composer's `compose`.
func composeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "compose FILE.js", Short: "Print the JSON document of a composition written in JavaScript", Args: between(1, 1),
		Long: `Print the JSON document of a composition written in JavaScript with openwhisk-composer. The library is part of this program; the
file is executed by Node.js. In a forerun.yaml such a file is named below compositions: as it is.`,
		Example: "  forerun compose order.js > order.json",
	}
	ast := cmd.Flags().Bool("ast", false, "print the composition as it was written only, without its lowered form")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		document, err := compose.Document(args[0])
		if err != nil {
			return wrongf("%v", err)
		}
		if *ast {
			var written struct {
				AST json.RawMessage `json:"ast"`
			}
			if err := json.Unmarshal(document, &written); err != nil {
				return fmt.Errorf("composer wrote something that is not JSON: %w", err)
			}
			document = append(written.AST, '\n')
		}
		_, err = data(cmd).Write(document)
		return err
	}
	return cmd
}
