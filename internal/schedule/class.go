package schedule

import (
	"fmt"
	"math"
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
