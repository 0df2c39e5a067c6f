package stomp

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/time/rate"

	"github.com/queued-mq/queued/queue"
)

// input is the reading side of a connection: it knows how long it may wait for
// the next octets, and how fast they may come. Time in which nobody reads
// does not count, since then the delay is ours. Only the reader uses it.
type input struct {
	conn     *conn
	until    time.Time     // the session must be open by then; zero: it is
	patience time.Duration // for any octet, as the heart-beats say; 0: for ever

	asked  time.Time // since when octets are waited for; zero: nobody waits
	began  time.Time // of the frame that is under way; zero: none is
	octets int64     // of it

	limiter *rate.Limiter
	idle    bool // nothing came for a while, and the reader knows
}

const (
	idleTime  = 20 * time.Second // after which an idle session gives memory back
	burstRead = 1 << 20
)

// errQuiet says that nothing has come for a while; nothing is wrong.
var errQuiet = errors.New("nothing has come")

func (in *input) limit(bytesPerSecond int64) {
	in.limiter = rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(bytesPerSecond, burstRead)))
}

// done tells that a frame is complete.
func (in *input) done() { in.began = time.Time{} }

// Read is part of io.Reader, for the Decoder.
func (in *input) Read(p []byte) (int, error) {
	in.conn.publish()
	now := time.Now()
	switch begun := in.conn.dec.Begun(); {
	case !begun:
		in.began = time.Time{}
	case in.began.IsZero():
		in.began, in.octets = now, 0
	}
	if in.asked.IsZero() {
		in.asked = now
	}
	p = p[:min(len(p), burstRead)]
	at, why := in.deadline(now)
	in.conn.waitUntil(at)
	n, err := in.conn.net.Read(p)
	if n > 0 {
		in.octets += int64(n)
		in.idle, in.asked = false, time.Time{}
		if pause := in.slowDown(n); !in.began.IsZero() {
			in.began = in.began.Add(pause)
		}
		return n, nil
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		if in.conn.isOver() {
			return 0, err
		}
		if why == errQuiet {
			in.idle = true
			if s := in.conn.socket; s != nil {
				s.idle()
			}
		}
		if why == errSilent {
			if time.Now().Before(in.since().Add(in.patience)) {
				return 0, errQuiet // something has begun to come
			}
			why = in.silence()
		}
		return 0, why
	}
	return n, err
}

// deadline is until when octets must come, and what it means if none do.
func (in *input) deadline(now time.Time) (at time.Time, why error) {
	sooner := func(t time.Time, reason error) {
		if at.IsZero() || t.Before(at) {
			at, why = t, reason
		}
	}
	if !in.until.IsZero() {
		sooner(in.until, errSignIn)
	}
	if !in.began.IsZero() {
		// A second for each KiB that has come, on top: slow but honest peers
		// come to an end, those who drip octets do too.
		sooner(in.began.Add(frameTime+time.Duration(in.octets)*time.Second/1024), errFrameTime)
	}
	if in.patience > 0 {
		sooner(in.since().Add(in.patience), errSilent)
	}
	if !in.idle {
		sooner(now.Add(idleTime), errQuiet)
	}
	return at, why
}

var (
	errSignIn    = invalid("the session was not opened within %d s by a CONNECT or STOMP frame", signInTime/time.Second)
	errFrameTime = invalid("a frame was not finished in time: it may take %d s and one second more for each KiB", frameTime/time.Second)
)

// since is from when on octets are missed: since they are waited for, or since
// the last one of a WebSocket message that has come in part.
func (in *input) since() time.Time {
	if s := in.conn.socket; s != nil {
		if at := s.heard(); at.After(in.asked) {
			return at
		}
	}
	return in.asked
}

// errSilent says that the heart-beats have stopped.
var errSilent = errors.New("nothing has come for too long")

func (in *input) silence() error {
	return queue.Errorf(queue.InvalidFrame, "nothing came for %d ms, longer than the heart-beats allow", in.patience.Milliseconds())
}

// slowDown waits as the rate wants it, and says for how long. Any goroutine may
// call it.
func (in *input) slowDown(n int) time.Duration {
	if in.limiter == nil {
		return 0
	}
	pause := in.limiter.ReserveN(time.Now(), n).Delay()
	if pause <= 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(in.conn.ctx, pause)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-in.conn.over:
	}
	return pause
}

// waitUntil sets how long the next read may take, unless the session ends.
func (c *conn) waitUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil && !c.out.ended {
		c.net.SetReadDeadline(t)
	}
}

// isOver reports whether the session is to end, for whatever reason.
func (c *conn) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause != nil || c.out.ended
}
