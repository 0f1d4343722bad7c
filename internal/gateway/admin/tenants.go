package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
)

// maxBody bounds what a request may carry, in bytes.
const maxBody = 64 << 10

// tenantDocument is a tenant as the API shows it. Auth is there when it was just made: it is stored nowhere.
type tenantDocument struct {
	Namespace string          `json:"namespace"`
	Created   int64           `json:"created"`             // milliseconds since 1970; 0: not known
	Suspended int64           `json:"suspended,omitempty"` // since when; 0: it is not
	Auth      string          `json:"auth,omitempty"`
	Quotas    registry.Quotas `json:"quotas"` // that were set
	Egress    egress.List     `json:"egress"` // what its functions may reach
	Limits    registry.Limits `json:"limits"` // that come of them and of the server's defaults
	Stored    storedDocument  `json:"stored"`
}

// storedDocument is how many bytes a tenant stores.
type storedDocument struct {
	State    int64  `json:"state"`
	Entities int64  `json:"entities"`
	Code     int64  `json:"code"`
	Records  int64  `json:"records"`
	Keys     int64  `json:"idempotencyKeys"`
	Total    int64  `json:"total"`
	Allowed  *int64 `json:"allowed"` // at the moment; null: nothing bounds it
}

func (a *API) documentOf(t registry.Tenant, auth string) tenantDocument {
	d := tenantDocument{Namespace: t.Namespace, Auth: auth, Quotas: t.Quotas, Limits: t.Limits, Egress: t.Egress}
	s, most := a.Stored(t.Namespace)
	d.Stored = storedDocument{State: s[state.Values], Entities: s[state.Entities], Code: s[state.Code], Records: s[state.Records], Keys: s[state.Keys], Total: s.Total()}
	if most != math.MaxInt64 {
		d.Stored.Allowed = &most
	}
	if !t.Created.IsZero() {
		d.Created = t.Created.UnixMilli()
	}
	if !t.Suspended.IsZero() {
		d.Suspended = t.Suspended.UnixMilli()
	}
	return d
}

// list answers GET tenants.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	tenants, err := a.Registry.Tenants(r.Context())
	if err != nil {
		return err
	}
	documents := make([]tenantDocument, len(tenants))
	for i, t := range tenants {
		documents[i] = a.documentOf(t, "")
	}
	gateway.WriteJSON(w, http.StatusOK, documents)
	return nil
}

// get answers GET tenants/NAME.
func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	return a.show(w, r, "")
}

func (a *API) show(w http.ResponseWriter, r *http.Request, auth string) error {
	t, err := a.Registry.Tenant(r.Context(), r.PathValue("name"))
	if err == nil {
		gateway.WriteJSON(w, http.StatusOK, a.documentOf(t, auth))
	}
	return err
}

// put answers PUT tenants/NAME: it makes a tenant and answers with its key or, with overwrite=true, changes the quotas of
// one that is there.
func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	var content struct {
		Quotas registry.Quotas `json:"quotas"`
		Egress *egress.List    `json:"egress"`
	}
	if err := decode(w, r, "a tenant", &content); err != nil {
		return err
	}
	name := r.PathValue("name")
	if r.URL.Query().Get("overwrite") == "true" {
		if _, err := a.Registry.SetQuotas(r.Context(), name, content.Quotas); err != nil {
			return err
		}
		if err := a.setEgress(w, r, name, content.Egress); err != nil {
			return err
		}
		return a.show(w, r, "")
	}
	credentials, err := a.create(r.Context(), name, content.Quotas)
	if err == nil {
		err = a.setEgress(w, r, name, content.Egress)
	}
	if err != nil {
		return err
	}
	return a.show(w, r, credentials.String())
}

// setEgress changes what a tenant's functions may reach, if list is not nil. Sandboxes that began under another list end, with what runs in
// them. The audit log has the new list.
func (a *API) setEgress(w http.ResponseWriter, r *http.Request, name string, list *egress.List) error {
	if list == nil {
		return nil
	}
	note(w, "egress "+list.String())
	a.changing.Lock()
	defer a.changing.Unlock()
	ctx := context.WithoutCancel(r.Context()) // once begun, it is done
	before, err := a.Registry.Tenant(ctx, name)
	if err != nil || before.Egress.String() == list.String() {
		return err
	}
	if err := a.Registry.SetEgress(ctx, name, *list); err != nil {
		return err
	}
	a.Controller.EndInvocations(ctx, name, "The operator has changed what functions of this tenant may reach.")
	a.EndSandboxes(name)
	return nil
}

// decode reads the content of a request, which is to be a certain thing, if there is any. What is not known, or said twice, would not hold.
func decode(w http.ResponseWriter, r *http.Request, what string, content any) error {
	body, err := gateway.Body(w, r, maxBody)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, content, json.RejectUnknownMembers(true)); err != nil {
		return forerun.Errorf(forerun.Invalid, "body", "The content must be %s: %w", what, inWords(err))
	}
	return nil
}

