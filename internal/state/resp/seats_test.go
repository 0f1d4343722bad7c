package resp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/resp"
)

// openForTenants opens a door at which whoever shows a name and the password "key" works in the space of that name.
func openForTenants(t *testing.T, options resp.Options) door {
	store, err := embedded.Open("sessions", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	options.Authenticate = func(_ context.Context, user, password string) (resp.Session, error) {
		if password != "key" {
			return nil, forerun.Errorf(forerun.Unauthorized, "", "no")
		}
		return session{store, user}, nil
	}
	return openWith(t, options, vfs.NewMem())
}

// enter connects, and says what a tenant hears.
func (d door) enter(t *testing.T, tenant string) (*talker, string) {
	k := talkTo(t, "tcp", d.address)
	return k, k.say("AUTH", tenant, "key")
}

// TestSeatsAreFair: when all connections are taken, a tenant still has its part of them, and who has none yet keeps nobody out.
func TestSeatsAreFair(t *testing.T) {
	d := openForTenants(t, resp.Options{MaxConns: 4})
	for range 5 {
		if got := talkTo(t, "tcp", d.address).say("PING"); got != "-NOAUTH Authentication required." {
			t.Fatalf("a stranger hears %s", got)
		}
	}
	const served, refused = "+OK", "-ERR max number of clients reached"
	var last *talker
	for i, step := range []struct{ tenant, want string }{
		{"large", served},
		{"large", served},
		{"large", served},
		{"large", served},
		{"large", refused},
		{"small", served},
		{"small", served},
		{"small", refused},
		{"third", served},
		{"third", refused},
	} {
		k, got := d.enter(t, step.tenant)
		if got != step.want {
			t.Errorf("connection %d, of %s: %s, not %s", i, step.tenant, got, step.want)
		}
		if step.want == refused && k.reply() != "EOF" {
			t.Errorf("connection %d stays", i)
		}
		if got == served {
			last = k
		}
	}
	last.conn.Close()
	for { // until the server knows
		if _, got := d.enter(t, "third"); got == served {
			break
		}
	}
}

// TestInfoTellsOfItsSpace: what a tenant hears of clients is of its own.
func TestInfoTellsOfItsSpace(t *testing.T) {
	d := openForTenants(t, resp.Options{})
	mine, _ := d.enter(t, "mine")
	for range 3 {
		other, _ := d.enter(t, "other")
		another, _ := d.enter(t, "other")
		other.waits(another, []string{"BLPOP", "l", "0"})
	}
	for range 2 {
		got := mine.say("INFO")
		for _, want := range []string{"connected_clients:1\\r", "blocked_clients:0\\r"} {
			if !strings.Contains(got, want) {
				t.Errorf("INFO has no %s: %s", want, got)
			}
		}
		if strings.Contains(got, "process_id") {
			t.Error("it tells of the server's process")
		}
		if got := mine.say("CLIENT", "ID"); got != ":1" {
			t.Errorf("CLIENT ID counts others: %s", got)
		}
		mine.say("AUTH", "mine", "key") // once more is the same connection
	}
}

// TestManyNamesTakeRoom: names that connections watch or wait for, or listen to, are among what a namespace may hold.
func TestManyNamesTakeRoom(t *testing.T) {
	d := openForTenants(t, resp.Options{MaxHeld: 1 << 20})
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	for what, args := range map[string][]string{
		"WATCH": append([]string{"WATCH"}, names...), "BLPOP": append(append([]string{"BLPOP"}, names...), "0"),
	} {
		k, _ := d.enter(t, "mine")
		got := k.say(args...)
		if got == "+OK" {
			got = k.reply() // behind the answer
		}
		if !strings.Contains(got, "hold more than 1 MiB") && got != "EOF" {
			t.Errorf("%s: %.100s", what, got)
		}
	}
	k, _ := d.enter(t, "mine")
	if got := k.say("WATCH", "a"); got != "+OK" {
		t.Errorf("when they have gone: %s", got)
	}
}
