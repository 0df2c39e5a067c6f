package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// faceAdmin is the listener for those who run the server; the other names are
// those of service.Caller.
const faceAdmin = "admin"

// face is one listener and what serves it.
type face struct {
	name     string
	scheme   string // before its address in the start line; "" is none
	listener *listener
	serve    func(net.Listener) error    // until shutdown or cut
	shutdown func(context.Context) error // accepts nothing more and waits for what is under way
	cut      func()                      // ends what is under way and waits for it

	wg sync.WaitGroup
}

// start serves; a face that ends by itself tells failed.
func (f *face) start(failed chan<- error) {
	f.wg.Go(func() {
		err := f.serve(f.listener)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			select {
			case failed <- fmt.Errorf("serve %s: %w", f.name, err):
			default:
			}
		}
	})
}

// cutTime is how long work that was cut may take to notice it.
const cutTime = 2 * time.Second

// stop ends the face. What is not done when ctx ends is cut, and then cut is
// true; idle is false if some of it goes on even so.
func (f *face) stop(ctx context.Context) (cut, idle bool) {
	idle = true
	if err := f.shutdown(ctx); err != nil {
		cut = true
		done := make(chan struct{})
		go func() {
			f.cut()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(cutTime):
			idle = false
		}
	}
	f.listener.Close() // it may never have been served
	if idle {
		f.wg.Wait()
	}
	return cut, idle
}

// running counts the requests under way, so that nothing below is closed
// before they have ended.
type running struct {
	next http.Handler

	mu    sync.Mutex
	count int
	ended bool
	idle  chan struct{} // closed when it has ended and count is 0
}

func newRunning(next http.Handler) *running {
	return &running{next: next, idle: make(chan struct{})}
}

func (r *running) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		panic(http.ErrAbortHandler) // its connection is closed already
	}
	r.count++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.count--; r.count == 0 && r.ended {
			close(r.idle)
		}
	}()
	r.next.ServeHTTP(w, req)
}

// end lets no request in and returns when none is under way.
func (r *running) end() {
	r.mu.Lock()
	if !r.ended {
		r.ended = true
		if r.count == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	<-r.idle
}

// loadTLS reads certificate and key; without file names there is no TLS.
func loadTLS(cert, key string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls-cert %s, tls-key %s: %w", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
