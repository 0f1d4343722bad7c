package seats

import "testing"

// TestStrangersMakeRoom: with one more than there may be, one of those who do not authenticate is cut.
func TestStrangersMakeRoom(t *testing.T) {
	const most = 100
	s, cut := New(1, most), make(chan int, 2)
	leave := make([]func(), most)
	for i := range leave {
		leave[i] = s.Stand(func() { cut <- i })
	}
	s.Stand(func() { cut <- -1 })
	gone := <-cut
	if gone < 0 {
		t.Error("who has just come is cut")
	}
	leave[gone]()
	leave[(gone+1)%len(leave)]()
	s.Stand(func() { cut <- -1 })
	if len(s.strangers) != most || len(cut) > 0 {
		t.Errorf("when one has left there are %d", len(s.strangers))
	}
}
