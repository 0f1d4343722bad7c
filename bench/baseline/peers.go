package baseline

import (
	"context"
	"path/filepath"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// chain is ten functions in sequence, as one system runs them.
type chain struct {
	name string
	call func(input string) (subject, error)
	ours []int // of a peer's: which of ours it is compared with
}

// Indices of our own chains.
const (
	ourNative = iota
	ourNode
	ourNativeSynced
	ourNodeSynced
)

// measurePeers runs ten functions in sequence in each system, call by call in turn: trivial ones, and some that wait 10 ms each. Each
// peer is set up as its documents say, with its defaults and its data on the same disk. Restate has each step on disk before it goes on;
// it is compared with a server of ours that has its records on disk before it answers (--sync). Workerd keeps no records.
func measurePeers(ctx context.Context, b *bench) error {
	synced, err := server.Start(ctx, inTurn(b.binary, filepath.Join(b.folder, "synced"), "--sync"))
	if err != nil {
		return err
	}
	defer stop(synced)
	workerd, err := harness.StartWorkerd(b.peers)
	if err != nil {
		return err
	}
	defer workerd.Stop()
	restate, err := harness.StartRestate(ctx, b.peers, b.folder)
	if err != nil {
		return err
	}
	defer restate.Stop()
	chains, err := b.ownChains(ctx, synced)
	if err != nil {
		return err
	}
	fixed := func(name, address string, ours ...int) chain {
		return chain{name, func(input string) (subject, error) { return url(name, address, input) }, ours}
	}
	chains = append(chains,
		fixed("workerd, service bindings", workerd.URL, ourNative, ourNode),
		fixed("Restate, calls of a service", restate.Calls, ourNativeSynced, ourNodeSynced),
		fixed("Restate, steps in one handler", restate.Steps, ourNativeSynced, ourNodeSynced),
	)
	if err := b.compareChains(ctx, "chain", "ten trivial functions", trivial, b.count(200), chains); err != nil {
		return err
	}
	return b.compareChains(ctx, "waiting-chain", "ten functions that wait 10 ms each", waiting, b.count(60), chains)
}

// ownChains are ours, in the order of their indices.
func (b *bench) ownChains(ctx context.Context, synced *server.Server) (chains []chain, err error) {
	for _, s := range []struct {
		name   string
		client *server.Client
	}{{"", b.client}, {" with --sync", synced.Client(1)}} {
		for _, l := range []*language{b.native(), b.node()} {
			action, err := l.putSequence(ctx, s.client)
			if err != nil {
				return nil, err
			}
			chains = append(chains, chain{name: l.name + s.name, call: func(input string) (subject, error) { return b.action(s.client, action, input) }})
		}
	}
	return chains, nil
}

// compareChains measures the chains in turn and adds a row for each peer and each of ours that it is compared with.
func (b *bench) compareChains(ctx context.Context, figureName, name, input string, n int, chains []chain) error {
	var subjects []subject
	for _, c := range chains {
		s, err := c.call(input)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	_, samples, err := b.interleave(ctx, n, rest, subjects...)
	if err != nil {
		return err
	}
	figure := b.figure(figureName, "Time of "+name)
	for i, peer := range chains {
		figure.add(peer.name, samples[i])
		for _, ours := range peer.ours {
			b.beside(name+", "+chains[ours].name+" beside "+peer.name, samples[ours], samples[i])
		}
	}
	return nil
}
