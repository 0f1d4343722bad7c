package speculate

// SpecFaaS looks at each branch by itself. Behind three that go one way in nine of ten cases each, what runs ahead is wrong in more than
// a quarter of them, and has begun before the first of them has ended. So what lies behind several branches waits until they all
// together are likely enough; soon one of them is over.

// leastOdds is how likely the way to a step must be at least that leads by more than one branch of which it is not known yet how it goes.
const leastOdds = 0.75

// odds are those of a way, by how many branches of which it is not known how they go.
type odds struct {
	share    float64
	branches int
}

// isUnlikely tells whether the step to come of a thread should wait for a branch before it. What is before a fork does not count in its
// branches, which would sleep when that ends.
func (t *thread) isUnlikely() bool {
	way := odds{share: 1}
	way.along(t.steps)
	for s := t.owner; s.kind == program && s.thread != nil && !s.orphan; s = s.thread.owner {
		list, at := s.beside()
		way.along(list[:at])
	}
	return way.branches > 1 && way.share < leastOdds
}

// along takes steps to be on the way.
func (o *odds) along(steps []*slot) {
	for _, s := range steps {
		if s.guess != nil && s.guess.odds < 1 && !s.isKnown() {
			o.share *= s.guess.odds
			o.branches++
		}
	}
}

// isKnown tells whether a step has ended, or of a program how it does.
func (s *slot) isKnown() bool {
	if s.kind == program {
		return s.branches[0].end != nil
	}
	return s.state == finished
}
