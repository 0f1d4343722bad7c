// Package service builds a server out of its rooms, runs it and takes it apart
// again: everything that `forerun serve` does is in the steps below.
//
// It promises that the parts are made in an order in which each has what it
// needs and as few privileges as it can, that they are closed in the opposite
// order, and that whoever waits for an invocation when the server is told to
// stop gets an answer.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/docs"
	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/catalog"
	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/config"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/gateway/admin"
	"forerun.dev/forerun/internal/gateway/console"
	"forerun.dev/forerun/internal/gateway/offload"
	"forerun.dev/forerun/internal/gateway/openwhisk"
	"forerun.dev/forerun/internal/gateway/webaction"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
	"forerun.dev/forerun/internal/sandbox/native"
	"forerun.dev/forerun/internal/seats"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/resp"
	"forerun.dev/forerun/internal/telemetry"
	"forerun.dev/forerun/internal/timer"
	"forerun.dev/forerun/internal/trace"
	"forerun.dev/forerun/internal/worker"
)

// drainTime is how long invocations under way may go on when the server is told to stop.
const drainTime = 30 * time.Second

// heldBack counts as in use, so that the garbage collector does not run each time that a small heap has doubled: it lets 64 MB more
// of garbage be. Nobody ever touches it, so it takes no memory itself.
const heldBack = 64 << 20 // bytes

// Run runs a server until ctx is done, then lets the invocations under way end, until hurry is closed. words is where it tells a person
// what it does. The error says why it could not start, what broke, or that invocations were given up in a hurry.
func Run(ctx context.Context, hurry <-chan struct{}, c *config.Config, version string, words io.Writer) error {
	defer runtime.KeepAlive(make([]byte, heldBack))
	s := &server{
		config: c, version: version, words: words, log: slog.New(slog.NewTextHandler(words, nil)), begun: time.Now(), clock: clock.New(nil),
		gate: gateway.NewGate(), traffic: new(gateway.Traffic), hurry: hurry, broken: make(chan error, 5),
	}
	err := s.start(ctx)
	switch {
	case err == nil:
		s.announce()
		err = s.wait(ctx)
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // it was told to stop as it started
		err = nil
	}
	return errors.Join(err, s.close())
}

// server is a running server, or one that is being built: what is not made yet is nil.
type server struct {
	config  *config.Config
	version string
	words   io.Writer
	log     *slog.Logger
	begun   time.Time
	clock   *clock.Clock

	listeners
	traffic     *gateway.Traffic
	certificate *certificate.Keeper // nil if no listener is secure

	folder     *folder
	languages  *worker.Languages
	absent     []string // what is not beside the binary
	agent      []byte   // the jar of the offload agent; empty if it was not built
	maker      *native.Maker
	store      *embedded.Store
	hub        *resp.Hub
	registry   *registry.Registry
	records    *activation.Log
	keeper     *activation.Keeper // of the records
	worker     *worker.Worker
	quotas     *gateway.Quotas
	controller *controller.Controller
	metrics    *telemetry.Metrics
	audit      *audit.Log
	feed       *feed.Feed
	operator   string            // the operator's key
	http       []*gateway.Server // of the listeners

	gate    *gateway.Gate   // shut when it is told to stop
	hurry   <-chan struct{} // closed when it is told so again
	broken  chan error      // what ended a door; has room for all of them
	closers []func() error
}

// onClose registers the end of a part that was made.
func (s *server) onClose(f func() error) { s.closers = append(s.closers, f) }

// start makes the parts, in order.
func (s *server) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.profile, s.openFolder, s.listen, s.startSandboxes, s.giveUpPrivileges, s.openCertificate,
		s.openAudit, s.openStore, s.firstStart, s.startWorker, s.openRedisDoor, s.openDoors,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) openFolder(context.Context) (err error) {
	if s.folder, err = openFolder(s.config.Data); err == nil {
		s.onClose(s.folder.close)
	}
	return err
}

