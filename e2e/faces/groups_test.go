package faces

import (
	"fmt"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

// TestGroups: a consumer group is the same over every face. What one face has
// published another receives as a group, by what its filter accepts, and settles;
// the other groups, and what no group accepted, are as they were.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := server.StartWith(t, server.Options{Args: []string{"--limits-profile", "unthrottled", "--keep-unrouted"}})
	for _, from := range All {
		for _, to := range All {
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				t.Parallel()
				x := newStage(t, s, to, settings{visibility: 2, dead: 1})
				x.rest.Must(t, 202, "PUT", "/queues/"+x.queue,
					`{"capabilities":[{"type":"CONSUMER_GROUPS","primaryConsumerGroupFilter":"NOT :kind = 'note'"}]}`)
				group := x.queue + "-bills"
				x.rest.Must(t, 202, "POST", "/consumerGroups", fmt.Sprintf(`{"queueId":%q,"displayName":%q,"filter":":kind = 'bill'"}`, x.queue, group))
				sender := from.Dial(s)
				defer sender.Drop()
				for _, kind := range []string{"bill", "offer", "note"} {
					_, err := sender.Publish(x.queue, "", Message{Body: []byte(kind), Properties: map[string]string{"kind": kind}})
					x.must(err)
				}

				x.As(group)
				d := x.one("bill", 1, Want{Visibility: long})
				x.must(x.Return(x.queue, d.Receipt, 0)) // that was its last delivery
				dead := x.from(x.queue+"_dlq", 1, Want{Visibility: long})[0]
				if string(dead.Body) != "bill" || dead.Dead == nil {
					t.Errorf("%+v", dead)
				}
				x.must(x.Delete(x.queue, dead.Receipt))

				x.As("")
				got := x.get(2, Want{Limit: 2, Visibility: long})
				if a, b := string(got[0].Body), string(got[1].Body); a != "bill" || b != "offer" {
					t.Errorf("the primary group has %q and %q", a, b)
				}
				for _, d := range got {
					x.must(x.Delete(x.queue, d.Receipt))
				}
				note := x.from(x.queue+"_unrouted", 1, Want{Visibility: long})[0]
				if string(note.Body) != "note" {
					t.Errorf("nobody accepted %q", note.Body)
				}
				x.must(x.Delete(x.queue+"_unrouted", note.Receipt))
				x.holds(0, 0, 0, 0)

				x.As(x.queue + "-none")
				_, err := x.Receive(x.queue, Want{})
				x.refused("NotAuthorizedOrNotFound", err)
			})
		}
	}
}
