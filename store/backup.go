package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/queued-mq/queued/queue"
)

// A backup is a folder:
//
//	store/       the files of a store as of one commit
//	backup.json  the Manifest; written last, so a backup without one is unfinished
const (
	backupStore    = "store"
	backupManifest = "backup.json"
	backupVersion  = 1
)

// Manifest says what a backup holds.
type Manifest struct {
	Backup     int          `json:"backup"`       // version of this form
	Format     uint64       `json:"format"`       // of the store
	Generation uint64       `json:"generation"`   // of the store
	Position   uint64       `json:"position"`     // ChangeSets that are in it
	Now        time.Time    `json:"now,omitzero"` // of the last of them
	MadeAt     time.Time    `json:"madeAt"`
	MadeBy     string       `json:"madeBy"` // version of the program
	Queues     int          `json:"queues"`
	Messages   int64        `json:"messages"`
	Recounted  bool         `json:"recounted"` // Verify has read the copy; if not, messages are what counters say
	Wrong      int          `json:"differences"`
	Files      []BackupFile `json:"files"`
}

// BackupFile is one file of the store in a backup.
type BackupFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// Checkpoint makes a store in the folder dir, which must not exist, that holds
// everything that was committed before the call, as of one commit. Tables are
// linked, so it takes little time and room; commits go on meanwhile. The end of
// its log may be torn by a commit that ran; CopyBackup cuts that off.
//
// Every commit is synced, so there is nothing to flush. Nothing is added to the
// log either: its records are written one by one (damage.go).
func (s *Store) Checkpoint(dir string) error {
	if err := s.db.Checkpoint(dir); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// CopyBackup makes a backup in the folder target, which must be empty or not
// exist, of the store in the folder from: a checkpoint, or a store that nobody
// has open. If check is set the copy is recounted; what is wrong in it is
// counted in the manifest, and is no error. madeBy is the version of the
// program. After an error the backup is not finished, and no manifest is there.
func CopyBackup(from, target string, check bool, madeBy string, o Options) (*Manifest, error) {
	o = o.filled()
	if err := emptyFolder(o.FS, target); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	m, err := copyBackup(from, target, check, madeBy, o)
	if err != nil {
		// To try again; first what says that the backup is whole.
		for _, name := range []string{backupManifest, backupManifest + ".new", backupStore} {
			_ = o.FS.RemoveAll(o.FS.PathJoin(target, name))
		}
		return nil, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

func copyBackup(from, target string, check bool, madeBy string, o Options) (*Manifest, error) {
	disk, to := o.FS, o.FS.PathJoin(target, backupStore)
	if err := disk.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	if err := syncParents(disk, to); err != nil {
		return nil, err
	}
	log, length, err := soundLog(disk, from)
	if err != nil {
		return nil, err
	}
	names, err := disk.List(from)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	m := &Manifest{Backup: backupVersion, MadeAt: time.Now().UTC().Truncate(time.Millisecond), MadeBy: madeBy}
	for _, name := range names {
		if name == "LOCK" || name == ballastName {
			continue
		}
		most := int64(-1)
		if name == log {
			most = length
		}
		f, err := copyFile(disk, disk.PathJoin(from, name), disk.PathJoin(to, name), most)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, f)
	}
	if err := syncFolder(disk, to); err != nil {
		return nil, err
	}
	if err := m.describe(to, check, o); err != nil {
		return nil, err
	}
	return m, m.write(disk, target)
}

// describe opens the copy, so that what is called a backup has been opened.
func (m *Manifest) describe(dir string, check bool, o Options) (err error) {
	s, err := OpenReadOnly(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := s.Load()
	if err != nil {
		return err
	}
	m.Format, m.Generation, m.Position, m.Now = s.format, s.Generation(), l.State.Position, l.State.Now.Time()
	for _, q := range l.Queues {
		if q.State != queue.Deleted {
			m.Queues++
		}
	}
	if !check {
		return s.Lanes(func(l Lane) error {
			m.Messages += l.messages()
			return nil
		})
	}
	r, err := s.Verify()
	if err != nil {
		return err
	}
	m.Recounted, m.Wrong = true, len(r.Differences)+r.More
	for _, l := range r.Lanes {
		m.Messages += l.Have.messages()
	}
	return nil
}

// write puts the manifest there whole: before, the backup is unfinished.
func (m *Manifest) write(disk vfs.FS, dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	path := disk.PathJoin(dir, backupManifest)
	f, err := disk.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(path+".new", path); err != nil {
		return err
	}
	return syncFolder(disk, dir)
}

// emptyFolder refuses a folder that holds anything but what is named.
func emptyFolder(disk vfs.FS, dir string, but ...string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(but, name) {
			return fmt.Errorf("%s is not empty: it holds %s", dir, name)
		}
	}
	return nil
}

// copyFile copies a file, or its first octets if most is not negative, and
// syncs the copy.
func copyFile(disk vfs.FS, from, to string, most int64) (BackupFile, error) {
	out := BackupFile{Name: disk.PathBase(from)}
	src, err := disk.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return out, err
	}
	defer src.Close()
	dst, err := disk.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return out, err
	}
	var r io.Reader = src
	if most >= 0 {
		r = io.LimitReader(src, most)
	}
	sum := sha256.New()
	out.Bytes, err = io.CopyBuffer(struct{ io.Writer }{dst}, io.TeeReader(r, sum), make([]byte, 1<<20))
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return out, fmt.Errorf("copy %s: %w", from, err)
	}
	out.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// soundLog is the newest log of the store in dir and how far it is sound: up to
