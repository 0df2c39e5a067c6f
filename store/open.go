package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queued-mq/queued/queue"
)

// Format is the number of the layout on disk. A store of a higher one is
// refused, one of a lower one is upgraded when it is opened (upgrade.go).
const Format = 2

// manifestBytes is the length at which the list of tables is begun anew. A start
// replays it in whole, in 0.2 s for every MiB, while Pebble would begin it anew
// only behind 128 MiB, which a server that runs for weeks comes to.
const manifestBytes = 1 << 20

// Options are how a store is opened. The zero value is a real folder with
// sensible sizes.
type Options struct {
	FS             vfs.FS // nil: the machine's; tests pass one in memory
	MemtableBytes  int64  // 0: 64 MiB; up to three of them are in memory
	CacheBytes     int64  // block cache; 0: 64 MiB
	ManifestBytes  int64  // the list of tables is begun anew when it is longer; 0: 1 MiB
	BallastBytes   int64  // space held back for a full disk; 0: none
	Logger         *slog.Logger
	Fatal          func(error) // told of a failed sync or write; must not return. nil: panic
	WithoutSyncs   bool        // for the control of a crash test only: it loses what it acknowledged
	QuietScheduler bool        // for tests in fake time: no periodic compaction ticks
}

// Store is an open store. Reads may run at any time from many goroutines;
// Commit is for one at a time.
type Store struct {
	db      *pebble.DB
	fs      vfs.FS // without the watch for a full disk
	dir     string
	apply   applier
	write   *pebble.WriteOptions
	key     []byte
	fresh   bool
	gen     uint64
	format  uint64
	piece   uint64      // octets of tables that one compaction rewrites, about
	ballast atomic.Bool // the file is there
	wrote   atomic.Int64
	log     *slog.Logger
}

var stateKey = storeKey("state")

// filled is o with what is left out.
func (o Options) filled() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(err) }
	}
	return o
}

// Open opens the store in dir or makes one there. It recovers what was synced
// before a crash; damage in the middle of a file is an error that names the
// file, and nothing is deleted.
func Open(dir string, o Options) (*Store, error) {
	o = o.filled()
	s := &Store{fs: o.FS, dir: dir, write: pebble.Sync, log: o.Logger}
	if o.WithoutSyncs {
		s.write = pebble.NoSync
	}
	if err := prepareFolder(s.fs, dir, !o.WithoutSyncs); err != nil {
		return nil, err
	}
	if err := s.prepareBallast(o.BallastBytes); err != nil {
		return nil, err
	}
	if err := s.open(o, vfs.OnDiskFull(markersLast{s.fs}, s.releaseBallast), false); err != nil {
		return nil, err
	}
	if err := s.identify(); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// open opens the database on the disk.
func (s *Store) open(o Options, disk vfs.FS, readOnly bool) error {
	memtable := o.MemtableBytes
	if memtable == 0 {
		memtable = 64 << 20
	}
	s.piece = 4 * uint64(memtable)
	cacheBytes := o.CacheBytes
	if cacheBytes == 0 {
		cacheBytes = 64 << 20
	}
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	words := &logger{dir: s.dir, log: o.Logger, fatal: o.Fatal}
	words.opening.Store(true)
	po := &pebble.Options{
		FS:                          disk,
		ReadOnly:                    readOnly,
		Cache:                       cache,
		Merger:                      merger,
		FormatMajorVersion:          pebble.FormatValueSeparation, // above FormatWALSyncChunks: a torn tail is told from damage
		MemTableSize:                uint64(memtable),
		MemTableStopWritesThreshold: 3,
		MaxManifestFileSize:         cmp.Or(o.ManifestBytes, manifestBytes),
		Logger:                      words,
		EventListener:               &pebble.EventListener{BackgroundError: words.background},
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if readOnly { // the read that found it tells; else Fatalf does
		po.EventListener.DataCorruption = func(pebble.DataCorruptionInfo) {}
	}
	scheduler := newAfterStart(o.QuietScheduler)
	po.Experimental.CompactionScheduler = scheduler
	db, err := pebble.Open(s.dir, po)
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, detailed(err))
	}
	words.opening.Store(false)
	s.db = db
	scheduler.begin()
	return nil
}

// identify checks the format, or makes the first rows of a new store.
func (s *Store) identify() error {
	format, found, err := s.get(storeKey("format"))
	if err != nil {
		return err
	}
	if !found {
		it, err := s.db.NewIter(nil)
		if err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		used := it.First()
		if err := it.Close(); err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		if used {
			return notOurs(s.dir)
		}
		s.fresh, s.format = true, Format
		s.key = make([]byte, 32)
		rand.Read(s.key)
		b := s.db.NewBatch()
		defer b.Close()
		_ = b.Set(storeKey("format"), u64(nil, Format), nil)
		_ = b.Set(storeKey("key"), s.key, nil)
		_ = b.Set(storeKey("generation"), u64(nil, 0), nil)
		if err := b.Commit(s.write); err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		// The log that Pebble begins a new database with is in a form in which
		// damage looks like a torn tail. A flush ends it; the next one is not.
		if err := s.db.Flush(); err != nil {
			return fmt.Errorf("open store: %w", err)
		}
		return nil
	}
	if err := s.known(format); err != nil {
		return err
	}
	return s.upgrade(be.Uint64(format))
}

