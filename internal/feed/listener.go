package feed

import (
	"context"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// Listener is one client of a feed.
type Listener struct {
	feed      *Feed
	namespace string
	match     func(*forerun.Activation) bool
	more      chan struct{} // wakes Next

	mu     sync.Mutex // guards the rest
	known  map[forerun.ActivationID]*progress
	queue  []item // what is to be told, in the order in which it came
	ended  int    // activations in queue that have ended
	unread int    // bytes of these
	err    error  // why there are no more news
}

// progress is how much of an activation a listener has been told.
type progress struct {
	activation *forerun.Activation
	lines      []string // so far
	queued     int      // of them, those that were told or are in the queue
	told       int      // of them
	begun      bool     // told
	size       int      // bytes that it counts once it has ended
}

// item is a part of an activation's news. The first one of an activation also tells that it has begun.
type item struct {
	of    *progress
	lines int // up to which they are told
	ended bool
}

// News is the next that a listener hears of an activation.
type News struct {
	Activation *forerun.Activation // without result and logs
	Begun      bool                // the listener hears of it for the first time
	First      int                 // the number of the first of Lines in the activation's log, from 0
	Lines      []string
	Ended      bool // there are no more, and the record is in the log
}

// Close removes the listener from its feed.
func (l *Listener) Close() { l.feed.remove(l) }

func (l *Listener) tell(a *forerun.Activation, lines []string, ended bool) {
	if !l.match(a) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	p, isNew := l.known[a.ID], false
	if p == nil {
		p, isNew = new(progress), true
		l.known[a.ID] = p
	}
	p.activation = a
	if len(lines) > p.queued {
		p.lines = lines
	}
	if isNew || ended || len(p.lines) > p.queued {
		l.add(item{p, len(p.lines), ended})
	}
}

// add puts an item into the queue. One that follows another of its activation joins it. mu is held.
func (l *Listener) add(i item) {
	i.of.queued = i.lines
	if last := len(l.queue) - 1; last >= 0 && l.queue[last].of == i.of {
		l.queue[last] = i
	} else {
		l.queue = append(l.queue, i)
	}
	if i.ended {
		delete(l.known, i.of.activation.ID)
		l.count(i.of)
	}
	if l.unread > maxUnread && l.ended > 1 || len(l.queue) > maxQueue {
		l.fail(errSlow)
		return
	}
	l.wake()
}

// count counts an ended activation among what is not read. mu is held.
func (l *Listener) count(p *progress) {
	p.size = perEnd
	for _, line := range p.lines[p.told:] {
		p.size += len(line)
	}
	l.ended++
	l.unread += p.size
}

// end ends the news of the listener.
func (l *Listener) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail(err)
}

// fail drops what is not read, and ends Next. mu is held.
func (l *Listener) fail(err error) {
	l.err, l.known, l.queue = err, nil, nil
	l.wake()
}

func (l *Listener) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// Next waits for news. It returns an error when ctx is done, the feed was closed, or the listener was too slow.
func (l *Listener) Next(ctx context.Context) (News, error) {
	for {
		news, some, err := l.next()
		if some || err != nil {
			return news, err
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return News{}, ctx.Err()
		}
	}
}

// next takes the oldest news. An activation with many lines stays the first until all of them are told.
func (l *Listener) next() (news News, some bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || len(l.queue) == 0 {
		return News{}, false, l.err
	}
	i := l.queue[0]
	p := i.of
	news = News{Activation: p.activation, Begun: !p.begun, First: p.told}
	p.begun = true
	for size := 0; p.told < i.lines && size < maxNews; p.told++ {
		size += len(p.lines[p.told])
	}
	news.Lines = p.lines[news.First:p.told]
	if p.told < i.lines {
		return news, true, nil
	}
	l.queue[0], l.queue = item{}, l.queue[1:]
	if news.Ended = i.ended; i.ended {
		l.ended--
		l.unread -= p.size
	}
	return news, true, nil
}