// the end of the last record that is whole. A log that is copied while it is
// written may hold less of an earlier block than of a later one.
func soundLog(disk vfs.FS, dir string) (name string, length int64, err error) {
	logs, err := wal.Scan(wal.Dir{FS: disk, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return "", 0, err
	}
	last := logs[len(logs)-1]
	_, path := last.SegmentLocation(0)
	f, err := disk.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	buf := make([]byte, blockLen)
	for at := int64(0); ; at += blockLen {
		n, err := io.ReadFull(f, buf)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return "", 0, err
		}
		sound, _, ends := logBlock(buf[:n], uint32(last.Num))
		if ends >= 0 {
			length = at + int64(ends)
		}
		if n < blockLen || sound < n-logHead {
			return disk.PathBase(path), length, nil
		}
	}
}

// ReadBackup reads the manifest of the backup in dir. A backup that was not
// finished, and one that a newer version made, is refused in one sentence.
func ReadBackup(dir string, disk vfs.FS) (*Manifest, error) {
	if disk == nil {
		disk = vfs.Default
	}
	text, err := readFile(disk, disk.PathJoin(dir, backupManifest))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := disk.Stat(disk.PathJoin(dir, backupStore)); err == nil {
			return nil, fmt.Errorf("%s is a backup that was not finished: it has no %s; make it again", dir, backupManifest)
		}
		return nil, fmt.Errorf("%s is not a backup: it has no %s", dir, backupManifest)
	}
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Backup < 1 {
		return nil, fmt.Errorf("%s of the backup %s is damaged", backupManifest, dir)
	}
	if m.Backup > backupVersion || m.Format > Format {
		return nil, fmt.Errorf("the backup %s has form %d and format %d; this version of queued reads %d and %d: use a newer one", dir, m.Backup, m.Format, backupVersion, Format)
	}
	for _, f := range m.Files {
		if f.Name == "" || disk.PathBase(f.Name) != f.Name || f.Name == ".." || f.Name == "." {
			return nil, fmt.Errorf("%s of the backup %s is damaged: it names the file %q", backupManifest, dir, f.Name)
		}
	}
	return &m, nil
}

// IsBackup reports whether the folder is a backup. It must not be served: what
// it gives out since, another server may have given out too.
func IsBackup(dir string) bool {
	_, err := vfs.Default.Stat(vfs.Default.PathJoin(dir, backupManifest))
	return err == nil
}

// VerifyBackup reads every file of the backup in dir and compares it with the
// manifest.
func VerifyBackup(dir string, disk vfs.FS) (*Manifest, error) {
	if disk == nil {
		disk = vfs.Default
	}
	m, err := ReadBackup(dir, disk)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, f := range m.Files {
		wrong = append(wrong, verifyFile(disk, disk.PathJoin(dir, backupStore, f.Name), f))
	}
	return m, errors.Join(wrong...)
}

// BackupStore is the folder of the store in a backup, for OpenReadOnly.
func BackupStore(dir string) string { return vfs.Default.PathJoin(dir, backupStore) }

func verifyFile(disk vfs.FS, path string, want BackupFile) error {
	f, err := disk.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	if err != nil {
		return fmt.Errorf("read backup: %s: %w", path, err)
	}
	have := BackupFile{want.Name, n, hex.EncodeToString(sum.Sum(nil))}
	return have.compare(path, want)
}

func (f BackupFile) compare(path string, want BackupFile) error {
	switch {
	case f.Bytes != want.Bytes:
		return fmt.Errorf("%s has %d octets, and the backup says %d: it is damaged", path, f.Bytes, want.Bytes)
	case f.SHA256 != want.SHA256:
		return fmt.Errorf("%s is not what was backed up: its SHA-256 is another one", path)
	}
	return nil
}
