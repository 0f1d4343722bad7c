package command

import "iter"

// Roles yields the positions of the keys among arguments whose number is right, and of each whether the reply or a write
// depends on its record (Read) and whether the command may change it (Write). Without Read, a command that succeeds gives
// the record a value, or removes it, whatever it was.
func (s *Spec) Roles(args [][]byte) iter.Seq2[int, Flags] {
	return func(yield func(int, Flags) bool) {
		access := s.needs(args)
		n := 0
		for i := range s.KeyPositions(args) {
			if !yield(i, s.role(access, n)) {
				return
			}
			n++
		}
	}
}

func (s *Spec) role(access Flags, n int) Flags {
	both := access & (Read | Write)
	switch {
	case s.Flags&Stores != 0 && n == 0:
		return Write
	case s.Flags&Stores != 0:
		return Read
	case s.Name == "rename" && n == 1:
		return Write
	case s.Name == "pfmerge" && n > 0, s.Name == "copy" && n == 0, s.Name == "sort" && n == 0:
		return Read
	}
	return both
}

// IsExact says whether replies to the command and what it writes depend on nothing but the records that its arguments name:
// not on the time, not on chance.
func (s *Spec) IsExact(args [][]byte) bool { return s.needs(args)&(Clock|Unbufferable|Whole) == 0 }

// needs is Access, but for GETEX without options: Redis counts it among the commands that write, but it is a GET.
func (s *Spec) needs(args [][]byte) Flags {
	if s.Name == "getex" && len(args) == 2 {
		return s.Flags &^ (Write | Clock)
	}
	return s.Access(args)
}
