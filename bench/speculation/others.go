package speculation

// others are measured apart from the applications.
func others() []measurement {
	return []measurement{
		{"hits", "a composition whose branches go as predicted in 100, 90, 70 and 50% of all cases", measureHits},
		{"nothing", "what cannot be predicted, or is predicted wrong", measureNothing},
		{"squash", "how long a squash keeps a sandbox", measureSquash},
		{"machine", "the pure machine, alone on a core", measureMachine},
		{"cluster", "the pure machine on 120 cores, in virtual time", simulate},
	}
}
