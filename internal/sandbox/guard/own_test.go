package guard

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIsOwn: a process's own are its number and those of all its threads.
func TestIsOwn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other, end := make(chan int), make(chan struct{})
	defer close(end)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		other <- unix.Gettid()
		<-end
	}()
	for what, c := range map[string]struct {
		number int
		want   bool
	}{
		"the process":    {os.Getpid(), true},
		"the thread":     {unix.Gettid(), true},
		"another thread": {<-other, true},
		"the parent":     {os.Getppid(), false},
		"nobody":         {-1, false},
	} {
		if got := isOwn(unix.Gettid(), c.number); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestIsOwnOfMany: a process with many threads does not have more done for it.
func TestIsOwnOfMany(t *testing.T) {
	ask := func() { isOwn(os.Getpid(), os.Getppid()) }
	few := testing.AllocsPerRun(1, ask)
	end, begun := make(chan struct{}), make(chan struct{})
	defer close(end)
	for range 100 {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun <- struct{}{}
			<-end
		}()
		<-begun
	}
	if many := testing.AllocsPerRun(1, ask); many > few+20 {
		t.Errorf("%v allocations; with few threads %v", many, few)
	}
}