// known reads what the store says of itself, whose format is as given.
func (s *Store) known(format []byte) (err error) {
	var found bool
	if len(format) != 8 || be.Uint64(format) < firstFormat || be.Uint64(format) > Format {
		return fmt.Errorf("open store: %s has format %s; this version of queued reads up to %d: use a newer one", s.dir, formatText(format), Format)
	}
	if s.key, found, err = s.get(storeKey("key")); err != nil || !found || len(s.key) != 32 {
		return errors.Join(errors.New("open store: the receipt key is missing or damaged"), err)
	}
	gen, found, err := s.get(storeKey("generation"))
	if err != nil || !found || len(gen) != 8 {
		return errors.Join(errors.New("open store: the generation is missing or damaged"), err)
	}
	s.gen, s.format = be.Uint64(gen), be.Uint64(format)
	return nil
}

func formatText(b []byte) string {
	if len(b) == 8 {
		return fmt.Sprint(be.Uint64(b))
	}
	return fmt.Sprintf("%x", b)
}

// Close ends the store; everything that was committed is on disk already.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// New reports whether Open made the store.
func (s *Store) New() bool { return s.fresh }

// ReceiptKey is the secret that receipts are authenticated with; 32 octets.
func (s *Store) ReceiptKey() []byte { return s.key }

// Generation rises with every restore from a backup, and is part of every
// receipt.
func (s *Store) Generation() uint64 { return s.gen }

// Commit makes the ChangeSet durable: one batch, one sync. When it returns
// nil, all of it is on disk; a failure to write never returns (Options.Fatal).
func (s *Store) Commit(cs *ChangeSet) error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.apply.apply(b, cs); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.wrote.Add(int64(b.Len()))
	if err := b.Commit(s.write); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Compact gives the space of deleted messages back to the file system. It
// takes as long as there is to rewrite; ctx ends it early.
//
// It goes piece by piece: Pebble keeps what it has rewritten until the whole is
// done, and a stop waits for it.
func (s *Store) Compact(ctx context.Context) error {
	levels, err := s.db.SSTables()
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	from, size := []byte{0}, uint64(0)
	for _, table := range levels[len(levels)-1] {
		if size += table.Size; size < s.piece {
			continue
		}
		to := table.Largest.UserKey
		if err := s.db.Compact(ctx, from, to, false); err != nil {
			return err
		}
		from, size = to, 0
	}
	return s.db.Compact(ctx, from, []byte{0xff}, false)
}

// get reads one row; the octets are the caller's.
func (s *Store) get(key []byte) ([]byte, bool, error) {
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read store: %w", err)
	}
	out := append([]byte(nil), v...)
	return out, true, closer.Close()
}

// Load is the part of the store that is kept in memory, as a start reads it.
type Load struct {
	State    State
	Queues   []Queue
	Removals []LaneID
}

// Load reads what a start needs: it does not read messages.
func (s *Store) Load() (Load, error) {
	var l Load
	v, found, err := s.get(stateKey)
	if err != nil {
		return l, err
	}
	if found {
		c := coder{b: v, reading: true}
		if l.State.code(&c); c.done() != nil {
			return l, errors.New("load store: the state row is damaged")
		}
	}
	err = s.scan([]byte{kindQueue}, nil, func(k, v []byte) error {
		var q Queue
		if err := parseJSON(v, &q); err != nil {
			return err
		}
		l.Queues = append(l.Queues, q)
		return nil
	})
	if err != nil {
		return l, fmt.Errorf("load queues: %w", err)
	}
	err = s.scan([]byte{kindRemoval}, nil, func(k, _ []byte) error {
		if len(k) != 9 {
			return errCorrupt
		}
		l.Removals = append(l.Removals, LaneID(be.Uint64(k[1:])))
		return nil
	})
	if err != nil {
		return l, fmt.Errorf("load removals: %w", err)
	}
	return l, nil
}

// Lanes calls f for every lane of the store, queue by queue.
func (s *Store) Lanes(f func(Lane) error) error {
	return s.scan([]byte{kindLane}, nil, func(k, v []byte) error {
		l, err := decodeLane(k, v)
		if err != nil {
			return err
		}
		return f(l)
	})
}

func decodeLane(k, v []byte) (l Lane, err error) {
	var ok bool
	if l.Key, ok = parseLaneKey(k); !ok {
		return l, errCorrupt
	}
	c := coder{b: v, reading: true}
	l.code(&c)
	return l, c.done()
}

// Shared calls f for every u row of the store.
func (s *Store) Shared(f func(Shared)) error {
	return s.scan([]byte{kindShared}, nil, func(k, v []byte) error {
		if len(k) < 9 {
			return errCorrupt
		}
		n, err := decodeShared(v)
		if err == nil {
			f(Shared{QueueNumber(be.Uint64(k[1:])), string(k[9:]), n})
		}
		return err
	})
}

// Leases calls f for every lease of the store, lane by lane.
func (s *Store) Leases(f func(LaneID, Lease) error) error {
	return s.scan([]byte{kindLease}, nil, func(k, v []byte) error {
		lane, id, ok := parseRowKey(k)
		if !ok {
			return errCorrupt
		}
		l := Lease{Entry: Entry{ID: id}}
		c := coder{b: v, reading: true}
		if l.code(&c); c.done() != nil {
			return errCorrupt
		}
		return f(lane, l)
	})
}

// errStop ends a scan early.
var errStop = errors.New("stop")

// scan calls f for every row whose key begins with prefix, from the key from
// on (nil: from the first). The slices are valid during the call only.
func (s *Store) scan(prefix, from []byte, f func(k, v []byte) error) error {
	if from == nil {
		from = prefix
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: after(prefix)})
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key(), v)
		}
		if errors.Is(err, errStop) {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read row %x: %w", it.Key(), err), it.Close())
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	return nil
}

// Now is the last instant that was stored.
func (l *Load) Now() queue.Instant { return l.State.Now }
