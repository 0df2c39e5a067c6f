package bench

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestLatencyWindow(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	r.latency(0, publishing, 0, time.Second) // before the window
	r.from.Store(int64(10 * time.Second))
	r.to.Store(int64(20 * time.Second))
	r.latency(0, publishing, 9*time.Second, 11*time.Second)
	r.latency(0, publishing, 20*time.Second, 21*time.Second)
	if d := r.distribution(publishing); d != nil {
		t.Errorf("outside the window: %+v", d)
	}
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for i := range 100 { // 1 ms to 1000 ms
				r.latency(worker, publishing, 15*time.Second, 15*time.Second+time.Duration(worker*100+i+1)*time.Millisecond)
			}
		})
	}
	wg.Wait()
	r.latency(3, publishing, 19*time.Second, time.Hour) // ends behind it, and is too long
	d := r.distribution(publishing)
	if d.Count != 1001 {
		t.Errorf("%d are counted", d.Count)
	}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{{"p50", d.P50, 500}, {"p90", d.P90, 900}, {"p99", d.P99, 990}, {"p99.9", d.P999, 1000}, {"max", d.Max, 600_000}} {
		if tt.got < tt.want*0.995 || tt.got > tt.want*1.005 {
			t.Errorf("%s is %v ms, want about %v", tt.name, tt.got, tt.want)
		}
	}
	if r.distribution(settling) != nil {
		t.Error("a latency that nobody recorded")
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	var a, b ledger
	numbers := []uint64{0, 1, 63, 64, pageBits - 1, pageBits, 5*pageBits + 7}
	for _, n := range numbers {
		if !a.note(n) || a.note(n) {
			t.Errorf("%d is new once", n)
		}
	}
	if n := a.unseen(&b); n != uint64(len(numbers)) {
		t.Errorf("%d are unseen", n)
	}
	b.note(63)
	b.note(5*pageBits + 7)
	b.note(9 * pageBits)
	if n := a.unseen(&b); n != uint64(len(numbers)-2) {
		t.Errorf("%d are unseen", n)
	}
	for range 2 {
		if !a.note(1 << 60) {
			t.Error("a number that cannot be is noted")
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, size := range []int{headBytes, 1024, 256 << 10} {
		b := newBodies(size)
		var all []byte
		for n := range uint64(20) {
			body := b.append(nil, n, time.Duration(n)*time.Second)
			number, meant, err := readHead(body)
			if len(body) != size || err != nil || number != n || meant != time.Duration(n)*time.Second {
				t.Errorf("%d octets, number %d, meant %v, %v", len(body), number, meant, err)
			}
			for _, c := range body {
				if c <= ' ' || c > '~' || c == '"' || c == '\\' {
					t.Fatalf("%q needs an escape", c)
				}
			}
			all = append(all, body...)
		}
		if size == headBytes {
			continue
		}
		// Letters have 6 bits of an octet's 8: no less is left.
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, 9)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(all)
		w.Close()
		if packed.Len() < len(all)*7/10 {
			t.Errorf("%d octets become %d", len(all), packed.Len())
		}
	}
	if _, _, err := readHead([]byte("hello")); !errors.Is(err, errNotOurs) {
		t.Error(err)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"TooManyRequests":   fmt.Errorf("x: %w", errFull),
		"Timeout":           context.DeadlineExceeded,
		"Canceled":          context.Canceled,
		"ConnectionRefused": &testError{syscall.ECONNREFUSED},
		"ConnectionLost":    io.ErrUnexpectedEOF,
		"ForeignMessage":    errNotOurs,
		"Other":             errOther,
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

type testError struct{ error }

func (e *testError) Unwrap() error { return e.error }

func TestParseServer(t *testing.T) {
	t.Parallel()
	got := parseServer(strings.NewReader("# HELP x\nprocess_cpu_seconds_total 1.5\ngo_memstats_mallocs_total 2e+06\n" +
		"queued_sync_seconds_bucket{le=\"1\"} 3\nqueued_sync_seconds_count 7\nprocess_resident_memory_bytes 1024\n"))
	if got == nil || *got != (server{1.5, 2e6, 7, 1024}) {
		t.Errorf("%+v", got)
	}
	if parseServer(strings.NewReader("<html>")) != nil {
		t.Error("a page that is no metrics")
	}
}
