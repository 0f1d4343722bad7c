package openwhisk

import (
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// noDocker answers who deploys a Docker image.
func noDocker() error {
	return forerun.Errorf(forerun.Unsupported, "exec", "Docker images as actions (kind blackbox) are not part of Forerun. Deploy the code with a kind of its language, or an executable with the kind native; GET / lists the kinds.")
}

// noAPIs answers the API gateway's web actions, which `wsk api` and the npm client's routes call.
func noAPIs() error {
	return forerun.Errorf(forerun.Unsupported, "apis", "API routes (wsk api) are not part of Forerun. Deploy the action with --web true and call it at /api/v1/web/NAMESPACE/PACKAGE/ACTION.")
}

// isAPIManagement tells a path of the API gateway's actions, below /api/v1/.
func isAPIManagement(path string) bool {
	rest, is := strings.CutPrefix(path, "web/whisk.system/")
	if !is {
		rest, is = strings.CutPrefix(path, "namespaces/whisk.system/actions/")
	}
	return is && (strings.HasPrefix(rest, "apimgmt/") || strings.HasPrefix(rest, "routemgmt/"))
}
