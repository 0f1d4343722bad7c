package openwhisk

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"forerun.dev/forerun/internal/forerun"
)

// wholeRecord is a record that answers an invocation, or a request for it. Its JSON is that of its activationDocument.
type wholeRecord struct{ *forerun.Activation }

// AppendJSON implements gateway.Appender. The record's result and the values of its annotations are JSON.
func (a wholeRecord) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"namespace":`, a.Namespace)
	b = appendText(b, `,"name":`, a.Action.Entity)
	b = appendText(b, `,"version":`, a.Version)
	b = appendText(b, `,"publish":false,"subject":`, a.Subject)
	b = appendText(b, `,"activationId":`, string(a.ID))
	if a.Cause != "" {
		b = appendText(b, `,"cause":`, string(a.Cause))
	}
	b = strconv.AppendInt(append(b, `,"start":`...), a.Start.UnixMilli(), 10)
	if ending := endingOf(a.Activation); ending != nil {
		b = strconv.AppendInt(append(b, `,"end":`...), ending.End, 10)
		b = strconv.AppendInt(append(b, `,"duration":`...), ending.Duration, 10)
	}
	b = appendText(b, `,"response":{"status":`, a.Status.String())
	b = strconv.AppendBool(append(b, `,"success":`...), a.Status == forerun.Success)
	b = appendJSON(b, `,"result":`, a.Result)
	b = strconv.AppendInt(append(b, `,"size":`...), int64(len(a.Result)), 10)
	b = append(b, `},"logs":[`...)
	for i, line := range a.Logs {
		b = appendText(b, comma(i), line)
	}
	b = append(b, `],"annotations":[`...)
	for i := range a.Annotations {
		annotation := &a.Annotations[i]
		b = appendText(append(b, comma(i)...), `{"key":`, annotation.Key)
		b = appendJSON(b, `,"value":`, annotation.Value)
		if annotation.Init {
			b = append(b, `,"init":true`...)
		}
		if annotation.Secret {
			b = append(b, `,"secret":true`...)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// comma is what stands before the element i of an array.
func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func appendText(b []byte, name, value string) []byte {
	b, _ = jsontext.AppendQuote(append(b, name...), value) // the error only says that bytes were not UTF-8 and were replaced
	return b
}

func appendJSON(b []byte, name string, value []byte) []byte {
	b = append(b, name...)
	if value == nil {
		return append(b, "null"...)
	}
	return append(b, value...)
}
