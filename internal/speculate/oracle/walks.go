package oracle

import (
	"encoding/binary"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// A walk of a program is done once: what is the same walk has the same cursors, so that states can be told apart by them.

// begins walks to the first stop of a program.
func (r *search) begins(p forerun.Program, input json.RawMessage) forerun.Stop {
	key := append(binary.AppendUvarint([]byte{'s'}, r.number(p)), input...)
	return r.walked(key, func() forerun.Stop { return p.Start(input) })
}

// goesOn walks on behind where a walk waited.
func (r *search) goesOn(n *node, results []forerun.Result) forerun.Stop {
	key := binary.AppendUvarint(binary.AppendUvarint([]byte{flag(n.fork)}, r.number(n.program)), r.number(n.at))
	for _, result := range results {
		key = append(append(key, byte(result.Status)), result.Value...)
	}
	return r.walked(key, func() forerun.Stop {
		if n.fork {
			return n.program.Join(n.at, results)
		}
		return n.program.Resume(n.at, results[0])
	})
}

func (r *search) walked(key []byte, walk func() forerun.Stop) forerun.Stop {
	stop, ok := r.walks[string(key)]
	if !ok {
		stop = walk()
		r.walks[string(key)] = stop
	}
	return stop
}
