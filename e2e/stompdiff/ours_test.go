package stompdiff

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestOurs plays the table to our server, over sockets: it does what it says.
func TestOurs(t *testing.T) {
	t.Parallel()
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"all": Everywhere(table), "of the protocol": Everywhere(OfProtocol(table))} {
		if n < 80 {
			t.Errorf("%s: %d exchanges run in all three versions over a socket; want 80", name, n)
		}
	}
	s := server.StartWith(t, server.Options{Args: []string{"--limits-profile", "unthrottled"}, Env: []string{"QUEUED_KEEP_UNROUTED=true"}})
	c := rest.Dial(t, s.REST)
	for _, x := range table {
		for _, v := range x.Versions {
			for _, q := range Queues(x, v) {
				c.Must(t, 202, "POST", "/queues", fmt.Sprintf(`{"displayName":%q,"compartmentId":"c"}`, q))
			}
		}
	}
	b := &Broker{Addr: s.STOMP, Host: "here", Wait: 20 * time.Second, Silence: 100 * time.Millisecond}
	found, err := b.Play(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		t.Errorf("%s in %s: %s, want %s", d.Exchange, d.Version, d.Got, d.Want)
	}
}
