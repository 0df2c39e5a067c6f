package clients

import (
	"os/exec"
	"path/filepath"
	"slices"
)

// stompSuite has clients of STOMP that are not ours. Beside what every program
// finds, theirs find in their environment
//
//	NODE_PATH  where packages for Node.js are
//	PAGE       host:port to serve a page at that may open a WebSocket
func stompSuite() suite {
	s := suite{
		name: "STOMP",
		topics: []string{
			"1.0", "1.1", "1.2", "text", "octets", "headers", "receipts", "auto", "client", "client-individual", "NACK",
			"UNSUBSCRIBE", "heart-beats", "reconnect", "DISCONNECT", "ERROR", "transactions",
		},
		clients: []client{
			{name: "go-stomp", dir: "gostomp", command: []string{"go", "run", "."}, env: goEnv()},
			{name: "stomp.py", dir: "stomppy", command: []string{stompPy(), "main.py"}},
			{name: "stompjs over TCP", dir: "stompjs", command: []string{"node", "tcp.cjs"}},
			{name: "stompjs over WebSocket", dir: "stompjs", command: []string{"node", "ws.cjs"}},
			{name: "stompjs in Chromium", dir: "stompjs", command: []string{"node", "browser.cjs"}},
			{name: "stompit", dir: "stompit", command: []string{"node", "main.cjs"}},
			{name: "Ruby stomp", dir: "ruby", command: []string{"ruby", "main.rb"}},
			{name: "Net::Stomp", dir: "perl", command: []string{"perl", "main.pl"}},
		},
	}
	packages, err := filepath.Abs(build("stompjs", "node_modules"))
	if err != nil {
		panic(err) // there is no working directory
	}
	page := freeAddress()
	for i := range s.clients {
		c := &s.clients[i]
		c.flags = []string{"--create-queue", "letters", "--limits-profile", "unthrottled"}
		c.settings = []string{"QUEUED_STOMP_WEBSOCKET_ORIGINS=http://" + page}
		c.env = append(slices.Clip(c.env), "NODE_PATH="+packages, "PAGE="+page)
	}
	return s
}

// stompPy is a python that has stomp.py: that of the system, or else the one
// that is found first.
func stompPy() string {
	if exec.Command("/usr/bin/python3", "-c", "import stomp; stomp.StompConnection12").Run() == nil {
		return "/usr/bin/python3"
	}
	return "python3"
}