// inWords says what is wrong in a content without naming types of this program.
func inWords(err error) error {
	semantic, isSemantic := errors.AsType[*json.SemanticError](err)
	syntactic, isSyntactic := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("the member %.200q is not known", semantic.JSONPointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("the member %.200q comes twice", syntactic.JSONPointer.LastToken())
	case isSemantic && semantic.JSONPointer == "":
		return errors.New("it is not a JSON object")
	case isSemantic:
		return fmt.Errorf("%.200q has the wrong type", string(semantic.JSONPointer))
	case isSyntactic:
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return err
}

// create makes a tenant. What late requests of a former tenant of the same name may have begun or left is ended and removed first.
func (a *API) create(ctx context.Context, name string, quotas registry.Quotas) (registry.Credentials, error) {
	if err := checkName(name); err != nil {
		return registry.Credentials{}, err
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	if _, err := a.Registry.Tenant(ctx, name); err == nil || forerun.KindOf(err) != forerun.NotFound {
		return registry.Credentials{}, errors.Join(err, forerun.Errorf(forerun.Exists, name, "The namespace %s is already taken.", name))
	}
	if err := a.end(ctx, name); err != nil {
		return registry.Credentials{}, err
	}
	return a.Registry.CreateTenant(ctx, name, quotas)
}

// checkName refuses names that are no namespaces or that the platform needs itself.
func checkName(name string) error {
	if name == "_" || name == "whisk" || strings.HasPrefix(name, "whisk.") {
		return forerun.Errorf(forerun.Invalid, name, "The namespace %s is reserved: choose another name.", name)
	}
	return forerun.CheckSegment(name)
}

// rotate answers POST tenants/NAME/rotate with a new key. All others are void, and so are the tokens of running functions.
func (a *API) rotate(w http.ResponseWriter, r *http.Request) error {
	a.changing.Lock() // the last to make a key is the last to say so
	defer a.changing.Unlock()
	name := r.PathValue("name")
	r = r.WithContext(context.WithoutCancel(r.Context())) // once begun, it is done, and told
	credentials, err := a.Registry.RotateKeys(r.Context(), name)
	if err != nil {
		return err
	}
	a.Controller.VoidTokens(name)
	if err := a.KeysChanged(name, credentials.String()); err != nil { // the answer is the only place where the key is in the clear
		a.Log.Error("a tenant's new key could not be put into the clients' settings", "tenant", name, "error", err)
	}
	return a.show(w, r, credentials.String())
}

// suspend answers POST tenants/NAME/suspend when nothing of the tenant runs any more. The tenant keeps its data.
func (a *API) suspend(w http.ResponseWriter, r *http.Request) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	name, ctx := r.PathValue("name"), context.WithoutCancel(r.Context()) // once begun, it is done
	t, err := a.Registry.Suspend(ctx, name)
	if err != nil {
		return err
	}
	a.Controller.VoidTokens(name)
	a.Controller.EndInvocations(ctx, name, "The tenant was suspended before the activation ended. Try again when the operator of this server has resumed it.")
	a.EndSandboxes(name)
	a.Log.Info("a tenant was suspended", "tenant", name)
	gateway.WriteJSON(w, http.StatusOK, a.documentOf(t, ""))
	return nil
}

// resume answers POST tenants/NAME/resume.
func (a *API) resume(w http.ResponseWriter, r *http.Request) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	t, err := a.Registry.Resume(context.WithoutCancel(r.Context()), r.PathValue("name"))
	if err != nil {
		return err
	}
	a.Log.Info("a tenant was resumed", "tenant", t.Namespace)
	gateway.WriteJSON(w, http.StatusOK, a.documentOf(t, ""))
	return nil
}

// delete answers DELETE tenants/NAME with what the tenant was.
func (a *API) delete(w http.ResponseWriter, r *http.Request) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	name, ctx := r.PathValue("name"), context.WithoutCancel(r.Context()) // once begun, it is done
	t, err := a.Registry.DeleteTenant(ctx, name)
	if err != nil {
		return err
	}
	if err := errors.Join(a.KeysChanged(name, ""), a.finish(ctx, name)); err != nil {
		return err
	}
	gateway.WriteJSON(w, http.StatusOK, a.documentOf(t, ""))
	return nil
}

// FinishDeletions finishes the deletions that an earlier server began.
func (a *API) FinishDeletions(ctx context.Context) error {
	names, err := a.Registry.Gone(ctx)
	for _, name := range names {
		err = errors.Join(err, a.finish(ctx, name))
	}
	return err
}

// finish ends what runs for a tenant who was deleted, and removes what was theirs.
func (a *API) finish(ctx context.Context, name string) error {
	if err := a.end(ctx, name); err != nil {
		return err
	}
	a.Quotas.Forget(name)
	a.Log.Info("a tenant was deleted", "tenant", name)
	return a.Registry.Erased(ctx, name)
}

// end ends what runs for a tenant, and removes what is theirs.
func (a *API) end(ctx context.Context, name string) error {
	a.Controller.EndNamespace(ctx, name, "The tenant was deleted.")
	a.EndSandboxes(name)
	return errors.Join(a.Registry.Erase(ctx, name), a.Activations.Erase(ctx, name), a.EraseState(ctx, name))
}
