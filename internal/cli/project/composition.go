package project

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cli/compose"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/textfile"
)

// placeholder is the code of a composition, which is in its annotation. It answers where a platform does not know that.
const placeholder = `// The composition is in the annotation "conductor".
const main = () => ({ error: 'This platform does not run compositions from their annotation: deploy this one with openwhisk-composer.' })
`

// maxComposition bounds the nesting of a document.
const maxComposition = 200

func (b *builder) compositions(within []string, pkg string, compositions map[string]*composition) {
	for _, name := range sortedKeys(compositions) {
		path, x := below(within, "compositions", name), compositions[name]
		document, inline, err := readComposition(b.project.resolve(x.File))
		b.wrong(path, err)
		if err != nil {
			continue
		}
		b.addComposition(path, entityName(pkg, name), document, &x.common)
		for _, action := range inline {
			b.inline(path, action)
		}
	}
}

// inlineAction is an action whose code stands in a composition.
type inlineAction struct {
	Name   string `json:"name"`
	Action struct {
		Exec        whisk.Exec         `json:"exec"`
		Annotations []forerun.KeyValue `json:"annotations"`
	} `json:"action"`
}

func (b *builder) inline(path []string, x inlineAction) {
	name, err := forerun.ParseName(x.Name, "_")
	b.wrong(path, err)
	b.wrong(path, annotation.Check(x.Action.Annotations))
	exec := x.Action.Exec
	body := &whisk.ActionPut{Exec: &exec, Parameters: keyValues(nil), Annotations: x.Action.Annotations, Limits: limitsOf(limits{})}
	b.add(path, Entity{Collection: whisk.Actions, Name: name, Body: body, Rank: rankAction})
}

// readComposition reads a composition: a JavaScript file that exports it, or what `compose` writes, which is the document alone
// (--ast), or with its lowered form.
func readComposition(file string) (json.RawMessage, []inlineAction, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".js", ".cjs", ".mjs":
		data, err := compose.Document(file)
		if err != nil {
			return nil, nil, err
		}
		return parseComposition(file, data)
	}
	data, err := textfile.Read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("the composition cannot be read: %w", err)
	}
	return parseComposition(file, data)
}

func parseComposition(file string, data []byte) (json.RawMessage, []inlineAction, error) {
	var content struct {
		Type string          `json:"type"`
		AST  json.RawMessage `json:"ast"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, nil, fmt.Errorf("%s is not a JSON object; write it with `forerun compose FILE.js`, or name the JavaScript file itself: %w", file, err)
	}
	document := json.RawMessage(data)
	if content.Type == "" {
		document = content.AST
	}
	var root any
	if len(document) == 0 || json.Unmarshal(document, &root) != nil {
		return nil, nil, fmt.Errorf("%s is not a composition: it has neither a type nor an ast; write it with `forerun compose FILE.js`, or name the JavaScript file itself", file)
	}
	compact, err := canonical.Marshal(document)
	if err != nil {
		return nil, nil, err
	}
	inline, err := inlineActions(root, 0)
	return compact, inline, err
}

// inlineActions lists the actions whose code stands in a document.
func inlineActions(value any, depth int) (found []inlineAction, err error) {
	if depth > maxComposition {
		return nil, fmt.Errorf("the composition is nested more than %d deep: move a part of it into another composition", maxComposition)
	}
	var inside []any
	switch value := value.(type) {
	case []any:
		inside = value
	case map[string]any:
		if value["type"] == "literal" || value["type"] == "value" {
			return nil, nil // data of any form
		}
		if action, ok, err := inlineAt(value); ok {
			return []inlineAction{action}, err
		}
		for _, name := range sortedKeys(value) {
			inside = append(inside, value[name])
		}
	}
	for _, x := range inside {
		more, err := inlineActions(x, depth+1)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// inlineAt reads one combinator of type action that has code.
func inlineAt(value map[string]any) (x inlineAction, ok bool, err error) {
	if value["type"] != "action" || value["action"] == nil {
		return x, false, nil
	}
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &x)
	}
	if err == nil && x.Action.Exec.Kind == "" {
		err = fmt.Errorf("the code of the action %s in the composition has no kind: add the kind to its exec, like nodejs:20", x.Name)
	}
	return x, true, err
}
