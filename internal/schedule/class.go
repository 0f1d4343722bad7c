package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Class is a need of processor time in sixteenths of a processor: 1, 2, 4, 8, 16, and then multiples of 16.
type Class int

// Core is the class of a phase that needs one processor.
const Core Class = 16

// mostProcessors is the most that a phase may ask for.
const mostProcessors = 1024

const unlimited Class = math.MaxInt32

// ClassOf returns the smallest class that covers a need in processors. The need is at least a sixteenth. The error is a sentence for a
// person, without its subject's name.
func ClassOf(processors float64) (Class, error) {
	if !(processors >= 1/float64(Core) && processors <= mostProcessors) { // false for NaN
		return 0, fmt.Errorf("%v processors are out of range; a phase needs 0.0625 (a sixteenth) to %d processors", processors, mostProcessors)
	}
	return classFor(processors * float64(Core)), nil
}

// classFor returns the smallest class of at least so many slabs.
func classFor(slabs float64) Class {
	for c := Class(1); c <= Core; c *= 2 {
		if slabs <= float64(c) {
			return c
		}
	}
	return Core * Class(math.Ceil(slabs/float64(Core)))
}

// Processors is the class as a number of processors.
func (c Class) Processors() float64 { return float64(c) / float64(Core) }

// Annotation is the name of the annotation of an action that gives classes to its phases: {"read": 0.1, "sort": 1}.
const Annotation = "microtasks"

// MaxPhases is how many phases an annotation may name, and maxName how long a name may be.
const (
	MaxPhases = 64
	maxName   = 64
)

// CheckPhase refuses what is not a name of a phase. The error is a sentence for a person.
func CheckPhase(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a phase needs a name of 1 to %d characters", maxName)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return fmt.Errorf("the phase %q has a character that is not a letter, a digit, '.', '_' or '-'", name)
		}
	}
	if strings.EqualFold(name, "end") {
		return errors.New("END is not a name of a phase: it ends one")
	}
	return nil
}

// ParseClasses reads the value of the annotation: an object with the processors that each phase needs. The error is a sentence for a person.
func ParseClasses(value []byte) (map[string]Class, error) {
	var needs map[string]float64
	if err := json.Unmarshal(value, &needs); err != nil || needs == nil {
		return nil, errors.New(`it must be an object with the processors that each phase needs, like {"read": 0.1, "sort": 1}`)
	}
	if len(needs) > MaxPhases {
		return nil, fmt.Errorf("it has %d phases; at most %d are allowed", len(needs), MaxPhases)
	}
	classes := make(map[string]Class, len(needs))
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if err := CheckPhase(name); err != nil {
			return nil, err
		}
		class, err := ClassOf(needs[name])
		if err != nil {
			return nil, fmt.Errorf("the phase %q: %w", name, err)
		}
		classes[name] = class
	}
	return classes, nil
}
