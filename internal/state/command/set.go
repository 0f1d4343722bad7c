package command

import (
	"strings"

	"forerun.dev/forerun/internal/state"
)

// setOption is a set of options of SET and GETEX.
type setOption uint16

const (
	optionNX setOption = 1 << iota
	optionXX
	optionGet
	optionKeepTTL
	optionPersist
	optionEX
	optionPX
	optionEXAT
	optionPXAT

	optionsOfTime = optionEX | optionPX | optionEXAT | optionPXAT
	optionsOfLife = optionsOfTime | optionKeepTTL | optionPersist // of which one kind at most may be given

	setOptions   = optionNX | optionXX | optionGet | optionKeepTTL | optionsOfTime
	getexOptions = optionPersist | optionsOfTime
)

var setOptionNames = map[string]setOption{
	"NX": optionNX, "XX": optionXX, "GET": optionGet, "KEEPTTL": optionKeepTTL, "PERSIST": optionPersist,
	"EX": optionEX, "PX": optionPX, "EXAT": optionEXAT, "PXAT": optionPXAT,
}

// parsedOptions are the options of one command.
type parsedOptions struct {
	nx, xx, get, keepTTL, persist bool
	life                          setOption // the one of optionsOfLife that was given, if any
	when                          []byte    // the argument of an option of time
}

// parseSetOptions reads options of which allowed are those that the command has.
func parseSetOptions(args [][]byte, allowed setOption) (parsedOptions, *state.Reply) {
	var o parsedOptions
	refuse := func() (parsedOptions, *state.Reply) {
		refusal := syntaxError()
		return o, &refusal
	}
	for i := 0; i < len(args); i++ {
		option := setOptionNames[strings.ToUpper(string(args[i][:min(len(args[i]), maxName)]))]
		if option&allowed == 0 {
			return refuse()
		}
		if option&optionsOfLife != 0 {
			if o.life != 0 && o.life != option {
				return refuse()
			}
			o.life = option
		}
		if option&optionsOfTime != 0 {
			i++
			if i == len(args) {
				return refuse()
			}
			o.when = args[i]
		}
		o.nx = o.nx || option == optionNX
		o.xx = o.xx || option == optionXX
		o.get = o.get || option == optionGet
		o.keepTTL = o.keepTTL || option == optionKeepTTL
		o.persist = o.persist || option == optionPersist
	}
	if o.nx && o.xx {
		return refuse()
	}
	return o, nil
}

// relative says whether there is an expiry that counts from now.
func (o *parsedOptions) relative() bool { return o.life == optionEX || o.life == optionPX }

// expires is when the record is to expire; 0 if no option says so.
func (o *parsedOptions) expires(t *txn) (int64, *state.Reply) {
	if o.life&optionsOfTime == 0 {
		return 0, nil
	}
	unit := int64(1)
	if o.life == optionEX || o.life == optionEXAT {
		unit = 1000
	}
	return t.expiry(o.when, unit, o.relative())
}

func set(t *txn, args [][]byte) state.Reply {
	o, refusal := parseSetOptions(args[3:], setOptions)
	if refusal != nil {
		return *refusal
	}
	expires, refusal := o.expires(t)
	if refusal != nil {
		return *refusal
	}
	r := t.load(args[1])
	answer := ok()
	if o.get {
		if answer = r.text(!r.exists() || r.kind == state.String); answer.Kind == state.Error {
			return answer
		}
	}
	if o.nx && r.exists() || o.xx && !r.exists() {
		if o.get {
			return answer
		}
		return null()
	}
	if o.keepTTL {
		expires = r.expires
	}
	t.setString(args[1], r, args[2], expires)
	return answer
}

func getex(t *txn, args [][]byte) state.Reply {
	o, refusal := parseSetOptions(args[2:], getexOptions)
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.String)
	if !typed || !r.exists() {
		return r.text(typed)
	}
	expires, refusal := o.expires(t)
	if refusal != nil {
		return *refusal
	}
	t.expireAt(args[1], r, expires, o.persist)
	return bulk(r.payload)
}

// expireAt gives a record an expiry; 0 leaves it, unless it is to be made persistent. One in the past deletes it.
func (t *txn) expireAt(name []byte, r record, expires int64, persist bool) {
	switch {
	case expires == 0 && (!persist || r.expires == 0):
	case expires != 0 && expires <= t.now:
		t.remove(name, r)
	default:
		r.expires = expires
		t.save(name, r)
	}
}
