package stomp

import (
	"context"
	"log/slog"
	"math/bits"

	"github.com/queued-mq/queued/stomp/frame"
)

// quirks are things that clients do though they should not, or leave out though
// they should not, and that are served all the same. Each is counted, and named
// once in the log of each session. The first ones are the decoder's.
type quirks uint32

const (
	strayNul                 = quirks(frame.StrayNul)
	trailingCR               = quirks(frame.TrailingCR)
	rawColon                 = quirks(frame.RawColon)
	repeatedHeader           = quirks(frame.RepeatedHeader)
	lengthWithoutBody        = quirks(frame.LengthWithoutBody)
	bodyIgnored              = quirks(frame.BodyIgnored)
	noAcceptVersion          = 1 << 6
	noHeartBeat              = 1 << 7
	noHost                   = 1 << 8
	receiptOnConnect         = 1 << 9
	reservedHeader           = 1 << 10
	ackByMessageID           = 1 << 11
	ackNoSubscription        = 1 << 12
	ackRepeated              = 1 << 13
	ackLate                  = 1 << 14
	quirkKinds               = 15
	quietQuirks       quirks = noAcceptVersion | noHeartBeat // too usual for a log
)

// quirkNames are the kinds as metrics and the log call them, by bit.
var quirkNames = [quirkKinds]string{
	"stray_nul", "trailing_cr", "raw_colon", "repeated_header", "content_length_ignored", "body_ignored", "no_accept_version", "no_heart_beat",
	"no_host", "receipt_on_connect", "reserved_header", "ack_by_message_id", "ack_without_subscription", "ack_repeated", "ack_late",
}

// Quirks tells each kind and how many frames had it, since the start.
func (s *Server) Quirks(tell func(kind string, frames int64)) {
	for i, name := range quirkNames {
		tell(name, s.quirks[i].Load())
	}
}

// sayQuirks counts and names the quirks of the frame that was served. The reader
// alone calls it.
func (c *conn) sayQuirks() {
	q := c.quirks
	c.quirks = 0
	for rest := q; rest != 0; rest &= rest - 1 {
		c.server.quirks[bits.TrailingZeros32(uint32(rest))].Add(1)
	}
	for rest := q &^ c.said; rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros32(uint32(rest))
		level := slog.LevelInfo
		if quietQuirks&(1<<bit) != 0 {
			level = slog.LevelDebug
		}
		c.log.LogAttrs(context.Background(), level, "the client does not keep to the letter of STOMP, and is served",
			slog.String("kind", quirkNames[bit]), slog.String("version", c.version.String()))
	}
	c.said |= q
}
