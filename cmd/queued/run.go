package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/service"
	"github.com/queued-mq/queued/stomp"
	"github.com/queued-mq/queued/store"
)

// server is one server and its parts, in the order in which they are opened;
// they are closed in the other. Parts that have not been opened are nil.
type server struct {
	cfg  Config
	log  *slog.Logger
	exit func(code int) // ends the process; os.Exit

	dir      string // the data directory in full
	lock     *dirLock
	metrics  *metrics
	store    *store.Store
	broker   *broker.Broker
	service  *service.Service
	upkeep   *upkeep
	tls      *tls.Config // nil: none
	faces    []*face
	sessions *stomp.Server
	failed   chan error // a face that ended by itself
	ready    atomic.Bool
	secret   string        // what `queued backup` must know
	pinned   chan struct{} // full while a checkpoint is there
	named    bool          // addresses.json is there
}

// serve runs the server with valid settings until ctx ends, then closes it in
// order and returns nil. The line that says where it listens goes to out. It
// calls exit, and does not return, when the store has failed or when closing
// takes far longer than it may.
func serve(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer, exit func(code int)) error {
	s := &server{cfg: cfg, log: log, exit: exit, failed: make(chan error, 4), secret: newSecret(), pinned: make(chan struct{}, 1)}
	err := s.open(ctx)
	if err == nil {
		err = s.announce(out)
	}
	if err == nil {
		select {
		case <-ctx.Done():
			log.Info("stopping", "reason", context.Cause(ctx))
		case err = <-s.failed:
			log.Error("stopping", "error", err)
		}
	}
	return errors.Join(err, s.close())
}

// open builds the server from the bottom up. After an error, close closes what
// has been opened.
func (s *server) open(ctx context.Context) error {
	var err error
	if s.dir, err = filepath.Abs(s.cfg.DataDir); err != nil {
		return fmt.Errorf("data-dir %s: %w", s.cfg.DataDir, err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("data-dir %s: %w", s.dir, err)
	}
	if s.lock, err = lockDir(s.dir); err != nil {
		return err
	}
	if store.Unfinished(s.dir, nil) {
		return unfinished(s.dir)
	}
	if store.IsBackup(s.dir) {
		return fmt.Errorf("data-dir %s is a backup; make a data directory of it by queued restore", s.dir)
	}
	// What a killed process left would point to a server that is not there.
	if err := os.Remove(s.addressFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(s.checkpointDir()); err != nil {
		return err
	}
	if s.tls, err = loadTLS(s.cfg.TLSCert, s.cfg.TLSKey); err != nil {
		return err
	}
	s.metrics = newMetrics()
	if err := s.openCore(); err != nil {
		return err
	}
	if err := s.createQueues(ctx); err != nil {
		return err
	}
	s.upkeep = startUpkeep(s.service, s.log)
	return s.openFaces()
}

// openCore opens the store and what decides about messages.
func (s *server) openCore() error {
	cfg := &s.cfg
	var err error
	s.store, err = store.Open(filepath.Join(s.dir, "store"), store.Options{
		MemtableBytes: cfg.MemtableBytes,
		CacheBytes:    cfg.BlockCacheBytes,
		BallastBytes:  cfg.BallastBytes,
		Logger:        s.log,
		Fatal:         s.fatal,
	})
	if err != nil {
		return err
	}
	s.broker, err = broker.Open(s.store, broker.Options{
		Limits:       &cfg.Limits,
		WindowBytes:  cfg.WindowBytes,
		BodyBytes:    max(cfg.BodyCacheBytes, 1), // 0 would be the default there
		ClockGrace:   max(cfg.ClockGrace, 1),
		PublishFloor: max(cfg.DiskFloorPublishBytes, 1),
		LeaseFloor:   max(cfg.DiskFloorLeaseBytes, 1),
		BallastBytes: cfg.BallastBytes,
		KeepUnrouted: cfg.KeepUnrouted,
		Logger:       s.log,
		Fatal:        s.fatal,
	})
	if err != nil {
		return err
	}
	s.broker.ObserveGroups(s.metrics.committed)
	s.service = service.New(s.broker, service.Options{
		Limits:               &cfg.Limits,
		DefaultDeliveryCount: new(int(cfg.DefaultDeliveryCount)),
		DefaultGetLimit:      int(cfg.DefaultGetLimit),
		KeepUnrouted:         cfg.KeepUnrouted,
		Realm:                cfg.Realm,
		Region:               cfg.Region,
		PublicURL:            cfg.PublicURL,
		Observe:              s.metrics.request,
		Logger:               s.log,
	})
	return nil
}

// fatal ends the process: the store has failed, so nothing that is asked for
// can be done any more and nothing may be answered. Who calls it has logged
// why.
func (s *server) fatal(error) {
	s.ready.Store(false)
	s.exit(1)
	select {} // only a test gets here
}

// createQueues makes the queues of create-queue that are not there.
func (s *server) createQueues(ctx context.Context) error {
	queues, err := s.cfg.Queues()
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		id, made, err := s.service.EnsureQueue(ctx, service.CreateQueueRequest{
			DisplayName:                  &q.DisplayName,
			CompartmentID:                q.CompartmentID,
			RetentionInSeconds:           q.RetentionInSeconds,
			VisibilityInSeconds:          q.VisibilityInSeconds,
			TimeoutInSeconds:             q.TimeoutInSeconds,
			ChannelConsumptionLimit:      q.ChannelConsumptionLimit,
			DeadLetterQueueDeliveryCount: q.DeadLetterQueueDeliveryCount,
			CustomEncryptionKeyID:        q.CustomEncryptionKeyID,
			FreeformTags:                 q.FreeformTags,
		})
		if err != nil {
			return fmt.Errorf("create-queue %q: %w", q.DisplayName, err)
		}
		if made {
			s.log.Info("queue created", "queue", q.DisplayName, "id", id)
		}
	}
	return nil
}

// openFaces listens on all addresses, then serves them.
func (s *server) openFaces() error {
	l := &s.cfg.Limits
	s.sessions = s.newSessions()
	public := newDoors(l.Connections, l.ConnectionsPerClient, s.log)
	private := newDoors(adminConnections, adminConnections, s.log) // so that no flood outside locks us out
	for _, f := range []struct {
		name, key, addr string
		doors           *doors
		make            func(*listener) (*face, error)
	}{
		{service.FaceREST, "rest-addr", s.cfg.RESTAddr, public, s.rest},
		{service.FaceGRPC, "grpc-addr", s.cfg.GRPCAddr, public, s.grpc},
		{service.FaceSTOMP, "stomp-addr", s.cfg.StompAddr, public, s.stomp},
		{faceAdmin, "admin-addr", s.cfg.AdminAddr, private, s.admin},
	} {
		ln, err := f.doors.listen(f.name, f.key, f.addr)
		if err != nil {
			return err
		}
		made, err := f.make(ln)
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		s.faces = append(s.faces, made)
	}
	listeners := make([]*listener, len(s.faces))
	for i, f := range s.faces {
		listeners[i] = f.listener
	}
	s.metrics.registry.MustRegister(newQueueCollector(s.broker, &s.cfg, listeners, s.sessions, s.log), storeCollector{s.store})
	for _, f := range s.faces {
		f.start(s.failed)
	}
	return nil
}

// announce says that the server is ready: to probes, in addresses.json and in
// one line.
func (s *server) announce(out io.Writer) error {
	s.ready.Store(true)
	addresses := map[string]any{"pid": os.Getpid()}
	var served []string
	for _, f := range s.faces {
		addr := f.listener.Addr().String()
		addresses[f.name] = addr
		if f.scheme != "" {
			addr = f.scheme + "://" + addr
		}
		served = append(served, f.name+" "+addr)
	}
	if err := s.writeSecret(); err != nil {
		return err
	}
	if err := s.writeAddresses(addresses); err != nil {
		return err
	}
	state, queues := "opened", fmt.Sprintf("%d queues", len(s.broker.Snapshot().Queues))
	if s.store.New() {
		state = "new"
	}
	if queues == "1 queues" {
		queues = "1 queue"
	}
	_, err := fmt.Fprintf(out, "queued is ready: %s; data %s (%s, %s); limits %s, auth %s\n",
		strings.Join(served, ", "), s.dir, state, queues, s.cfg.LimitsProfile, s.cfg.Auth)
	return err
}

func (s *server) addressFile() string { return filepath.Join(s.dir, "addresses.json") }

// writeAddresses puts the file there whole, so that nobody reads half of it.
func (s *server) writeAddresses(addresses map[string]any) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	temporary := s.addressFile() + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	if err := os.Rename(temporary, s.addressFile()); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	s.named = true
	return nil
}

