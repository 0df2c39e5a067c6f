package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/queued-mq/queued/e2e/server"
)

func TestMain(m *testing.M) {
	server.Wide(4) // the clients of STOMP mostly wait
	os.Exit(server.Main(m))
}

// suites are the tables of docs/clients.md.
func suites() []suite { return []suite{ociSuite(), stompSuite()} }

// ociSuite has the clients that OCI hands out.
func ociSuite() suite {
	return suite{name: "OCI", topics: operations, clients: []client{
		{name: "Go SDK", dir: "go", command: []string{"go", "run", "."}, env: goEnv()},
		{name: "Python SDK", dir: "python", command: []string{venv("python3"), "sdk.py"}},
		{name: "OCI CLI", dir: "python", command: []string{"python/cli.sh"}},
		{name: "Java SDK", dir: "java", command: []string{"java/run.sh"}},
		{name: "TypeScript SDK", dir: "typescript", command: []string{"typescript/run.sh"}},
	}}
}

// build is a path in the folder of the checkout that scripts/setup.sh installs
// clients into.
func build(path ...string) string {
	return filepath.Join(append([]string{"..", "..", ".build"}, path...)...)
}

// venv is a program of the virtual environment that holds OCI's packages.
func venv(program string) string { return build("python", "bin", program) }

// TestClients runs every client, and compares what they checked with the tables
// of docs/clients.md. A client that -run leaves out keeps its column.
func TestClients(t *testing.T) {
	text := readPage(t)
	said := map[string]*report{}
	t.Run("client", func(t *testing.T) {
		for _, s := range suites() {
			for _, c := range s.clients {
				r := newReport(s.topics)
				said[c.name] = r
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, r)
					shows(t, text, c)
				})
			}
		}
	})
	if !t.Failed() {
		compare(t, text, said)
	}
}

// goEnv lets the go command find what it has, away from home, and nothing else.
var goEnv = sync.OnceValue(func() []string {
	env := []string{"GOPROXY=off", "GOFLAGS=-mod=readonly"}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			panic(err) // the tests are run by it
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
})