// startSandboxes looks for the languages and starts the helper, which keeps the privileges that the server gives up. It may
// show sandboxes the folders of the languages and nothing else of the host.
func (s *server) startSandboxes(ctx context.Context) (err error) {
	s.languages = worker.Discover(ctx, sources())
	s.absent = s.languages.Absent(sources())                                                      // as root sees it
	s.agent, _ = os.ReadFile(filepath.Join(sources().Runtimes, "offload", "forerun-offload.jar")) // it is not built without a JDK
	s.maker, err = native.StartHelper(native.Config{
		DataDir: s.config.Data, BindRoots: s.languages.Folders(), MemoryMiB: worker.MemoryMiB(s.config.MemoryMiB), CPUWeight: s.config.CPUWeight,
		Policy: guard.Policy{Allowed: s.config.EgressAllow, Denied: s.config.EgressDeny},
	})
	if err == nil {
		s.onClose(s.closeSandboxes)
	}
	return err
}

// closeSandboxes ends the helper; if that has ended before, wait has said so.
func (s *server) closeSandboxes() error {
	broken := s.helperEnded()
	if err := s.maker.Close(); !broken {
		return err
	}
	return nil
}

func (s *server) helperEnded() bool {
	select {
	case <-s.maker.Done():
		return true
	default:
		return false
	}
}

// sources say where languages are: on the machine, and beside the binary, where the build puts what all functions can import.
func sources() worker.Sources {
	binary, err := os.Executable()
	if err != nil {
		return worker.Sources{}
	}
	return worker.Sources{Program: binary, Runtimes: filepath.Join(filepath.Dir(binary), "runtimes")}
}

func (s *server) giveUpPrivileges(context.Context) error {
	root := os.Geteuid() == 0
	if root {
		if err := s.folder.giveTo(s.config.User); err != nil {
			return err
		}
	}
	if err := s.folder.enter(); err != nil || !root {
		return err
	}
	return dropPrivileges(s.config.User)
}

// storeName is the store's folder in the data folder.
const storeName = "store"

// auditName is the audit log's folder in the data folder.
const auditName = "audit"

func (s *server) openAudit(context.Context) (err error) {
	if s.audit, err = audit.Open(auditName, s.clock.Now, s.log); err == nil {
		s.onClose(s.audit.Close)
	}
	return err
}

func (s *server) openStore(ctx context.Context) (err error) {
	if s.store, err = embedded.Open(storeName, embedded.Options{Now: s.clock.Now, Stored: s.accounting()}); err != nil {
		return err
	}
	s.onClose(s.store.Close)
	s.hub = resp.NewHub(s.store, s.clock.Now)
	s.onClose(s.hub.Close)
	keyring, err := openKeyring()
	if err != nil {
		return err
	}
	s.registry = registry.Open(s.store, s.config.Limits, keyring)
	s.onClose(func() error { s.registry.Close(); return nil })
	if err := s.registry.LoadTenants(ctx); err != nil {
		return err
	}
	s.records = activation.Open(s.store, s.config.Sync)
	s.keeper = activation.NewKeeper(s.store, s.config.Keep, s.clock.Now, s.log)
	s.records.HoldTo(s.keeper)
	if err := catalog.Install(ctx, s.registry); err != nil {
		return err
	}
	n, err := s.records.Recover(ctx, controller.Interrupted)
	s.keepRecords()
	if n > 0 {
		s.log.Warn("the last server ended before some activations did; their records say so", "activations", n)
	}
	return err
}

// roomFor reports as an error that a tenant may begin nothing that makes a record: forerun.Full or OverQuota.
func (s *server) roomFor(tenant string) error {
	if err := s.store.Room(); err != nil {
		return err
	}
	return s.keeper.Admit(tenant)
}

// keepRecords removes old activation records until the server is closed.
func (s *server) keepRecords() {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.keeper.Run(ctx) })
	s.onClose(func() error {
		stop()
		running.Wait()
		return nil
	})
}

// suspended logs that results of an action are not used any more.
func (s *server) suspended(namespace, action string, why *forerun.Reason) {
	s.log.Warn("an annotated action breaks its promise: its results are suspended", "namespace", namespace, "action", action, "because", trace.Sentence(why))
}

