package cli

// absent tells of commands that wsk has and we have not: what to do instead.
func absent(name string) string {
	return map[string]string{
		"api":      "wsk's API gateway is not part of Forerun: a web action has a URL of its own, see `forerun action create --web` and `forerun action get NAME --url`",
		"property": "`forerun login` keeps the API's host and the key, and `forerun namespace list` shows whose key it is",
		"project":  "a project is deployed with `forerun deploy`, from a forerun.yaml",
		"sdk":      "there is nothing to install: docs/reference/runtimes.md lists the packages that functions can import",
	}[name]
}
