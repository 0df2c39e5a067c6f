package stomp

import (
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// destination is where a frame goes or what it wants: the text of a
// destination header, [/queue/]<queue>[_dlq][/<channel>].
type destination struct {
	text    string // as it stood in the header
	ref     string // OCID or display name, with _dlq behind it for the dead letter queue
	channel string // or a pattern of SUBSCRIBE; "": none
}

const queuePrefix = "/queue/"

func readDestination(f *frame.Frame) (d destination, err error) {
	text, found := f.Get("destination")
	if !found || text == "" {
		return d, invalid("%s needs the header destination: a queue, or <queue>/<channel>", f.Command)
	}
	d.text = text
	rest, _ := strings.CutPrefix(text, queuePrefix)
	if strings.HasPrefix(rest, "/") {
		return d, queue.Errorf(queue.InvalidParameter,
			"destination is %.64q; write <queue>, <queue>/<channel> or the same behind /queue/: there are queues only, no topics or exchanges", text)
	}
	channel, named := "", false
	d.ref, channel, named = strings.Cut(rest, "/")
	if named && channel == "" {
		return d, queue.Errorf(queue.InvalidParameter, "destination is %.64q; behind the / must be the name of a channel", text)
	}
	d.channel = strings.Clone(channel) // it may be kept for as long as the channel lives
	return d, nil
}

// optional is nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
