package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Protection is one line of the page that a person sees: what is enforced around functions, or is not and why.
type Protection struct {
	What string
	On   bool
	Why  string // it is not
}

// PageConfig is what the page for people says.
type PageConfig struct {
	Version     string // of Forerun
	Protections []Protection
	Documents   fs.FS  // Markdown files in folders
	Metrics     bool   // /metrics and /healthz are served here, too
	Console     string // URL of the console; empty: there is none
}

// documentsPath begins the paths of documents.
const documentsPath = "/docs/"

const pageStyle = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}li.off{color:#a40000}"

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Forerun</title>
<style>` + pageStyle + `</style>
</head>
<body>
<h1>Forerun {{.Version}}</h1>
<p>This server runs functions and workflows behind the API of Apache OpenWhisk. It runs the next functions of a workflow speculatively.</p>
<h2>What is enforced around functions</h2>
<ul>{{range .Protections}}
<li{{if not .On}} class="off"{{end}}>{{if .On}}enforced: {{.What}}{{else}}NOT enforced: {{.What}} ({{.Why}}){{end}}</li>{{end}}
</ul>
<h2>Documents</h2>
<ul>{{range .Links}}
<li><a href="{{.Path}}">{{.Title}}</a></li>{{end}}
</ul>
<h2>This server</h2>
<ul>{{if .Metrics}}
<li><a href="/metrics">/metrics</a>: figures for Prometheus</li>
<li><a href="/healthz">/healthz</a>: whether it takes requests</li>{{end}}{{if .Console}}
<li><a href="{{.Console}}">The console</a>: what runs, and why it was fast or slow</li>{{end}}
<li><a href="/api/v1">/api/v1</a>: the API, with HTTP Basic authentication</li>
</ul>
</body>
</html>
`))

// link leads to a document.
type link struct{ Path, Title string }

// NewPage returns the handler of GET / for browsers, and of the documents below /docs/. It holds nothing that depends on who asks.
func NewPage(c PageConfig) (http.Handler, error) {
	links, err := linksTo(c.Documents)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, struct {
		PageConfig
		Links []link
	}{c, links}); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(pageStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	documents := http.StripPrefix(documentsPath, http.FileServerFS(c.Documents))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		switch name := strings.TrimPrefix(r.URL.Path, documentsPath); {
		case r.URL.Path == "/":
			h.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page.Bytes()) // the client may have gone
		case path.Ext(name) == ".md" && fs.ValidPath(name):
			h.Set("Content-Type", "text/plain; charset=utf-8")
			documents.ServeHTTP(w, r)
		default:
			Refuse(w, r, http.StatusNotFound, "The requested resource could not be found.")
		}
	}), nil
}

// linksTo lists documents by their first lines, in the order of their paths.
func linksTo(documents fs.FS) (links []link, err error) {
	names, err := fs.Glob(documents, "*/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(documents, name)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		links = append(links, link{documentsPath + name, path.Dir(name) + ": " + strings.TrimSpace(strings.TrimLeft(first, "#"))})
	}
	return links, nil
}

// wantsPage reports whether a request is one of a browser for the page or for a document.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.EscapedPath()
	return path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html") || strings.HasPrefix(path, documentsPath)
}
