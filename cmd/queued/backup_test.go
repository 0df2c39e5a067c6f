package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
)

// succeeds runs a command that must end with 0, and is its output.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("queued %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// refused runs a command that must end with 1 and that sentence alone.
func refused(t *testing.T, want string, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, args...)
	if code != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("queued %s: exit code %d, want 1 and %q\n%s", strings.Join(args, " "), code, want, stderr)
	}
	return stdout
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// delivered are the messages of an answer to a get.
type delivered struct {
	Messages []struct {
		ID            int64
		Content       string
		Receipt       string
		DeliveryCount int
	}
}

func (s *testServer) get(t *testing.T, query string) (got delivered) {
	t.Helper()
	text := s.call(t, http.MethodGet, "http://"+s.rest+"/20210201/queues/orders/messages?"+query, "", http.StatusOK)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// restored is a server on what the backup holds.
func restored(t *testing.T, backup string) *testServer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	succeeds(t, "restore", backup, "--data-dir", dir)
	return startServer(t, func(c *Config) { c.DataDir = dir; unthrottled(c) })
}

// TestBackupLife backs a running server up, restores it, and compares: leases
// and counts are there, receipts of before are dead, ids go on elsewhere.
func TestBackupLife(t *testing.T) {
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders"} })
	messages := "http://" + s.rest + "/20210201/queues/orders/messages"
	s.call(t, http.MethodPost, messages, `{"messages":[{"content":"leased"},{"content":"ready"}]}`, http.StatusOK)
	lease := s.get(t, "limit=1&visibilityInSeconds=40000").Messages[0]
	backup := filepath.Join(t.TempDir(), "backup")
	out := succeeds(t, "backup", backup, "--data-dir", s.dir)
	if !strings.Contains(out, "1 queue, 2 messages, recounted; as of ") || !strings.Contains(out, fmt.Sprintf("process %d goes on", os.Getpid())) {
		t.Error(out)
	}
	eventually(t, "the checkpoint stays", func() bool { return !exists(filepath.Join(s.dir, checkpointName)) })
	s.call(t, http.MethodPost, messages, `{"messages":[{"content":"late"}]}`, http.StatusOK)

	r := restored(t, backup)
	url := "http://" + r.rest + "/20210201/queues/orders/messages"
	r.call(t, http.MethodDelete, url+"/"+lease.Receipt, "", http.StatusNotFound)
	s.call(t, http.MethodDelete, messages+"/"+lease.Receipt, "", http.StatusNoContent)
	got := r.get(t, "limit=20&timeoutInSeconds=0").Messages
	if len(got) != 1 || got[0].Content != "ready" || got[0].DeliveryCount != 1 {
		t.Errorf("got %+v", got)
	}
	var put struct{ Messages []struct{ ID int64 } }
	if err := json.Unmarshal([]byte(r.call(t, http.MethodPost, url, `{"messages":[{"content":"new"}]}`, http.StatusOK)), &put); err != nil {
		t.Fatal(err)
	}
	if put.Messages[0].ID < 1<<32 {
		t.Errorf("the next message has the id %d", put.Messages[0].ID)
	}
	stats := r.call(t, http.MethodGet, "http://"+r.rest+"/20210201/queues/orders/stats", "", http.StatusOK)
	if !strings.Contains(stats, `"visibleMessages":1,"inFlightMessages":2`) {
		t.Error(stats)
	}
}

