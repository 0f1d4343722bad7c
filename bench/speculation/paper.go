package speculation

import "math"

// All numbers of the paper, SpecFaaS, that stand beside measured ones: those that its text and tables print. Its figures'
// bars are not read off: there is none for single applications here. NaN is what it does not print.

// suite is what it has of a suite of applications, in the mean.
type suite struct {
	name    string
	speedup [3]float64 // at low, medium and high load: section VIII-A, on Figure 11
	// The steps of the breakdown, one upon the other, in the mean of all loads: section VIII-B, on Figure 12. Where functions call
	// one another, the first means nothing without the second.
	branches float64
	memoized float64 // and memoization; squashes end sandboxes so far
	all      float64 // and fast squashes: the speedup
	tail     float64 // percent by which the slowest answers of each hundred come sooner, in the mean of all loads: section VIII-D, on Figure 13
	// Requests in a second, with answers in at most twice the time of one alone, and their ratio: Table III.
	baseline, served, throughput float64
}

// suites are those of the paper.
func suites() []suite {
	return []suite{
		{
			name: "FaaSChain", speedup: [3]float64{5.2, 5.0, 4.9}, branches: 2.9, memoized: 3.9, all: 5.0, tail: 62,
			baseline: 118.3, served: 485.0, throughput: 4.1,
		},
		{
			name: "TrainTicket", speedup: [3]float64{4.2, 4.4, 4.3}, branches: math.NaN(), memoized: 3.5, all: 4.4, tail: 56,
			baseline: 90.3, served: 346.0, throughput: 3.8,
		},
		{
			name: "Alibaba", speedup: [3]float64{4.4, 4.5, 4.6}, branches: math.NaN(), memoized: 3.5, all: 4.5, tail: 58,
			baseline: 81.6, served: 304.2, throughput: 3.7,
		},
	}
}

// whole is the mean of its applications: the speedup is in section VIII-A, the tail in VIII-D, the rest the last row of Table III.
func whole() suite {
	none := math.NaN()
	return suite{
		name: "all applications", speedup: [3]float64{none, none, none}, branches: none, memoized: none, all: 4.6, tail: 58.7,
		baseline: 96.7, served: 378.4, throughput: 3.9,
	}
}

// usualCPU is the processor time of FaaSChain's requests beside the baseline's, as branches usually go: Table IV, at 90%.
const usualCPU = 1.03

// hit is a row of Table IV, for FaaSChain in the mean of all loads: at which rate predictions are right, and what comes of that. Its
// speedups are Figure 14's mean.
type hit struct {
	rate    float64
	speedup float64
	cpu     float64 // beside the baseline's
	lazy    float64 // likewise, if squashed functions run to their ends
}

// usualRate is the one that data have by themselves.
const usualRate = 0.9

func (h hit) isUsual() bool { return h.rate == usualRate }

func hits() []hit {
	return []hit{{1, 5.2, 1, 1}, {usualRate, 5.0, usualCPU, 1.09}, {0.7, 4.6, 1.08, 1.24}, {0.5, 4.0, 1.15, 1.43}}
}
