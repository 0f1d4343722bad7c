package openwhisk

import (
	"context"
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/trace"
)

// listActivations answers GET .../activations.
func (a *API) listActivations(c *call) error {
	namespace, err := c.namespace("")
	if err != nil {
		return err
	}
	query, err := c.activationQuery()
	if err != nil {
		return err
	}
	docs, err := c.flag("docs", false)
	if err != nil {
		return err
	}
	count, err := c.flag("count", false)
	switch {
	case err != nil:
		return err
	case count && docs:
		return forerun.Errorf(forerun.Invalid, "docs", "The parameter 'docs' is not permitted with 'count'.")
	case count:
		n, err := a.Activations.Count(c.r.Context(), namespace, query)
		if err == nil {
			gateway.WriteJSON(c.w, http.StatusOK, map[string]int{"activations": n})
		}
		return err
	}
	if docs {
		return streamList(c, a.Activations.Whole(c.r.Context(), namespace, query), activationOf)
	}
	records, err := a.Activations.List(c.r.Context(), namespace, query)
	if err != nil {
		return err
	}
	documents := make([]any, len(records))
	for i, record := range records {
		documents[i] = activationSummaryOf(record)
	}
	gateway.WriteJSON(c.w, http.StatusOK, documents)
	return nil
}

// activationQuery reads what a list is to hold.
func (c *call) activationQuery() (q activation.Query, err error) {
	if q.Skip, q.Limit, err = c.page("activations"); err != nil {
		return q, err
	}
	if q.Since, err = c.moment("since"); err != nil {
		return q, err
	}
	if q.Upto, err = c.moment("upto"); err != nil {
		return q, err
	}
	q.Name, err = c.activationName()
	return q, err
}

// activationName reads of which action activations are wanted, "name" or "package/name"; empty: of any.
func (c *call) activationName() (string, error) {
	name := strings.TrimSpace(c.query.Get("name"))
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
	for _, part := range parts {
		if len(parts) > 2 || forerun.CheckSegment(part) != nil {
			return "", malformedQuery("name", "Parameter may be a 'simple' name or 'package-name/simple' name: %s", name)
		}
	}
	return strings.Join(parts, "/"), nil
}

// put adds a record that no invocation has.
func (a *API) put(ctx context.Context, record *forerun.Activation) error {
	err := a.Activations.Put(ctx, record)
	if err == nil {
		a.Feed.End(record)
	}
	return err
}

// record finds the record that the path names.
func (a *API) record(c *call) (*forerun.Activation, error) {
	namespace, id, err := c.recordID()
	if err != nil {
		return nil, err
	}
	return a.Activations.Get(c.r.Context(), namespace, id)
}

// recordID reads which record the path names.
func (c *call) recordID() (namespace string, id forerun.ActivationID, err error) {
	given := c.vars.get("id")
	id, err = forerun.ParseActivationID(given)
	if err != nil && len(given) != 32 {
		return "", "", forerun.Errorf(forerun.Invalid, given, "Activation id length is %d but must be 32.", len(given))
	}
	if err != nil {
		return "", "", forerun.Errorf(forerun.Invalid, given, "The activation id is not valid.")
	}
	if c.vars.get("namespace") == registry.System {
		return "", "", forerun.Errorf(forerun.NotFound, given, "The requested resource does not exist.")
	}
	namespace, err = c.namespace(given)
	return namespace, id, err
}

// getActivation answers GET .../activations/ID, with the trace if the query wants it.
func (a *API) getActivation(c *call) error {
	traced, err := c.flag("trace", false)
	if err != nil {
		return err
	}
	record, err := a.record(c)
	switch {
	case err != nil:
		return err
	case traced:
		gateway.WriteJSON(c.w, http.StatusOK, tracedActivation{activationOf(record), trace.Of(record)})
	default:
		gateway.WriteJSON(c.w, http.StatusOK, wholeRecord{record})
	}
	return nil
}

// getResult answers GET .../activations/ID/result.
func (a *API) getResult(c *call) error {
	record, err := a.record(c)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, responseOf(record))
	}
	return err
}

// getLogs answers GET .../activations/ID/logs.
func (a *API) getLogs(c *call) error {
	record, err := a.record(c)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, document{"logs": list(record.Logs)})
	}
	return err
}