// TestBackupUnderLoad backs up while messages are published and deleted, and
// compares with what the clients know: what was published before is there unless
// a delete was begun, what was deleted before is gone, and nothing else is there.
func TestBackupUnderLoad(t *testing.T) {
	s := startServer(t, func(c *Config) {
		unthrottled(c)
		c.CreateQueue = []string{"orders"}
		c.MemtableBytes = 1 << 20 // so that the log changes meanwhile
	})
	url := "http://" + s.rest + "/20210201/queues/orders/messages"
	var mu sync.Mutex
	begun, published, deleting, deleted := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(m map[string]bool, content string) {
		mu.Lock()
		defer mu.Unlock()
		m[content] = true
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	filler := strings.Repeat("x", 5000)
	for p := range 4 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				content := fmt.Sprintf("%d-%d", p, n)
				note(begun, content)
				s.call(t, http.MethodPost, url, `{"messages":[{"content":"`+content+" "+filler+`"}]}`, http.StatusOK)
				note(published, content)
			}
		})
	}
	wg.Go(func() {
		for !stop.Load() {
			for _, m := range s.get(t, "limit=4&timeoutInSeconds=0&visibilityInSeconds=1").Messages {
				content, _, _ := strings.Cut(m.Content, " ")
				note(deleting, content)
				s.call(t, http.MethodDelete, url+"/"+m.Receipt, "", http.StatusNoContent)
				note(deleted, content)
			}
		}
	})
	enough := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(published) >= n && len(deleted) >= n/10 }
	}
	for i := range 2 {
		mu.Lock()
		n := len(published)
		mu.Unlock()
		eventually(t, "no load", enough(n+100))
		mu.Lock()
		before, gone := maps.Clone(published), maps.Clone(deleted)
		mu.Unlock()
		backup := filepath.Join(t.TempDir(), "backup")
		succeeds(t, "backup", backup, "--data-dir", s.dir)
		mu.Lock()
		ever, perhaps := maps.Clone(begun), maps.Clone(deleting)
		mu.Unlock()

		r := restored(t, backup)
		have := map[string]bool{}
		time.Sleep(1100 * time.Millisecond) // leases of the backup end
		for {
			got := r.get(t, "limit=20&timeoutInSeconds=0&visibilityInSeconds=600").Messages
			if len(got) == 0 {
				break
			}
			for _, m := range got {
				content, _, _ := strings.Cut(m.Content, " ")
				if have[content] || !ever[content] || gone[content] {
					t.Errorf("backup %d: %s is there twice, or was never published, or was deleted before", i, content)
				}
				have[content] = true
			}
		}
		for content := range before {
			if !have[content] && !perhaps[content] {
				t.Errorf("backup %d: %s was acknowledged before and is not there", i, content)
			}
		}
		t.Logf("backup %d: %d published and %d deleted before, %d restored", i, len(before), len(gone), len(have))
	}
	stop.Store(true)
	wg.Wait()
}

