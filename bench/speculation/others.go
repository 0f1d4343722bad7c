package speculation

// others are measured apart from the applications.
func others() []measurement {
	return []measurement{
		{"hits", "a composition whose branches go as predicted in 100, 90, 70 and 50% of all cases", measureHits},
		{"nothing", "what cannot be predicted, or is predicted wrong", measureNothing},
	}
}