func (s *server) startWorker(ctx context.Context) error {
	ahead, err := s.registry.MayAhead(ctx)
	if err != nil {
		return err
	}
	cached, err := s.registry.MayCache(ctx)
	if err != nil {
		return err
	}
	s.metrics, s.feed = telemetry.New(), feed.New()
	bridge := new(controller.Bridge)
	s.worker = worker.New(worker.Config{
		Bridge: bridge, Maker: s.maker, Languages: s.languages, Store: s.store, Hub: s.hub,
		MemoryMiB: s.config.MemoryMiB, KeepAlive: s.config.KeepAlive, QueueTimeout: s.config.QueueTime, Prewarm: s.config.Prewarm, Schedule: s.config.Schedule,
		Egress: s.registry.Egress, Bounds: s.config.Bounds, Log: s.log,
	})
	s.onClose(s.worker.Close)
	s.quotas = gateway.NewQuotas(s.registry, s.roomFor, s.worker.Queued)
	s.controller = controller.New(controller.Config{
		Worker: s.worker, Actions: s.registry, Records: s.records, State: s.store, Waiters: s.hub, Bridge: bridge,
		Speculation: s.config.Speculate, Cache: s.config.Cache, Rows: memo.Options{Rows: s.config.CacheRows, Total: s.config.CacheMiB << 20}, Load: s.worker.Load, Spent: s.worker.Spent, Observe: s.metrics.Observe, Suspended: s.suspended, Feed: s.feed, Admit: s.admit, Clock: s.clock,
	})
	s.controller.LetAhead(ahead)
	s.controller.LetCache(cached)
	s.registry.OnChange(s.controller.ActionsChanged)
	measure(s.metrics, s.worker, s.store)
	measureMemo(s.metrics, s.controller)
	measureToll(s.metrics, s.controller)
	measureAudit(s.metrics, s.audit)
	measureCertificate(s.metrics, s.certificate)
	measureTraffic(s.metrics, s.traffic)
	return nil
}

// openDoors lets requests in: those of clients, and those of functions.
func (s *server) openDoors(ctx context.Context) error {
	operator := s.operatorAPI()
	if err := operator.FinishDeletions(ctx); err != nil {
		return err
	}
	keys := &gateway.Keys{Tenants: s.registry, Activations: s.controller, Running: worker.Caller}
	origin := s.webOrigin()
	api := openwhisk.New(openwhisk.Config{
		Registry: s.registry, Activations: s.records, Controller: s.controller, Feed: s.feed, Quotas: s.quotas, Keys: keys,
		Kinds: s.languages.Kinds(), CheckFlow: s.controller.CheckFlow, Bounds: s.config.Bounds, Version: s.version, WebURL: origin.URL,
	})
	c := gateway.Config{
		API: api, Metrics: http.NotFoundHandler(), Gate: gateway.NewGate(), Log: s.log, Audit: s.audit,
		Web: webaction.New(webaction.Config{
			Resolve: s.resolveOwn, Tenants: s.registry, Controller: s.controller, Keys: keys, Quotas: s.quotas,
			MaxPayload: int64(s.config.Bounds.Payload), MaxWait: openwhisk.MaxWait,
		}),
	}
	if s.config.Offload {
		streams := offload.New(offload.Config{Registry: s.registry, Controller: s.controller, Keys: keys, Quotas: s.quotas, Jar: s.agent})
		measureOffload(s.metrics, streams)
		c.Offload = streams
	}
	s.worker.ServeAPI(gateway.HoldEffects(gateway.New(c), worker.Asker, keys, s.controller.Bridge)) // a function learns nothing of other tenants, and goes on when clients are shut out
	page, err := s.page()
	if err != nil {
		return err
	}
	c.Traffic = s.traffic
	c.Metrics, c.Admin, c.Gate, c.Page = s.metrics.Handler(), operator, s.gate, page
	has := roomIn(sandbox.Descriptors())
	s.onClose(s.drain)
	if err := s.serve(c, origin, seats.New(has.http, has.httpStrangers)); err != nil {
		return err
	}
	return s.startTimers(ctx, api)
}

