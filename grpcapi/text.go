package grpcapi

import (
	"fmt"
	"unicode/utf8"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
)

// checkText refuses a string that is not UTF-8: api/codec lets them through,
// for an error of its own could not say which field it is. The pairs are the
// name of a field and what stands in it.
//
// Every request of the data plane goes through it or through checkTextOf; the
// test walks all their fields.
func checkText(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if !utf8.ValidString(pairs[i+1]) {
			return notText(pairs[i])
		}
	}
	return nil
}

func notText(name string) error {
	return queue.Errorf(queue.InvalidParameter, "%s must be UTF-8", name)
}

// checkTextOf is checkText for the messages of a publish.
func checkTextOf(messages []*queuev1.PutMessagesDetailsEntry) error {
	for i, m := range messages {
		at := func(name string) error { return notText(fmt.Sprintf("messages[%d].%s", i, name)) }
		if !utf8.ValidString(m.GetContentEncoding()) {
			return at("contentEncoding")
		}
		if !utf8.ValidString(m.GetMetadata().GetChannelId()) {
			return at("metadata.channelId")
		}
		for name, value := range m.GetMetadata().GetCustomProperties() {
			if !utf8.ValidString(name) || !utf8.ValidString(value) {
				return at("metadata.customProperties")
			}
		}
	}
	return nil
}

// checkTextAt is checkText for one receipt of a batch.
func checkTextAt(i int, receipt string) error {
	if !utf8.ValidString(receipt) {
		return notText(fmt.Sprintf("entries[%d].receipt", i))
	}
	return nil
}
