package speculation

// others are measured apart from the applications.
func (b *bench) others() []measurement { return nil }
