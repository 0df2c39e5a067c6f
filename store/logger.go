package store

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// logger gives Pebble's words to slog and its fatal ones to Fatal: a failed
// write of the log is never tried again, since nobody can tell what of it is
// on disk.
type logger struct {
	dir     string
	log     *slog.Logger
	fatal   func(error)
	opening atomic.Bool

	mu     sync.Mutex
	told   time.Time // when a failure in the background was last logged
	untold int       // failures since
}

// often is how often a failure in the background is logged.
const often = 10 * time.Second

// background hears of a table that could not be written. Pebble tries again
// at once and without end: nothing is lost by that, and when the disk was full
// it goes on by itself as soon as there is room. But a start would hang
// without a word, so it fails instead.
func (l *logger) background(err error) {
	if l.opening.Load() && errors.Is(err, syscall.ENOSPC) {
		l.Fatalf("no room on the disk to open the store; make room and start again: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.told) < often {
		l.untold++
		return
	}
	l.log.Error("pebble: background work failed, trying again", "error", err, "failures", l.untold+1)
	l.told, l.untold = time.Now(), 0
}

func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("pebble", "text", fmt.Sprintf(format, args...))
}

func (l *logger) Errorf(format string, args ...any) {
	l.log.Error("pebble", "text", fmt.Sprintf(format, args...))
}

func (l *logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("store failed: "+format, args...)
	l.log.Error("store failed", "store", l.dir, "error", err) // not every error names its file
	l.fatal(err)
	panic(err) // Fatal must not return
}

// detailed adds what Pebble keeps apart from the text of an error: the file
// and the place in it.
func detailed(err error) error {
	var details []string
	for e := err; e != nil; e = errors.Unwrap(e) {
		if d, ok := e.(interface{ ErrorDetail() string }); ok && d.ErrorDetail() != "" {
			details = append(details, d.ErrorDetail())
		}
	}
	if details == nil {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(details, "; "))
}
