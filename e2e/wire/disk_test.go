package wire

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/faces"
	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// noRoom checks a refusal for want of space.
func noRoom(t *testing.T, a *rest.Answer, key string) {
	t.Helper()
	proper(t, "no room", a)
	if message := a.Is(t, 507, "InsufficientStorage"); !strings.Contains(message, key) {
		t.Errorf("%q does not name %s", message, key)
	}
	if a.Header.Get("retry-after") == "" {
		t.Error("no retry-after")
	}
}

// TestFloors: below the first floor of free space publishes are refused, below
// the second one new leases too; all that makes room goes on. The floors are
// raised above what the disk has.
func TestFloors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := server.StartWith(t, server.Options{Dir: dir, Args: []string{"--create-queue", "orders", "--create-queue", "other"}})
	c := rest.Dial(t, s.REST)
	for range 4 {
		c.Put(t, "orders", "x")
	}
	if free, ok := s.Metric("queued_disk_free_bytes"); !ok || free <= 0 {
		t.Errorf("queued_disk_free_bytes is %v", free)
	}
	s.Stop()

	const huge = "1000TiB"
	s = server.StartWith(t, server.Options{Dir: dir, Args: []string{"--disk-floor-publish-bytes", huge}})
	c = rest.Dial(t, s.REST)
	noRoom(t, c.Must(t, 507, "POST", "/queues/orders/messages", `{"messages":[{"content":"y"}]}`), "disk-floor-publish-bytes")
	m := c.Get(t, "orders", "limit=2&timeoutInSeconds=0")
	if len(m) != 2 {
		t.Fatalf("%d messages", len(m))
	}
	c.Update(t, 200, "orders", m[0].Receipt, 60)
	c.Update(t, 200, "orders", m[1].Receipt, 60)
	s.Stop()

	s = server.StartWith(t, server.Options{Dir: dir, Args: []string{"--disk-floor-publish-bytes", huge, "--disk-floor-lease-bytes", huge}})
	c = rest.Dial(t, s.REST)
	noRoom(t, c.Must(t, 507, "GET", "/queues/orders/messages?timeoutInSeconds=0", ""), "disk-floor-lease-bytes")
	noRoom(t, c.Must(t, 507, "POST", "/queues/orders/messages", `{"messages":[{"content":"y"}]}`), "disk-floor-publish-bytes")
	c.Update(t, 200, "orders", m[0].Receipt, 90)
	c.Delete(t, 204, "orders", m[1].Receipt)
	c.Must(t, 202, "PUT", "/queues/orders", `{"visibilityInSeconds":90}`)
	if n := c.Stats(t, "orders").Queue; n.Visible != 2 || n.InFlight != 1 || n.Bytes != 3 {
		t.Errorf("%+v", n)
	}
	c.Must(t, 202, "POST", "/queues/orders/actions/purge", `{"purgeType":"BOTH"}`)
	c.Must(t, 202, "DELETE", "/queues/other", "")
	if err := holds(t, c, "orders", rest.Stats{}); err != nil {
		t.Error(err)
	}
	s.Stop()

	s = server.StartWith(t, server.Options{Dir: dir})
	rest.Dial(t, s.REST).Put(t, "orders", "z")
}

// TestFullDisk is field case FC-15 on small file systems of its own: over REST,
// and what is refused over the other faces too.
func TestFullDisk(t *testing.T) {
	for name, disk := range smallDisks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fullDisk(t, disk(t, diskSize))
		})
	}
}

const diskSize = 384 << 20

