package store

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestBackgroundFailures are logged, but not as often as they are repeated.
func TestBackgroundFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &logger{log: textLogger(&log), fatal: func(err error) { panic(err) }}
		for range 1000 {
			l.background(syscall.ENOSPC)
		}
		time.Sleep(often)
		l.background(syscall.EIO)
		if got := strings.Count(log.String(), "\n"); got != 2 || !strings.Contains(log.String(), "failures=1000") {
			t.Errorf("%d lines:\n%s", got, log.String())
		}
	})
}

// TestLogged: Pebble's words go to the logger, and its fatal ones to Fatal,
// which does not come back.
func TestLogged(t *testing.T) {
	var log bytes.Buffer
	stop := fmt.Errorf("stop")
	l := &logger{log: textLogger(&log), fatal: func(err error) { panic(stop) }}
	func() {
		defer func() {
			if p := recover(); p != stop {
				t.Errorf("recovered %v", p)
			}
		}()
		l.Fatalf("bad %s", "table")
	}()
	l.fatal = func(error) {}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a Fatal that returns was let go on")
			}
		}()
		l.Fatalf("bad %s", "table")
	}()
	l.Errorf("worse %d", 1)
	l.Infof("fine")
	for _, want := range []string{"bad table", "worse 1", "level=ERROR", "fine"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell %q:\n%s", want, log.String())
		}
	}
}
