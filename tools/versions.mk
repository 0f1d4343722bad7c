# The versions of the Go tools that the checks run. Python's are in requirements.in here, JavaScript's in package.json.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
CYCLONEDX_GOMOD := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
# What `make sbom` and `make update-requirements` use beside these.
CYCLONEDX_MAVEN := org.cyclonedx:cyclonedx-maven-plugin:2.9.3
UV := uv==0.13.9