func fullDisk(t *testing.T, dir string) {
	s := server.StartWith(t, server.Options{Dir: filepath.Join(dir, "data"), Args: []string{
		"--create-queue", "fill,timeout=0", "--create-queue", "purged", "--create-queue", "others", "--limits-profile", "unthrottled",
		"--disk-floor-publish-bytes", "160MiB", "--disk-floor-lease-bytes", "64MiB",
		"--ballast-bytes", "16MiB", "--memtable-bytes", "8MiB",
	}})
	c := rest.Dial(t, s.REST)
	accepted := map[int64]string{} // contents by id
	refused := map[string]bool{}
	// put publishes one message of 150 KiB and reports whether it was taken.
	put := func(queue, name string) bool {
		t.Helper()
		content := name + " " + noise(150<<10)
		a := c.Must(t, 0, "POST", "/queues/"+queue+"/messages", `{"messages":[{"content":"`+content+`"}]}`)
		if a.Status == 200 {
			accepted[rest.IDs(t, a)[0]] = content
			return true
		}
		noRoom(t, a, "disk-floor-publish-bytes")
		refused[content] = true
		return false
	}
	// fill publishes until that is refused; before it is the alert rises.
	fill := func(round int) {
		t.Helper()
		alert := 0.0
		for i := 0; put("fill", fmt.Sprintf("%d/%d", round, i)); i++ {
			if i%10 == 0 {
				alert, _ = s.Metric("queued_disk_alert")
			}
			if i > 10_000 {
				t.Fatal("it never runs full")
			}
		}
		if alert < 1 {
			t.Error("no alert before the first refusal")
		}
		if free, ok := s.Metric("queued_disk_free_bytes"); !ok || free > 240<<20 {
			t.Errorf("refused with %v octets free", free)
		}
	}
	for i := range 10 {
		put("purged", fmt.Sprint("purged", i))
	}
	fill(1)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		put("fill", fmt.Sprint("while full ", time.Now().UnixNano())) // some may fit again
	}
	taken := int64(0)
	for _, face := range faces.All {
		// The disk may have some room again; small messages do not fill it.
		for try := 0; ; try++ {
			client := face.Dial(s)
			_, err := client.Publish("others", "", faces.Text("refuse me"))
			client.Drop()
			if err == nil && try < 500 {
				taken++
				time.Sleep(10 * time.Millisecond)
				put("fill", fmt.Sprint(face.Name, " ", try))
				continue
			}
			if code := faces.Code(err); code != "InsufficientStorage" {
				t.Errorf("%s, while full: %v", face.Name, err)
			}
			break
		}
		if n := c.Stats(t, "others").Queue.Visible; n != taken {
			t.Errorf("%s: %d messages are there, %d were accepted", face.Name, n, taken)
		}
	}

	// While it is full all that makes room works.
	check := c.Stats(t, "fill").Queue
	deleted := 0
	for deleted < int(check.Visible)/2 {
		m := c.Get(t, "fill", "limit=10&visibilityInSeconds=600")
		if len(m) == 0 {
			t.Fatal("nothing comes while the disk is full")
		}
		c.Update(t, 200, "fill", m[0].Receipt, 700)
		for _, m := range m {
			if accepted[m.ID] != m.Content {
				t.Errorf("message %d is not what was accepted", m.ID)
			}
			c.Delete(t, 204, "fill", m.Receipt)
			delete(accepted, m.ID)
			deleted++
		}
	}
	c.Must(t, 202, "POST", "/queues/purged/actions/purge", `{"purgeType":"NORMAL"}`)
	c.Must(t, 202, "PUT", "/queues/fill", `{"visibilityInSeconds":60}`)
	for id, content := range accepted {
		if strings.HasPrefix(content, "purged") {
			delete(accepted, id)
		}
	}

	// That room comes back by itself.
	began := time.Now()
	for !put("fill", "again") {
		if time.Since(began) > 30*time.Second {
			t.Fatal("publishing does not resume within 30 s")
		}
		time.Sleep(250 * time.Millisecond)
	}
	t.Logf("publishing resumed after %v", time.Since(began).Round(time.Millisecond))

	// Full again, and killed.
	fill(2)
	s.Kill()
	s.Restart()
	c = rest.Dial(t, s.REST)
	if n := c.Stats(t, "fill").Queue; n.Visible != int64(len(accepted)) {
		t.Errorf("%d messages are visible, %d were accepted", n.Visible, len(accepted))
	}
	for {
		m := c.Get(t, "fill", "limit=10&visibilityInSeconds=600")
		if len(m) == 0 {
			break
		}
		for _, m := range m {
			if refused[m.Content] {
				t.Errorf("message %d was refused", m.ID)
			}
			if accepted[m.ID] != m.Content || m.DeliveryCount != 1 {
				t.Errorf("message %d (delivery %d) is not what was accepted", m.ID, m.DeliveryCount)
			}
			delete(accepted, m.ID)
			c.Delete(t, 204, "fill", m.Receipt)
		}
	}
	if len(accepted) != 0 {
		t.Errorf("%d accepted messages are lost", len(accepted))
	}
}

// noise is text that no compression makes smaller by much.
func noise(n int) string {
	b := make([]byte, n*3/4)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}