// patience is how much longer than shutdown-timeout a stop may take in all:
// to cut what is left and to close the store.
const patience = 5 * time.Second

// close ends the server from the top down: not ready, no new connections, open
// polls answered, work under way finished or cut, the store closed.
func (s *server) close() error {
	began := time.Now()
	s.ready.Store(false)
	watchdog := time.AfterFunc(s.cfg.ShutdownTimeout+patience, func() {
		s.log.Error("stop takes too long; ending the process")
		s.exit(1)
	})
	defer watchdog.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()

	cut, idle := s.stopFaces(ctx)
	var errs []error
	if s.upkeep != nil {
		s.upkeep.stop()
	}
	if s.broker != nil {
		errs = append(errs, s.broker.Close())
	}
	// A store that is being read cannot be closed. That does no harm: all that
	// was acknowledged is on disk.
	if s.store != nil && idle {
		errs = append(errs, s.store.Close())
	}
	if s.named {
		errs = append(errs, os.Remove(s.addressFile()), os.Remove(s.secretFile()))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	err := errors.Join(errs...)
	if s.named && err == nil {
		s.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond).String(), "cut", cut)
	}
	return err
}

// stopFaces ends the faces. It reports whether some work had to be cut, and
// whether all of it has ended. The admin face goes last: it says "not ready"
// while the others finish.
func (s *server) stopFaces(ctx context.Context) (cut, idle bool) {
	var cuts, busy atomic.Bool
	stop := func(f *face) {
		cut, idle := f.stop(ctx)
		if cut {
			cuts.Store(true)
		}
		if !idle {
			busy.Store(true)
		}
	}
	var wg sync.WaitGroup
	var last *face
	for _, f := range s.faces {
		if f.name == faceAdmin {
			last = f
			continue
		}
		wg.Go(func() { stop(f) })
	}
	if s.broker != nil {
		s.broker.Drain()
	}
	wg.Wait()
	if last != nil {
		stop(last)
	}
	return cuts.Load(), !busy.Load()
}

// upkeep is what the service wants done from time to time.
type upkeep struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func startUpkeep(s *service.Service, log *slog.Logger) *upkeep {
	ctx, cancel := context.WithCancel(context.Background())
	u := &upkeep{cancel: cancel}
	u.wg.Go(func() {
		for {
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				log.Error("sweep", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Minute):
			}
		}
	})
	return u
}

func (u *upkeep) stop() {
	u.cancel()
	u.wg.Wait()
}
