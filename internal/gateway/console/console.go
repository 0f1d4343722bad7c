// Package console serves the console: a page on which a tenant sees what runs and tries it. It has an address of its own, without web
// actions: a tenant's page never has the console's origin.
//
// It promises that a request reaches the API only with both secrets of a login (a cookie that no script reads, and a token that no other
// origin reads) and from a page of this origin, that a session can read and invoke and change nothing else, and that it ends with its key.
package console

import (
	"context"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// Prefix begins the paths of the console's page.
const Prefix = "/console/"

// TokenHeader is the header in which the page shows the token of its session.
const TokenHeader = "X-Forerun-Console"

// Config is what a console is made of.
type Config struct {
	API     http.Handler
	Tenants *registry.Registry
	Files   fs.FS  // the page: index.html and what that names
	Secure  bool   // it is served over TLS
	APIURL  string // where programs find the API
}

// Console serves the console.
type Console struct {
	Config
	files    files
	sessions sessions
}

// New returns a console. It fails if the files cannot be read.
func New(c Config) (*Console, error) {
	files, err := pack(c.Files)
	return &Console{Config: c, files: files}, err
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	var err error
	switch p := r.URL.EscapedPath(); {
	case p == "/" || p == "/console":
		http.Redirect(w, r, Prefix, http.StatusFound)
	case p == Prefix+"login" || p == Prefix+"logout":
		err = c.serveSession(w, r, path.Base(p))
	case strings.HasPrefix(p, Prefix):
		err = c.files.serve(w, r, strings.TrimPrefix(p, Prefix))
	case strings.HasPrefix(p, "/api/v1/namespaces/"):
		err = c.serveAPI(w, r)
	default:
		err = forerun.Errorf(forerun.NotFound, p, "This address serves the console only, at %s.", Prefix)
	}
	if err != nil {
		gateway.Fail(w, r, err)
	}
}

// protect sets what every answer has: a browser runs no code but the console's own files, and shows nothing of it in another page.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isOwn reports, as nil, that a request comes from a page of this origin. Browsers name the origin in every request that is not a GET.
func (c *Console) isOwn(r *http.Request) error {
	scheme := "http://"
	if c.Secure {
		scheme = "https://"
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	own := origin == scheme+r.Host || origin == "" && r.Method == http.MethodGet
	if !own || site != "" && site != "same-origin" {
		return forerun.Errorf(forerun.Forbidden, r.URL.Path, "The request does not come from a page of the console: open %s%s%s.", scheme, r.Host, Prefix)
	}
	return nil
}

// session finds the session of a request of the console's page.
func (c *Console) session(r *http.Request) (*session, error) {
	if err := c.isOwn(r); err != nil {
		return nil, err
	}
	for _, cookie := range r.CookiesNamed(c.cookieName()) {
		if s := c.sessions.find(cookie.Value); s != nil && s.owns(r.Header.Get(TokenHeader)) {
			return s, nil
		}
	}
	return nil, forerun.Errorf(forerun.Unauthorized, "", "The session has ended: log in.")
}

// cookieName is the name of the cookie of sessions. Over TLS a browser takes it only from this host.
func (c *Console) cookieName() string {
	if c.Secure {
		return gateway.SecureConsoleCookie
	}
	return gateway.ConsoleCookie
}

// serveSession answers a login or logout.
func (c *Console) serveSession(w http.ResponseWriter, r *http.Request, what string) error {
	if r.Method != http.MethodPost {
		gateway.NotAllowed(w, r, http.MethodPost)
		return nil
	}
	if what == "login" {
		return c.login(w, r)
	}
	s, err := c.session(r)
	if err != nil {
		return err
	}
	s.end()
	c.sessions.drop(s)
	c.setCookie(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxLogin is the most bytes that a login has.
const maxLogin = 4 << 10

// loginDocument answers a login.
type loginDocument struct {
	Namespace string `json:"namespace"`
	Token     string `json:"token"` // for TokenHeader
	Expires   int64  `json:"expires"`
	API       string `json:"api"` // where programs find the API
}

// login makes a session of a tenant's key.
func (c *Console) login(w http.ResponseWriter, r *http.Request) error {
	if err := c.isOwn(r); err != nil {
		return err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return forerun.Errorf(forerun.Invalid, "Content-Type", "A login is JSON: {\"key\": \"UUID:KEY\"}.")
	}
	var given struct{ Key string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&given); err != nil {
		return forerun.Errorf(forerun.Invalid, "key", "A login is JSON: {\"key\": \"UUID:KEY\"}.")
	}
	uuid, key, _ := strings.Cut(strings.TrimSpace(given.Key), ":")
	tenant, err := c.Tenants.Authenticate(r.Context(), uuid, key)
	if err != nil {
		if forerun.KindOf(err) == forerun.Unauthorized {
			failed := r.Clone(r.Context())
			failed.SetBasicAuth(uuid, "") // which the entry has
			gateway.NoteFailure(failed)
		}
		return err
	}
	for _, cookie := range r.CookiesNamed(c.cookieName()) { // of the login before
		if s := c.sessions.find(cookie.Value); s != nil && s.owns(r.Header.Get(TokenHeader)) {
			s.end()
		}
	}
	s := c.sessions.begin(tenant.Namespace, registry.Credentials{UUID: uuid, Key: key}, c.Tenants.WhenVoid)
	if valid, err := c.Tenants.ValidKey(r.Context(), uuid); err != nil || !valid { // it may have become void just now
		s.end()
		return forerun.Errorf(forerun.Unauthorized, "", "The supplied authentication is invalid")
	}
	gateway.Note(r, audit.KeyOf(uuid), tenant.Namespace, http.StatusOK)
	c.setCookie(w, s.id, 0)
	gateway.WriteJSON(w, http.StatusOK, loginDocument{s.namespace, s.token, s.ends.UnixMilli(), c.APIURL})
	return nil
}

func (c *Console) setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: c.Secure, SameSite: http.SameSiteStrictMode})
}

// serveAPI passes what a session may do on to the API, with the session's key.
func (c *Console) serveAPI(w http.ResponseWriter, r *http.Request) error {
	s, err := c.session(r)
	if err != nil {
		return err
	}
	if !mayAsk(r) {
		gateway.Refuse(w, r, http.StatusMethodNotAllowed, "The console reads and invokes: it changes nothing. Use the command line.")
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	asked := r.Clone(ctx)
	for _, name := range []string{"Cookie", "Origin", TokenHeader} {
		asked.Header.Del(name)
	}
	asked.SetBasicAuth(s.key.UUID, s.key.Key)
	c.API.ServeHTTP(&answer{ResponseWriter: w, session: s}, asked)
	return nil
}

// mayAsk reports whether the console may make a request: one that reads, or that invokes an action. Secrets are not for the console.
func mayAsk(r *http.Request) bool {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/namespaces/"), "/")
	query, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case err != nil || query.Has("secrets"):
		return false
	case r.Method == http.MethodGet:
		return true
	}
	return r.Method == http.MethodPost && len(segments) > 2 && segments[1] == "actions"
}

// answer is what the API answers, without what it says to other origins, and to clients that have a key themselves.
type answer struct {
	http.ResponseWriter
	session *session
	begun   bool
}

// WriteHeader implements http.ResponseWriter. A key that is not good any more ends its session.
func (a *answer) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *answer) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// FlushError serves http.ResponseController.
func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) begin(status int) {
	if a.begun {
		return
	}
	a.begun = true
	h := a.Header()
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	h.Del("WWW-Authenticate")
	if status == http.StatusUnauthorized {
		a.session.end()
	}
}