// webOrigin is where web actions are served, if not where the API is.
func (s *server) webOrigin() *webaction.Origin {
	o := new(webaction.Origin)
	switch {
	case s.config.WebHost != "":
		o.URL = s.config.WebScheme + "://" + s.config.WebHost
		o.Host, _, _ = strings.Cut(s.config.WebHost, ":")
	case s.web != nil:
		o.URL = s.url(s.web)
	}
	return o
}

// startTimers has triggers fired at their times.
func (s *server) startTimers(ctx context.Context, api *openwhisk.API) error {
	timers := timer.NewLoop(s.registry, api.FireTimer, s.clock.Now, s.log)
	err := timers.Start(ctx)
	if err == nil {
		s.onClose(timers.Close)
	}
	return err
}

// page is what a browser sees.
func (s *server) page() (http.Handler, error) {
	var protections []gateway.Protection
	for _, e := range s.maker.Enforced() {
		protections = append(protections, gateway.Protection{What: e.What, On: e.On, Why: e.Why})
	}
	page := gateway.PageConfig{Version: s.version, Protections: protections, Documents: docs.Documents, Metrics: s.measured == nil}
	if s.console != nil {
		page.Console = s.url(s.console) + console.Prefix
	}
	return gateway.NewPage(page)
}

// resolveOwn finds an action of a namespace as its owner does.
func (s *server) resolveOwn(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	return s.registry.Resolve(ctx, name, name.Namespace)
}

// operatorAPI is what the operator makes and deletes tenants through.
func (s *server) operatorAPI() *admin.API {
	return admin.New(admin.Config{
		Operator: s.operator, Registry: s.registry, Activations: s.records, Controller: s.controller, Quotas: s.quotas,
		EndSandboxes: s.worker.EndNamespace, EraseState: s.eraseState, KeysChanged: s.keysChanged, Stored: s.store.Stored, Pairs: s.store.Pairs, Audited: s.audit.Last, Certificate: s.certificate, Listeners: s.described(), Traffic: s.traffic, EarlyData: s.config.EarlyData && s.front.udp != nil, Version: s.version, Log: s.log,
	})
}

// admit counts an invocation against the quotas of its namespace until ended is called.
func (s *server) admit(ctx context.Context, namespace string) (ended func(), err error) {
	flight, err := s.quotas.Invocation(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return flight.Land, nil
}

// eraseState removes the state of a namespace's functions.
func (s *server) eraseState(ctx context.Context, namespace string) error {
	space := worker.StateSpace(namespace)
	s.hub.Erase(space)
	return s.store.EraseSpace(ctx, space)
}

// wait returns nil when the server is to stop, or what broke.
func (s *server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.words, "forerun: shutting down; a second signal gives up the requests under way")
		return nil
	case err := <-s.broken:
		return err
	case <-s.maker.Done():
		return forerun.Errorf(forerun.Internal, "", "The sandbox helper has ended, and no function can run without it: %w. Start the server again.", s.maker.Err())
	}
}

// drain lets no request in any more and waits for the invocations under way, but not for ever.
func (s *server) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience())
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.hurry:
			giveUp(forerun.Errorf(forerun.Internal, "", "The server was told to stop a second time: it gave up the requests under way."))
		case <-ctx.Done():
		}
	}()
	stop := context.AfterFunc(ctx, s.store.GiveUp) // it may wait for room on the disk for its record
	defer stop()
	s.feed.Close()          // the clients that follow it wait for no invocation
	s.gate.Shut(ctx)        // what goes on when ctx is done is given up here:
	s.controller.Close(ctx) // it has a record now, and who waits for it an answer,
	hurried := context.Cause(ctx)
	if errors.Is(hurried, context.DeadlineExceeded) {
		hurried = nil
	}
	return errors.Join(hurried, s.lastAnswers()) // which is still to be sent
}

// patience is how long invocations may go on: without sandboxes none can end.
func (s *server) patience() time.Duration {
	if s.helperEnded() {
		return 0
	}
	return drainTime
}

// lastAnswers lets the answers be written to their clients.
func (s *server) lastAnswers() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var errs []error
	for _, server := range s.http {
		if server.Shutdown(ctx) != nil {
			errs = append(errs, server.Close())
		}
	}
	return errors.Join(errs...)
}

// close takes the server apart, the last part first.
func (s *server) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}
