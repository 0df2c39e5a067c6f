package clients

import (
	"os"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// clients are the columns of the table, from left to right.
func clients() []client {
	return []client{
		{name: "TypeScript SDK", dir: "typescript", command: []string{"typescript/run.sh"}},
	}
}

// TestClients runs every client, and compares what they checked with the table
// of docs/clients.md. A client that -run leaves out keeps its column.
func TestClients(t *testing.T) {
	page := readPage(t)
	said := map[string]*report{}
	t.Run("client", func(t *testing.T) {
		for _, c := range clients() {
			r := newReport()
			said[c.name] = r
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, r)
				page.shows(t, c)
			})
		}
	})
	page.compare(t, said)
}
