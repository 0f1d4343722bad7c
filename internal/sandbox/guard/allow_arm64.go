package guard

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0 // there is no second convention
)

// archCalls are the allowed calls that only this architecture has.
func archCalls() []uint32 { return []uint32{unix.SYS_NEWFSTATAT} }