// TestCheckpointIsForTheOwner: who asks for one without the secret, from a
// browser or while another is made is refused; and a checkpoint goes with the
// connection of who asked.
func TestCheckpointIsForTheOwner(t *testing.T) {
	s := startServer(t, func(c *Config) {
		// What a server that was killed has left.
		if err := os.MkdirAll(filepath.Join(c.DataDir, checkpointName), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if exists(filepath.Join(s.dir, checkpointName)) {
		t.Error("an old checkpoint stays")
	}
	info, err := os.Stat(secretFile(s.dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v, %v", info, err)
	}
	text, err := os.ReadFile(secretFile(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Bearer " + strings.TrimSpace(string(text))
	ask := func(method string, header map[string]string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.admin+"/backup", nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for _, tt := range []struct {
		method string
		header map[string]string
		want   int
	}{
		{http.MethodPost, nil, http.StatusUnauthorized},
		{http.MethodPost, map[string]string{"Authorization": "Bearer "}, http.StatusUnauthorized},
		{http.MethodPost, map[string]string{"Authorization": bearer + "x"}, http.StatusUnauthorized},
		{http.MethodPost, map[string]string{"Authorization": bearer, "Origin": "http://" + s.admin}, http.StatusForbidden},
		{http.MethodPost, map[string]string{"Authorization": bearer, "Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{http.MethodGet, map[string]string{"Authorization": bearer}, http.StatusMethodNotAllowed},
	} {
		resp := ask(tt.method, tt.header)
		resp.Body.Close()
		if resp.StatusCode != tt.want || exists(filepath.Join(s.dir, checkpointName)) {
			t.Errorf("%s %v: %s", tt.method, tt.header, resp.Status)
		}
	}

	resp := ask(http.MethodPost, map[string]string{"Authorization": bearer})
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != `{"checkpoint":"checkpoint"}`+"\n" {
		t.Fatalf("%s %q, %v", resp.Status, line, err)
	}
	if !exists(filepath.Join(s.dir, checkpointName, "OPTIONS-000003")) {
		t.Error("no checkpoint is there")
	}
	refused(t, "another backup is being made; wait for its end (409 Conflict)", "backup", filepath.Join(t.TempDir(), "b"), "--data-dir", s.dir)
	resp.Body.Close()
	eventually(t, "the checkpoint stays", func() bool { return !exists(filepath.Join(s.dir, checkpointName)) })
	eventually(t, "no second backup", func() bool {
		code, _, _ := command(t, "backup", filepath.Join(t.TempDir(), "b"), "--data-dir", s.dir)
		return code == 0
	})
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if exists(secretFile(s.dir)) {
		t.Error("the secret stays")
	}
}

// TestStopDuringBackup: a stop waits for a backup no longer than for anything
// else, and leaves nothing behind.
func TestStopDuringBackup(t *testing.T) {
	s := startServer(t, func(c *Config) { c.ShutdownTimeout = 50 * time.Millisecond })
	end, err := askCheckpoint(t.Context(), s.dir, inUse{s.dir, "this process"})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(s.dir, checkpointName)) {
		t.Error("the checkpoint stays")
	}
}

// TestBackupRefusals: one sentence each.
func TestBackupRefusals(t *testing.T) {
	s := startServer(t, nil)
	at := t.TempDir()
	target := filepath.Join(at, "target")
	refused(t, "holds no store", "backup", target, "--data-dir", filepath.Join(at, "none"))
	refused(t, "lies in the data directory, and would be lost with it", "backup", filepath.Join(s.dir, "b"), "--data-dir", s.dir)
	refused(t, "is not a backup: it has no backup.json", "restore", filepath.Join(at, "none"), "--data-dir", filepath.Join(at, "new"))
	if exists(filepath.Join(at, "new")) || exists(filepath.Join(at, "none")) {
		t.Error("a folder was made")
	}
	succeeds(t, "backup", target, "--data-dir", s.dir)
	refused(t, "target is not empty: it holds ", "backup", target, "--data-dir", s.dir)
	refused(t, fmt.Sprintf("is in use by process %d", os.Getpid()), "restore", target, "--data-dir", s.dir)
	refused(t, fmt.Sprintf("is in use by process %d, and what changes cannot be counted", os.Getpid()), "verify", "--data-dir", s.dir)
	if err := os.Remove(filepath.Join(s.dir, "addresses.json")); err != nil {
		t.Fatal(err)
	}
	refused(t, "which is not ready to make a backup", "backup", filepath.Join(at, "b"), "--data-dir", s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "addresses.json"), nil, 0o600); err != nil {
		t.Fatal(err) // for the stop
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	refused(t, "is not empty: it holds store", "restore", target, "--data-dir", s.dir)
	before := hashes(t, filepath.Join(target, "store"))
	refused(t, "is a backup; make a data directory of it by queued restore", "serve", "--data-dir", target)
	if diff := cmp.Diff(before, hashes(t, filepath.Join(target, "store"))); diff != "" {
		t.Error(diff)
	}

	// Damage is named.
	if err := os.WriteFile(filepath.Join(target, "store", "OPTIONS-000003"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "it is damaged", "verify", target)
	refused(t, "it is damaged", "restore", target, "--data-dir", filepath.Join(at, "new"))
	refused(t, "holds a restore that was not finished", "serve", "--data-dir", filepath.Join(at, "new"))
}

// TestInterruptedRestore: no server starts on half a store, and a second
// restore makes it whole.
func TestInterruptedRestore(t *testing.T) {
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders"} })
	backup := filepath.Join(t.TempDir(), "backup")
	succeeds(t, "backup", backup, "--data-dir", s.dir)
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, store.Restoring, "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve"}, {"verify"}, {"backup", filepath.Join(t.TempDir(), "b")}} {
		refused(t, "holds a restore that was not finished; run queued restore again, or remove store.restoring there", append(args, "--data-dir", dir)...)
	}
	succeeds(t, "restore", backup, "--data-dir", dir)
	if out := succeeds(t, "verify", "--data-dir", dir); !strings.HasSuffix(out, "everything is in order\n") || exists(filepath.Join(dir, store.Restoring)) {
		t.Error(out)
	}
}

// hashes is every file below dir.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(info.Mode(), info.ModTime())
		if !e.IsDir() {
			text, err := os.ReadFile(path)
			out[path] += fmt.Sprintf(" %x", sha256.Sum256(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// spoil has a store say of its lane 1 what is not so.
func spoil(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	var lanes []store.Lane
	if err := s.Lanes(func(l store.Lane) error {
		l.Fresh++
		l.Bytes += 7
		lanes = append(lanes, l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(&store.ChangeSet{State: l.State, Lanes: lanes}); err != nil {
		t.Fatal(err)
	}
}

// TestVerify: the table, the differences, the exit code; and no octet of the
// folder changes.
func TestVerify(t *testing.T) {
	s := startServer(t, func(c *Config) { c.CreateQueue = []string{"orders", "empty"} })
	url := "http://" + s.rest + "/20210201/queues/orders/messages"
	s.call(t, http.MethodPost, url, `{"messages":[{"content":"one"},{"content":"two"},{"content":"later","delayInSeconds":60}]}`, http.StatusOK)
	s.get(t, "limit=1")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	before := hashes(t, s.dir)
	out := succeeds(t, "verify", "--data-dir", s.dir)
	lines := strings.Split(out, "\n")
	want := []string{
		"QUEUE   CHANNEL  VISIBLE  IN FLIGHT  DELAYED  DEAD  BYTES STORED  BYTES COUNTED",
		"orders  -        1        1          1        0     11            11",
		"empty   -        0        0          0        0     0             0",
		"total            1        1          1        0     11            11",
		"",
	}
	if diff := cmp.Diff(want, lines[:5]); diff != "" || !strings.HasPrefix(lines[5], "format 2, generation 0, position ") || lines[6] != "everything is in order" {
		t.Errorf("%s\n%s", diff, out)
	}
	if diff := cmp.Diff(before, hashes(t, s.dir)); diff != "" {
		t.Errorf("the folder has changed:\n%s", diff)
	}

	spoil(t, s.dir)
	before = hashes(t, s.dir)
	out = refused(t, "is not in order: 2 differences", "verify", "--data-dir", s.dir)
	for _, want := range []string{
		"orders  -        1 (counted 2)  1          1        0     11            18",
		`c queue 1 group 0 dead false channel "": lane 1 says 2 fresh, and its rows come to 1`,
		`c queue 1 group 0 dead false channel "": lane 1 says 18 octets, and its rows come to 11`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	out = refused(t, "is not in order: 2 differences", "verify", "--data-dir", s.dir, "--json")
	var found finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Differences) != 2 || found.Total.Counted.Visible != 2 || found.Total.Stored.Visible != 1 || found.Rows[0].Queue != "orders" || found.Now.IsZero() {
		t.Errorf("%+v", found)
	}
	if diff := cmp.Diff(before, hashes(t, s.dir)); diff != "" {
		t.Errorf("the folder has changed:\n%s", diff)
	}

	// A backup of such a store is made, and called what it is.
	backup := filepath.Join(t.TempDir(), "backup")
	refused(t, "the backup is whole, but the store is not in order: 2 differences", "backup", backup, "--data-dir", s.dir)
	before = hashes(t, backup)
	refused(t, "is not in order: 2 differences", "verify", backup)
	if diff := cmp.Diff(before, hashes(t, backup)); diff != "" {
		t.Errorf("the backup has changed:\n%s", diff)
	}
	if out := succeeds(t, "backup", backup+"2", "--data-dir", s.dir, "--recount=false"); !strings.Contains(out, "not recounted") {
		t.Error(out)
	}
}

// TestVerifyTable: dead letters stand beside their channel, names that would
// spoil the table are quoted, and what has no queue is told.
func TestVerifyTable(t *testing.T) {
	lane := func(id store.LaneID, q store.QueueNumber, channel string, dead bool) store.Lane {
		return store.Lane{ID: id, Key: store.LaneKey{Queue: q, Channel: channel, Dead: dead}, Fresh: 1, Returned: 1, InFlight: 1, Bytes: 10}
	}
	r := &store.Report{Format: 1, State: store.State{Position: 9, Now: queue.Instant(1_767_225_600_000)}, Removals: 1, More: 2,
		Differences: []store.Difference{{Text: "all is wrong"}}}
	for _, l := range []store.LaneReport{
		{Queue: "orders", Counted: lane(1, 1, "", false)}, {Queue: "orders", Counted: lane(2, 1, "a\tb", false)},
		{Queue: "orders", Counted: lane(3, 1, "a\tb", true)}, {Counted: lane(4, 2, "eu", true)},
	} {
		l.Have = l.Counted
		r.Lanes = append(r.Lanes, l)
	}
	var b strings.Builder
	if err := findingOf("there", r).write(&b); err != nil {
		t.Fatal(err)
	}
	want := `QUEUE                   CHANNEL  VISIBLE  IN FLIGHT  DELAYED  DEAD  BYTES STORED  BYTES COUNTED
orders                  -        2        1          0        0     10            10
orders                  "a\tb"   2        1          0        3     20            20
queue 2, which is gone  eu       0        0          0        3     10            10
total                            4        2          0        6     40            40

format 1, generation 0, position 9, as of 2026-01-01T00:00:00.000Z; 1 lane yet to be removed after a purge
store: all is wrong
and 2 more
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestVerifyTableOfGroups: where a queue has consumer groups, a column names
// them.
func TestVerifyTableOfGroups(t *testing.T) {
	group := func(n uint32, name string) store.Group {
		return store.Group{ConsumerGroup: queue.ConsumerGroup{ID: queue.ID(name), Number: n, DisplayName: name, State: queue.Active}}
	}
	q := store.Queue{Number: 1, Groups: []store.Group{group(0, "primary"), group(2, "audit")}}
	q.DisplayName, q.State = "orders", queue.Active
	r := &store.Report{Format: 2, Queues: []store.Queue{q}}
	for i, n := range []uint32{0, 2, 3, store.UnroutedGroup} {
		l := store.Lane{ID: store.LaneID(i + 1), Key: store.LaneKey{Queue: 1, Group: n}, Fresh: 1, Bytes: 5}
		r.Lanes = append(r.Lanes, store.LaneReport{Queue: "orders", Counted: l, Have: l})
	}
	var b strings.Builder
	if err := findingOf("there", r).write(&b); err != nil {
		t.Fatal(err)
	}
	want := `QUEUE   CONSUMER GROUP          CHANNEL  VISIBLE  IN FLIGHT  DELAYED  DEAD  BYTES STORED  BYTES COUNTED
orders  primary                 -        1        0          0        0     5             5
orders  audit                   -        1        0          0        0     5             5
orders  group 3, which is gone  -        1        0          0        0     5             5
orders  _unrouted               -        1        0          0        0     5             5
total                                    4        0          0        0     20            20
`
	if got, _, _ := strings.Cut(b.String(), "\n\n"); got+"\n" != want {
		t.Error(cmp.Diff(want, got+"\n"))
	}
}

func unthrottled(c *Config) {
	c.LimitsProfile, c.Limits = "unthrottled", limits.Unthrottled()
}
