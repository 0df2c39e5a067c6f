package store

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/queued-mq/queued/queue"
)

// A restored store goes on where the backup was made, and the server that it
// was made of may have gone on too. What that one gave out since must not be
// given out again for something else: message ids, and the numbers of leases,
// lanes and queues. So all of them skip ahead, by skipOnce, and by skipEach
// for every millisecond from the backup's last commit to the restore. That is a
// million a second, more than a server can give out, and so two restores of one
// backup do not meet either. 2^53 ids last for 285 years at that rate.
const (
	skipOnce = 1 << 32
	skipEach = 1000
)

// renewed is the state and the generation of a store that is restored at now.
// The generation is the instant of the restore, so that two restores of one
// backup differ in it; but it always rises.
func renewed(s State, generation uint64, now queue.Instant) (State, uint64, error) {
	skip := uint64(skipOnce) + skipEach*uint64(max(0, now-s.Now))
	s.Message += queue.MessageID(skip)
	s.Lease += skip
	s.Lane += LaneID(skip)
	s.Queue += QueueNumber(skip)
	if s.Message > queue.MaxMessageID/2 {
		return s, 0, fmt.Errorf("restore: message ids would begin at %d, and must stay below 2^53: is the clock of this machine right?", s.Message)
	}
	return s, max(generation+1, uint64(max(0, now))), nil
}

// Restoring is the folder beside that of the store in which a restore is under
// way. While it is there no store must be made beside it.
const Restoring = "store.restoring"

// Restore makes the store of a data directory anew from a backup: the folder
// "store" in dataDir, which must hold nothing but a restore that was
// interrupted and what is named in but. Its messages, leases and queues are
// those of the backup; its generation is higher, so every receipt of before is
// dead; and its numbers skip ahead. The folder appears whole or not at all: a
// restore that was interrupted is begun anew.
func Restore(backup, dataDir string, now time.Time, o Options, but ...string) (*Manifest, error) {
	o = o.filled()
	disk := o.FS
	m, err := ReadBackup(backup, disk)
	if err != nil {
		return nil, err
	}
	if err := emptyFolder(disk, dataDir, append(but, Restoring)...); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	from, to := disk.PathJoin(backup, backupStore), disk.PathJoin(dataDir, Restoring)
	if err := disk.RemoveAll(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := disk.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := syncParents(disk, to); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	for _, f := range m.Files {
		path := disk.PathJoin(from, f.Name)
		have, err := copyFile(disk, path, disk.PathJoin(to, f.Name), -1)
		if err == nil {
			err = have.compare(path, f)
		}
		if err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
	}
	if err := syncFolder(disk, to); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := renew(to, queue.InstantOf(now), o); err != nil {
		return nil, err
	}
	if err := disk.Rename(to, disk.PathJoin(dataDir, "store")); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := syncFolder(disk, dataDir); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return m, nil
}

// renew has the store in dir begin its new life.
func renew(dir string, now queue.Instant, o Options) (err error) {
	o.BallastBytes = 0
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.New() {
		return fmt.Errorf("restore: the backup holds no store")
	}
	l, err := s.Load()
	if err != nil {
		return err
	}
	state, generation, err := renewed(l.State, s.gen, now)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	state.code(s.apply.coder())
	if err := s.apply.write(b, stateKey); err != nil {
		return err
	}
	if err := b.Set(storeKey("generation"), u64(nil, generation), nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// Unfinished reports whether a restore into the data directory was begun and
// not finished.
func Unfinished(dataDir string, disk vfs.FS) bool {
	if disk == nil {
		disk = vfs.Default
	}
	_, err := disk.Stat(disk.PathJoin(dataDir, Restoring))
	return err == nil
}
