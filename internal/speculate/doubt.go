package speculate

// doubt is what wrong predictions leave: who knows the counts can go against each prediction, and keep the counts as they are by
// going along where nothing is predicted. There is one for each path and one for the branch: paths are forgotten, and may be ever new.
// Zero is none.
type doubt struct {
	wrong int // predictions that were made, in a row
	owed  int // how many would have to be right before the next is made
	last  int // what was owed the last time; each that is right halves it
}

// A branch that goes one way in 70% of the cases is predicted wrong twice in a row all the time, four times hardly ever. What is owed
// doubles if the first prediction after it is wrong, too.
const (
	wrongToDoubt = 4
	mostOwed     = 64
)

// judge hears whether a prediction was right, and whether it was made at all: if not, being right pays what is owed, and proves nothing.
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
