package state

import "context"

// eraseBatch is how many records Erase removes in one step.
const eraseBatch = 1000

// Erase removes the String records of a range. What is added to it meanwhile may stay. It is in the log when Erase returns
// nil; otherwise some are removed and others are not.
func Erase(ctx context.Context, s Store, r Range) error {
	for {
		args := [][]byte{[]byte("DEL")}
		for entry, err := range s.Scan(ctx, r) {
			if err != nil {
				return err
			}
			if args = append(args, []byte(entry.Name)); len(args) > eraseBatch {
				break
			}
		}
		if len(args) == 1 {
			return nil
		}
		r.From = string(args[len(args)-1]) + "\x00" // behind what is gone, which would have to be walked over again
		if _, err := s.Apply(ctx, Txn{Ops: []Command{{Space: r.Space, Args: args}}, Lazy: true}); err != nil {
			return err
		}
	}
}
