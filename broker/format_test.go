package broker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/store"
	"github.com/queued-mq/queued/store/testdisk"
)

// A store of each format that was ever released is kept, and what a consumer
// must get out of it. They must open for ever: whoever changes the layout adds
// an archive of the new format and never touches an old one or its list.
//
//	go test ./broker -run TestFormat -archive
//
// makes those of the format of today, if there are none.
var archiveFlag = flag.Bool("archive", false, "write the archive of this format and its list, unless they are there")

const archives = "../store/testdata"

// writeNew writes a file unless it is there.
func writeNew(t *testing.T, path string, text []byte) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFormatArchive makes a store with a row of every kind, as a crash in the
// middle of removals leaves it.
func TestFormatArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := archived(t)
		looksFull(t, disk, "data")
		if !*archiveFlag {
			return
		}
		text, err := disk.Pack("data")
		if err != nil {
			t.Fatal(err)
		}
		writeNew(t, filepath.Join(archives, fmt.Sprintf("format-%d.tar.gz", store.Format)), text)
	})
}

// archived is a disk with such a store in "data".
func archived(t *testing.T) *testdisk.Disk {
	disk := testdisk.New()
	var mu sync.Mutex
	var crashes []*testdisk.Disk
	watching := false
	l := limits.Unthrottled()
	x := &bench{t: t, fs: disk, dir: "data", o: Options{Limits: &l, Checked: true}, so: store.Options{QuietScheduler: true, MemtableBytes: 1 << 20}}
	x.so.FS = disk.Watch(func(testdisk.Step) error {
		mu.Lock()
		defer mu.Unlock()
		if watching {
			crashes = append(crashes, disk.Crash(0, nil))
		}
		return nil
	})
	x.open()
	defer x.shut()
	publish := func(r PublishRequest) {
		t.Helper()
		if _, err := x.b.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	message := func(channel, body string) queue.NewMessage {
		return queue.NewMessage{Message: queue.Message{Body: []byte(body)}, Channel: channel}
	}
	// get takes what is there of a channel, one call for each message.
	get := func(id queue.ID, n int, dead bool, visibility time.Duration) {
		t.Helper()
		if got := x.get(ReceiveRequest{Queue: id, Limit: n, Dead: dead, Visibility: visibility}); len(got) != n {
			t.Fatalf("got %d messages, want %d", len(got), n)
		}
	}
	const long = 10 * time.Hour

	orders := x.queue("orders", func(q *queue.Queue) {
		q.DeadLetterDeliveryCount = 2
		q.FreeformTags = map[string]string{"team": "a"}
	})
	x.put(orders, "", "dies", "dies, and is in flight there")
	for range 2 {
		get(orders, 2, false, time.Second)
		time.Sleep(2 * time.Second)
	}
	get(orders, 1, true, long)
	x.put(orders, "", "returned", "in flight", "deleted")
	got := x.get(ReceiveRequest{Queue: orders, Limit: 3, Visibility: long})
	if len(got) != 3 {
		t.Fatalf("got %d", len(got))
	}
	for _, m := range got {
		switch string(m.Body) {
		case "deleted":
			if errs, err := x.b.Delete(t.Context(), orders, queue.AnyGroup, []queue.Receipt{m.Receipt}); err != nil || errs[0] != nil {
				t.Fatal(err, errs)
			}
		case "returned":
			if r, err := x.b.Update(t.Context(), orders, queue.AnyGroup, []VisibilityUpdate{{Receipt: m.Receipt}}); err != nil || r[0].Err != nil {
				t.Fatal(err, r)
			}
		}
	}
	x.put(orders, "", "fresh", "")

	// What is above is in tables, what is below in the log.
	x.close()
	x.open()

	rich := message("eu", "\x00\xff octets")
	rich.ContentType = "application/octet-stream"
	rich.Properties = []queue.Property{{Name: "a", Value: "1"}, {Name: "b", Value: "é"}}
	rich.Visibility = 90 * time.Second
	short, delayed, both := message("eu", "dies early"), message("", "delayed"), message("us/west", "delayed, and dies before others")
	short.Retention, delayed.Delay = 12*time.Hour, time.Hour
	both.Delay, both.Retention = 2*time.Hour, 20*time.Hour
	x.put(orders, "eu", "in order")
	publish(PublishRequest{Queue: orders, Messages: []queue.NewMessage{rich, short, delayed, both}, RetryToken: "token-1"})

	plain := x.queue("without dead letters", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 0 })
	x.put(plain, "", "one", "two")
	get(plain, 1, false, time.Second)

	grouped := x.queue("with consumer groups", nil)
	groups := x.groups(grouped, "", `:kind = "order"`, `:kind`)
	for _, kind := range []string{"order", "order", "bill", ""} {
		m := message("eu", "a "+kind)
		if kind != "" {
			m.Properties = []queue.Property{{Name: "kind", Value: kind}}
		}
		publish(PublishRequest{Queue: grouped, Messages: []queue.NewMessage{m}})
	}
	if got := x.get(ReceiveRequest{Queue: grouped, Group: groups[1], Limit: 1, Visibility: long}); len(got) != 1 {
		t.Fatalf("got %d", len(got))
	}

	leaving, purged := x.queue("deleted", nil), x.queue("purged", nil)
	for _, id := range []queue.ID{leaving, purged} {
		x.put(id, "", "never seen", "never seen")
		m := message("later", "never seen")
		m.Delay, m.Retention = time.Hour, 2*time.Hour
		publish(PublishRequest{Queue: id, Messages: []queue.NewMessage{m}})
		get(id, 1, false, long)
	}
	gone := x.queue("forgotten", func(q *queue.Queue) { q.State = queue.Deleted })
	work := func(id string, status queue.WorkStatus, percent float32, at queue.Instant) queue.WorkRequest {
		return queue.WorkRequest{
			ID: "ocid1.queueworkrequest.oc1.local." + id, Operation: queue.PurgeQueue, Status: status, CompartmentID: "ocid1.tenancy.oc1..local",
			Resources: []queue.WorkResource{{EntityType: "queue", Action: queue.ActionInProgress, Identifier: string(purged)}},
			Percent:   percent, AcceptedAt: at, StartedAt: at, Logs: []queue.WorkLog{{Message: "begun", At: at}},
		}
	}
	mu.Lock()
	watching = true
	mu.Unlock()
	if err := x.b.Admin(context.Background(), func(tx *Tx) error {
		q, _ := tx.Queue(leaving)
		q.State = queue.Deleted
		tx.PutQueue(q)
		tx.DropQueue(gone)
		tx.Purge(purged, "", queue.PurgeBoth, nil)
		tx.Purge(grouped, groups[2], queue.PurgeBoth, nil)
		tx.PutWorkRequest(work("done", queue.Succeeded, 100, tx.Now()-1))
		tx.PutWorkRequest(work("under-way", queue.InProgress, 50, tx.Now()))
		tx.PutRetryToken("create", "token-2", []byte("answer"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	mu.Lock()
	watching = false
	mu.Unlock()
	for _, c := range crashes {
		s, err := store.Open("data", store.Options{FS: c, QuietScheduler: true})
		if err != nil {
			t.Fatal(err)
		}
		load, err := s.Load()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		if len(load.Removals) == 5 {
			return c
		}
	}
	t.Fatalf("of %d crashes none left the removals undone", len(crashes))
	return nil
}

// looksFull fails unless every kind of row is in the store, and all in order.
func looksFull(t *testing.T, disk *testdisk.Disk, dir string) {
	t.Helper()
	s, err := store.OpenReadOnly(dir, store.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Verify()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Differences {
		t.Error(d)
	}
	var sum store.Lane
	var dead, deadInFlight, channels int64
	for _, l := range r.Lanes {
		sum.Fresh += l.Have.Fresh
		if !l.Have.Key.Dead {
			sum.Returned += l.Have.Returned
		}
		sum.InFlight += l.Have.InFlight
		sum.Delayed += l.Have.Delayed
		sum.Indexed += l.Have.Indexed
		if l.Have.Key.Dead {
			dead++
			deadInFlight += l.Have.InFlight
		}
		if l.Have.Key.Channel != "" {
			channels++
		}
	}
	load, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	deleted := slices.ContainsFunc(load.Queues, func(q store.Queue) bool { return q.State == queue.Deleted })
	if sum.Fresh == 0 || sum.Returned == 0 || sum.InFlight == 0 || sum.Delayed == 0 || sum.Indexed == 0 ||
		dead == 0 || deadInFlight == 0 || channels < 2 || r.Removals == 0 || !deleted {
		t.Errorf("%+v, %d dead lanes, %d in flight there, %d channels, %d removals, a deleted queue: %v", sum, dead, deadInFlight, channels, r.Removals, deleted)
	}
	works := 0
	for _, err := range s.WorkRequests("") {
		if works++; err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := s.RetryTokens(queue.Instant(1<<50), 10)
	if err != nil || len(tokens) != 2 || works != 2 {
		t.Errorf("%d work requests, %d tokens, %v", works, len(tokens), err)
	}
}

// TestFormats opens the archive of every format, on a copy, with the code of
// today, and drains it: what comes out is what was put in then. So it is when
// the store was backed up and restored before, but for what the restore skips.
func TestFormats(t *testing.T) {
	for format := 1; format <= store.Format; format++ {
		for _, restored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d restored %v", format, restored), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFormat(t, format, restored) })
			})
		}
	}
}

func testFormat(t *testing.T, format int, restored bool) {
	time.Sleep(time.Minute) // it was made at the beginning of a bubble
	disk := testdisk.New()
	if err := disk.Unpack(filepath.Join(archives, fmt.Sprintf("format-%d.tar.gz", format)), "data"); err != nil {
		t.Fatal(err)
	}
	if format == store.Format { // an older one must be upgraded first
		looksFull(t, disk, "data")
	}
	if restored {
		o := store.Options{FS: disk, QuietScheduler: true, MemtableBytes: 1 << 20}
		if _, err := store.CopyBackup("data", "backup", true, "", o); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Restore("backup", "restored", time.Now(), o); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(disk.RemoveAll("data"), disk.Rename("restored/store", "data")); err != nil {
			t.Fatal(err)
		}
	}
	got := []byte(strings.Join(drained(t, disk), "\n") + "\n")
	list := filepath.Join(archives, fmt.Sprintf("format-%d.drained", format))
	if *archiveFlag && format == store.Format {
		writeNew(t, list, got)
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("what comes out is not what was put in (-want +got):\n%s", diff)
	}
}

// places are where a queue has messages: each group, and its dead letters.
func places(x *bench, id queue.ID) (out []struct {
	group queue.ID
	dead  bool
}) {
	groups := []queue.ID{""}
	for _, g := range x.b.Groups() {
		if g.QueueID == id && !g.Primary() {
			groups = append(groups, g.ID)
		}
	}
	for _, g := range groups {
		for _, dead := range []bool{false, true} {
			out = append(out, struct {
				group queue.ID
				dead  bool
			}{g, dead})
		}
	}
	return out
}

// drained takes everything out of the store in "data": what is visible, and
// what leases and delays hide.
func drained(t *testing.T, disk *testdisk.Disk) (out []string) {
	x := newBench(t, disk)
	defer x.shut()
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	queues := func(what string) {
		for _, q := range x.b.Queues() {
			say("%s: queue %q %s: %s", what, q.DisplayName, q.State, x.stats(q.ID))
			for _, from := range places(x, q.ID) {
				if from.group != "" && !from.dead {
					m, d := x.b.Stats(q.ID, from.group, nil)
					say("%s: group %s: %+v, dead %+v", what, from.group, m, d)
				}
			}
		}
	}
	time.Sleep(time.Second) // what has lapsed meanwhile is back
	queues("opened")
	for _, after := range []time.Duration{0, 11 * time.Hour} {
		time.Sleep(after)
		for _, q := range x.b.Queues() {
			if q.State != queue.Active {
				continue
			}
			for _, from := range places(x, q.ID) {
				var lines []string
				group, dead := from.group, from.dead
				name := q.DisplayName
				if group != "" {
					name += " / " + string(group)
				}
				for {
					got := x.get(ReceiveRequest{Queue: q.ID, Group: group, Dead: dead, Visibility: time.Hour})
					if len(got) == 0 {
						break
					}
					for _, m := range got {
						line := fmt.Sprintf("after %v: %q dead %v: id %d channel %q delivery %d body %q type %q properties %q created %s expires %s",
							after, name, dead, m.ID, m.Channel, m.DeliveryCount, m.Body, m.ContentType, m.Properties, m.CreatedAt, m.ExpireAfter)
						if m.DeadLetter != nil {
							line += fmt.Sprintf(" dead letter %+v", *m.DeadLetter)
						}
						lines = append(lines, line)
						if errs, err := x.b.Delete(t.Context(), q.ID, queue.AnyGroup, []queue.Receipt{m.Receipt}); err != nil || errs[0] != nil {
							t.Fatal(err, errs)
						}
					}
				}
				slices.Sort(lines) // channels come in any order
				out = append(out, lines...)
			}
		}
	}
	queues("drained")
	for w, err := range x.b.WorkRequests("") {
		if err != nil {
			t.Fatal(err)
		}
		say("work request %s %s %s %v%%, logs %v", w.ID, w.Operation, w.Status, w.Percent, w.Logs)
	}
	// What is made anew goes on as ever, in lanes and queues of high numbers too.
	again := x.queue("made anew", func(q *queue.Queue) { q.DeadLetterDeliveryCount = 1 })
	for i, q := range x.b.Queues() {
		if q.State != queue.Active {
			continue
		}
		x.put(q.ID, "eu", fmt.Sprint("new ", i))
		if got := x.get(ReceiveRequest{Queue: q.ID, Visibility: time.Second}); len(got) != 1 || string(got[0].Body) != fmt.Sprint("new ", i) {
			t.Errorf("%s gives %+v", q.DisplayName, got)
		}
	}
	time.Sleep(2 * time.Second)
	x.want(again, "visible 0 in flight 0 delayed 0 bytes 0, dead visible 1 in flight 0 bytes 5")
	// A retry token of then gives the answer of then.
	if err := x.b.Admin(t.Context(), func(tx *Tx) error {
		value, found := tx.RetryToken("create", "token-2")
		say("retry token: %q %v", value, found)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	r, err := x.s.Verify()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Differences {
		t.Error(d)
	}
	if r.Removals > 0 {
		t.Errorf("%d removals are left", r.Removals)
	}
	return out
}
