package queue

import "time"

// Instant is a point in time in milliseconds since the Unix epoch, UTC. The
// zero value means "no instant". The API shows RFC 3339 with milliseconds, so
// nothing is lost between what is stored and what is told.
type Instant int64

// InstantOf is t cut down to the millisecond.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMilli()) }

// Add is i moved by d, cut down to the millisecond.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d.Milliseconds()) }

// Sub is the length from u to i.
func (i Instant) Sub(u Instant) time.Duration { return time.Duration(i-u) * time.Millisecond }

// Time is i as a time.Time in UTC; the zero Instant is the zero Time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i)).UTC()
}

// String is RFC 3339 in UTC with exactly three digits of fraction, the form of
// the API; the zero Instant is the empty string.
func (i Instant) String() string {
	if i == 0 {
		return ""
	}
	return i.Time().Format("2006-01-02T15:04:05.000Z")
}
