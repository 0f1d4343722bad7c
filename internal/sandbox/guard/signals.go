package guard

import (
	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// A held call that was received ends for a kill alone, so that no runtime's timer has it begin again and again. A connect that waits looks
// whether its thread has a signal to handle: an alarm is how old programs bound it.

// restart is ERESTARTSYS: the kernel has the thread handle its signal, and then call again or, if the handler is not for that, find EINTR.
const restart = unix.Errno(512)

// interrupted is what the kernel tells a connect that waits when a signal comes.
func (c caller) interrupted() unix.Errno {
	if c.sendTimeout() > 0 {
		return unix.EINTR // else it would wait for longer
	}
	return restart
}

// signalled reports whether a signal waits that the thread handles. One for the whole process the kernel gives to its first thread, if that
// does not block it; another thread, which does not know of it, would see restart.
func signalled(thread int) bool {
	status, err := proc.ReadStatus(thread)
	if err != nil {
		return false
	}
	waiting := status.Signals("SigPnd")
	if status.Number("Tgid") == uint64(thread) {
		waiting |= status.Signals("ShdPnd")
	}
	return waiting&status.Signals("SigCgt")&^status.Signals("SigBlk") != 0
}
