package guard

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	if err != nil {
		return false
	}
	status := string(b)
	waiting := signalMask(status, "SigPnd")
	if statusField(status, "Tgid") == strconv.Itoa(thread) {
		waiting |= signalMask(status, "ShdPnd")
	}
	return waiting&signalMask(status, "SigCgt")&^signalMask(status, "SigBlk") != 0
}

func signalMask(status, name string) uint64 {
	mask, _ := strconv.ParseUint(statusField(status, name), 16, 64) // the kernel writes numbers
	return mask
}
