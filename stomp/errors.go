package stomp

import (
	"strings"

	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/stomp/frame"
)

// refusal is a frame that ends the session; without err it ends in silence.
type refusal struct {
	command string
	receipt string
	asked   bool
	err     error
}

func (r *refusal) Error() string { return r.err.Error() }

// invalid is the error for a frame that breaks the protocol.
func invalid(format string, args ...any) error {
	return queue.Errorf(queue.InvalidFrame, format, args...)
}

// refused is the refusal of f, unless a frame before it has ended the session.
func (c *conn) refused(f *frame.Frame, err error) error {
	if err == errEnded {
		return err
	}
	r := &refusal{command: command(f), err: err}
	if f.Command != frame.Connect && f.Command != frame.Stomp { // which may not ask for one
		r.receipt, r.asked = f.Get("receipt")
		if len(r.receipt) > receiptBytes || !c.sayable(r.receipt) {
			r.receipt, r.asked = "", false
		}
	}
	return r
}

// command is the frame's, from a small set, for metrics.
func command(f *frame.Frame) string {
	switch f.Command {
	case frame.Connect, frame.Stomp, frame.Send, frame.Subscribe, frame.Unsubscribe, frame.Ack, frame.Nack,
		frame.Begin, frame.Commit, frame.Abort, frame.Disconnect:
		return f.Command
	}
	return "frame"
}

// appendError appends the ERROR frame of a failure.
func (c *conn) appendError(dst []byte, a *answer) []byte {
	code, text := string(queue.CodeOf(a.err)), queue.MessageOf(a.err)
	short := strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
	dst = frame.AppendCommand(dst, frame.ServerError)
	dst, _ = frame.AppendHeader(dst, c.version, "message", short)
	dst, _ = frame.AppendHeader(dst, c.version, "code", code)
	if a.asked {
		dst, _ = frame.AppendHeader(dst, c.version, "receipt-id", a.receipt)
	}
	if a.versions {
		dst, _ = frame.AppendHeader(dst, frame.V10, "version", versions)
	}
	dst, _ = frame.AppendHeader(dst, c.version, "content-type", "text/plain")
	body := code + ": " + text + "\n"
	dst = frame.AppendContentLength(dst, len(body))
	return frame.AppendBody(dst, []byte(body))
}
