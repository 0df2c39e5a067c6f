package stomp

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// versions are those we speak, as headers list them.
const versions = "1.0,1.1,1.2"

// connect opens the session by its first frame, or refuses it.
func (c *conn) connect(f *frame.Frame) error {
	version, err := chooseVersion(f)
	if err != nil {
		return err
	}
	theirs, err := readBeats(f)
	if err != nil {
		return err
	}
	ours, send, expect := theirs.agree()
	if version == frame.V10 {
		ours, send, expect = beats{}, 0, 0
	}

	c.oddOpening(f, version)
	c.version = version
	c.dec.SetVersion(version)
	c.dec.SetLimits(frame.Limits{Body: c.server.o.MessageBytes, HeaderLine: lineBytes})
	c.in.until, c.in.patience = time.Time{}, patience(expect)

	server := "queued"
	if c.server.o.Version != "" {
		server += "/" + c.server.o.Version
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.beat = send * 2 / 3 // clients are less patient than we are
	c.out.answer(func(dst []byte) []byte {
		dst = frame.AppendCommand(dst, frame.Connected)
		dst, _ = frame.AppendHeader(dst, frame.V10, "version", version.String())
		dst, _ = frame.AppendHeader(dst, frame.V10, "heart-beat", ours.String())
		dst, _ = frame.AppendHeader(dst, frame.V10, "session", c.session)
		dst, _ = frame.AppendHeader(dst, frame.V10, "server", server)
		return frame.AppendBody(dst, nil)
	})
	return nil
}

// oddOpening notes what the opening frame should not have, or lacks.
func (c *conn) oddOpening(f *frame.Frame, v frame.Version) {
	for _, q := range []struct {
		name  string
		there bool // that is the quirk
		since frame.Version
		kind  quirks
	}{
		{"accept-version", false, frame.V10, noAcceptVersion},
		{"heart-beat", false, frame.V11, noHeartBeat},
		{"host", false, frame.V11, noHost},
		{"receipt", true, frame.V10, receiptOnConnect},
	} {
		if _, found := f.Get(q.name); found == q.there && v >= q.since {
			c.quirks |= q.kind
		}
	}
}

// chooseVersion is the highest version that both speak.
func chooseVersion(f *frame.Frame) (frame.Version, error) {
	list, found := f.Get("accept-version")
	if !found {
		return frame.V10, nil
	}
	var best frame.Version
	for _, word := range strings.Split(list, ",") {
		for _, v := range []frame.Version{frame.V10, frame.V11, frame.V12} {
			if strings.Trim(word, " \t") == v.String() {
				best = max(best, v)
			}
		}
	}
	if best == 0 {
		return 0, errVersion
	}
	return best, nil
}

var errVersion = invalid("accept-version has no version that is spoken here, which are %s", versions)

// beats is a header heart-beat: the shortest interval at which its sender can
// send, and at which it wants to receive; 0 is not at all.
type beats struct{ sends, wants time.Duration }

const (
	minBeat = time.Second
	maxBeat = 5 * time.Minute // that we ask for
)

func readBeats(f *frame.Frame) (b beats, err error) {
	text, found := f.Get("heart-beat")
	if !found {
		return b, nil
	}
	first, second, ok := strings.Cut(text, ",")
	for _, one := range []struct {
		text string
		to   *time.Duration
	}{{first, &b.sends}, {second, &b.wants}} {
		n, good := number(one.text)
		if !ok || !good {
			return beats{}, invalid("heart-beat is %.32q; it must be two numbers of milliseconds, each 0 to %d, as in 10000,10000", text, math.MaxInt32)
		}
		*one.to = time.Duration(n) * time.Millisecond
	}
	return b, nil
}

// agree is our answer to the client's heart-beats, and the intervals at which
// we send and expect something; 0 is not at all.
func (b beats) agree() (ours beats, send, expect time.Duration) {
	if b.wants > 0 {
		ours.sends = max(minBeat, b.wants)
		send = ours.sends
	}
	if b.sends > 0 {
		ours.wants = min(max(minBeat, b.sends), maxBeat)
		expect = max(ours.wants, b.sends)
	}
	return ours, send, expect
}

func (b beats) String() string {
	return strconv.FormatInt(b.sends.Milliseconds(), 10) + "," + strconv.FormatInt(b.wants.Milliseconds(), 10)
}

// patience is how long a peer that promised something every n may be silent.
func patience(n time.Duration) time.Duration {
	if n == 0 {
		return 0
	}
	return max(2*n, n+2*time.Second)
}

// number reads a header of digits. Blanks round them are overlooked, as the
// examples of 1.0 have them.
func number(text string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.Trim(text, " \t"), 10, 31)
	return n, err == nil
}

// seconds reads an optional header of whole seconds.
func seconds(name, text string) (*int32, error) {
	n, ok := number(text)
	if !ok {
		return nil, queue.Errorf(queue.InvalidParameter, "%s is %.32q; it must be a number of seconds", name, text)
	}
	v := int32(n)
	return &v, nil
}
