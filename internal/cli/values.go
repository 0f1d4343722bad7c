package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/textfile"
)

// pairs are the values of a flag that takes a key and a value and may be repeated.
type pairs []forerun.KeyValue

// quotePair makes one argument of two, for pairs.Set.
func quotePair(key, value string) string {
	quoted, _ := json.Marshal([2]string{key, value}) // strings always marshal
	return string(quoted)
}

// Set implements pflag.Value: it reads what joinPairs made.
func (p *pairs) Set(joined string) error {
	var pair [2]string
	if json.Unmarshal([]byte(joined), &pair) != nil || pair[0] == "" {
		return wrongf("it takes two arguments, KEY VALUE")
	}
	*p = append(*p, forerun.KeyValue{Key: pair[0], Value: jsonOf(pair[1])})
	return nil
}

// String implements pflag.Value.
func (p *pairs) String() string { return "" }

// Type implements pflag.Value: it is what help shows for the arguments.
func (p *pairs) Type() string { return "KEY VALUE" }

// jsonOf reads a value as wsk does: as JSON if it is that, else as a string.
func jsonOf(value string) json.RawMessage {
	if json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	quoted, _ := canonical.Marshal(value) // strings always marshal
	return quoted
}

// milliseconds is the value of a flag for a time.
type milliseconds int

// Set implements pflag.Value.
func (m *milliseconds) Set(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("it takes milliseconds, like 1000")
	}
	*m = milliseconds(n)
	return nil
}

// String implements pflag.Value: it is what help shows for the default.
func (m *milliseconds) String() string { return strconv.Itoa(int(*m)) }

// Type implements pflag.Value.
func (m *milliseconds) Type() string { return "int" }

// keyValues are the flags for parameters or annotations: pairs, and files with a JSON object.
type keyValues struct {
	pairs pairs
	files []string
}

// params adds the flags -p and -P.
func params(flags *pflag.FlagSet) *keyValues {
	kvs := new(keyValues)
	flags.VarP(&kvs.pairs, "param", "p", "parameter; a value that is JSON is taken as such; may be repeated")
	flags.StringArrayVarP(&kvs.files, "param-file", "P", nil, "`FILE` with parameters as a JSON object; - is stdin")
	return kvs
}

// annotations adds the flags -a and -A.
func annotations(flags *pflag.FlagSet) *keyValues {
	kvs := new(keyValues)
	flags.VarP(&kvs.pairs, "annotation", "a", "annotation; a value that is JSON is taken as such; may be repeated")
	flags.StringArrayVarP(&kvs.files, "annotation-file", "A", nil, "`FILE` with annotations as a JSON object; - is stdin")
	return kvs
}

// environment are the flags for parameters that are variables of the environment.
type environment struct{ plain, secret pairs }

// environmentFlags adds the flags --env and --secret.
func environmentFlags(flags *pflag.FlagSet) *environment {
	e := new(environment)
	flags.Var(&e.plain, "env", "variable of the function's environment; may be repeated")
	flags.Var(&e.secret, "secret", "the same for a value that is stored encrypted and not shown; may be repeated")
	return e
}

// over lays the variables over parameters.
func (e *environment) over(kvs []forerun.KeyValue) []forerun.KeyValue {
	for _, kv := range e.plain {
		kvs = with(kvs, forerun.KeyValue{Key: kv.Key, Value: kv.Value, Init: true})
	}
	for _, kv := range e.secret {
		kvs = with(kvs, forerun.KeyValue{Key: kv.Key, Value: kv.Value, Init: true, Secret: true})
	}
	return kvs
}

// secretsFlag adds the flag --secrets.
func secretsFlag(flags *pflag.FlagSet) *bool {
	return flags.Bool("secrets", false, "show the values of secret parameters")
}

// withSecrets adds to a query what --secrets asks for.
func withSecrets(query url.Values, show bool) url.Values {
	if !show {
		return query
	}
	if query == nil {
		query = make(url.Values)
	}
	query.Set("secrets", "true")
	return query
}

// all reads the files and puts the pairs over them; nil if there are none of both.
func (k *keyValues) all(cmd *cobra.Command) ([]forerun.KeyValue, error) {
	var all []forerun.KeyValue
	for _, file := range k.files {
		members, err := readObject(cmd, file)
		if err != nil {
			return nil, err
		}
		all = withAll(all, members)
	}
	return withAll(all, k.pairs), nil
}

// object is the same as one JSON object.
func (k *keyValues) object(cmd *cobra.Command) (json.RawMessage, error) {
	all, err := k.all(cmd)
	if err != nil {
		return nil, err
	}
	return objectOf(all), nil
}

// objectOf makes a JSON object, in the order of kvs.
func objectOf(kvs []forerun.KeyValue) json.RawMessage {
	var b strings.Builder
	for i, kv := range kvs {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		key, _ := canonical.Marshal(kv.Key) // strings always marshal
		b.Write(key)
		b.WriteByte(':')
		b.Write(kv.Value)
	}
	if len(kvs) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// with adds a pair, or puts it in the place of one with the same key.
func with(kvs []forerun.KeyValue, pair forerun.KeyValue) []forerun.KeyValue {
	for i := range kvs {
		if kvs[i].Key == pair.Key {
			kvs[i] = pair
			return kvs
		}
	}
	return append(kvs, pair)
}

// withAll adds pairs, each as with does.
func withAll(kvs, pairs []forerun.KeyValue) []forerun.KeyValue {
	for _, pair := range pairs {
		kvs = with(kvs, pair)
	}
	return kvs
}

// readObject reads the members of a JSON object, in their order.
func readObject(cmd *cobra.Command, file string) ([]forerun.KeyValue, error) {
	data, err := readInput(cmd, file)
	if err != nil {
		return nil, wrongf("%v", err)
	}
	kvs, err := parseObject(data)
	if err != nil {
		return nil, wrongf("%s is not a JSON object: %v", file, err)
	}
	return kvs, nil
}

func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(cmd.InOrStdin())
		return textfile.Decode(data), err
	}
	return textfile.Read(file)
}

// parseObject reads a JSON object into its members.
func parseObject(data []byte) ([]forerun.KeyValue, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, errors.New("it is null")
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	var kvs []forerun.KeyValue
	for depth := 0; ; {
		switch token, err := decoder.Token(); {
		case err == io.EOF:
			return kvs, nil
		case err != nil:
			return nil, err
		case token == json.Delim('{') && depth == 0:
			depth++
		case token == json.Delim('}'):
			depth--
		default:
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return nil, err
			}
			kvs = with(kvs, forerun.KeyValue{Key: token.(string), Value: value})
		}
	}
}

// nameOf reads the name of an entity; "_" stands for the caller's namespace, also where none is written.
func nameOf(s string) (forerun.Name, error) {
	name, err := forerun.ParseName(strings.TrimSuffix(s, "/"), "_")
	if err != nil {
		return name, wrongf("%v", err)
	}
	return name, nil
}

// plainNameOf reads the name of an entity that is in no package: /namespace/name or name.
func plainNameOf(s string) (forerun.Name, error) {
	name, err := nameOf(s)
	if err == nil && name.Package != "" {
		return name, wrongf("%q is not a name here: write NAME or /NAMESPACE/NAME", s)
	}
	return name, err
}
