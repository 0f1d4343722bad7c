package speculate

// doubt suspends predictions after a run of wrong ones. A client that knows the branch counts could otherwise make every
// prediction fail, and keep the counts balanced with invocations that are not predicted.
//
// Each path has a doubt, and so has the branch as a whole, because paths are forgotten and a client can use new ones.
// The zero value doubts nothing.
type doubt struct {
	wrong int // predictions that were made, in a row
	owed  int // how many would have to be right before the next is made
	last  int // the last penalty; each correct prediction halves it
}

// A branch with one outcome in 70% of cases is often predicted wrong twice in a row, but almost never four times. The
// penalty doubles if the first prediction after it is wrong too.
const (
	wrongToDoubt = 4
	mostOwed     = 64
)

// judge notes whether a prediction was right, and whether it was made at all. If it was not made, being right repays one of the owed
// predictions, and proves nothing.
func (d *doubt) judge(right, made bool) {
	switch {
	case d.owed > 0 && right:
		d.owed--
	case !made:
	case right:
		d.wrong, d.last = 0, d.last/2
	default:
		if d.wrong++; d.wrong >= wrongToDoubt {
			d.last = min(max(1, 2*d.last), mostOwed)
			d.owed = d.last
		}
	}
}
