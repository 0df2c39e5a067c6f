package wire

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queued-mq/queued/e2e/rest"
	"github.com/queued-mq/queued/e2e/server"
)

// visible are the counters of so many messages of one octet each.
func visible(n int64) rest.Stats { return rest.Stats{Queue: rest.Counters{Visible: n, Bytes: n}} }

// TestLateUpdate is field case FC-01: an extension that comes too late does not
// hide a free message.
func TestLateUpdate(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders-north,visibility=30,dlq=5")
	c := rest.Dial(t, s.REST)
	const q = "orders-north"
	c.Put(t, q, "7")
	first := c.Get(t, q, "visibilityInSeconds=2")[0]
	if n := c.Stats(t, q).Queue; n.InFlight != 1 || n.Visible != 0 {
		t.Errorf("leased: %+v", n)
	}
	time.Sleep(time.Until(first.VisibleAfter.Add(2 * time.Second)))

	a := c.Update(t, 404, q, first.Receipt, 60)
	proper(t, "late update", a)
	a.Is(t, 404, "NotAuthorizedOrNotFound")
	if err := holds(t, c, q, visible(1)); err != nil {
		t.Errorf("after the late update: %v", err)
	}
	m := c.Get(t, q, "timeoutInSeconds=0")
	if len(m) != 1 || m[0].DeliveryCount != 2 || m[0].Receipt == first.Receipt {
		t.Fatalf("got %+v", m)
	}
	second := m[0]
	for _, seconds := range []int{0, 60} { // never again
		c.Update(t, 404, q, first.Receipt, seconds)
	}
	c.Delete(t, 404, q, first.Receipt)
	if n := c.Stats(t, q).Queue; n.InFlight != 1 || n.Visible != 0 {
		t.Errorf("the old receipt changed something: %+v", n)
	}
	c.Update(t, 200, q, second.Receipt, 45)
	c.Delete(t, 204, q, second.Receipt)
	if err := holds(t, c, q, rest.Stats{}); err != nil {
		t.Error(err)
	}
	// Gone, and the receipts are genuine: a client may try again.
	c.Delete(t, 204, q, second.Receipt)
	c.Delete(t, 204, q, first.Receipt)
	c.Update(t, 404, q, second.Receipt, 1)
}

// TestLateDelete: a lapsed message that nobody has taken yet can still be
// deleted by its last receipt, and updated by none.
func TestLateDelete(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	c.Put(t, "orders", "a")
	m := c.Get(t, "orders", "visibilityInSeconds=1")[0]
	time.Sleep(time.Until(m.VisibleAfter.Add(500 * time.Millisecond)))
	c.Update(t, 404, "orders", m.Receipt, 10)
	c.Delete(t, 204, "orders", m.Receipt)
	if err := holds(t, c, "orders", rest.Stats{}); err != nil {
		t.Error(err)
	}
}

// TestPoison is field case FC-03: a message that kills every worker goes to the
// dead letter queue by itself, once, and a restart in the middle loses no
// count.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "xray-scan,visibility=2,dlq=3")
	id := rest.IDs(t, rest.Dial(t, s.REST).Must(t, 200, "POST", "/queues/xray-scan/messages",
		`{"messages":[{"content":"slide 40-B","metadata":{"channelId":"ward-3","customProperties":{"k":"v"}}}]}`))[0]

	for want := 1; want <= 3; want++ {
		if want == 3 {
			s.Kill()
			s.Restart()
		}
		worker := rest.Dial(t, s.REST)
		m := worker.Get(t, "xray-scan", "limit=1&timeoutInSeconds=10")
		worker.Reset()
		if len(m) != 1 || m[0].DeliveryCount != want || m[0].ID != id {
			t.Fatalf("delivery %d: got %+v", want, m)
		}
	}
	// Nobody asks for messages any more.
	c := rest.Dial(t, s.REST)
	dead := rest.Stats{DLQ: rest.Counters{Visible: 1, Bytes: int64(len("slide 40-Bkv"))}}
	eventually(t, 5*time.Second, func() error { return holds(t, c, "xray-scan", dead) })
	m := c.Get(t, "xray-scan_dlq", "timeoutInSeconds=0&limit=20&visibilityInSeconds=30")
	if len(m) != 1 {
		t.Fatalf("%d dead letters", len(m))
	}
	d := m[0]
	if d.ID != id || d.Content != "slide 40-B" || d.DeliveryCount != 4 || d.Metadata.ChannelID != "ward-3" || d.Metadata.CustomProperties["k"] != "v" {
		t.Errorf("dead letter %+v", d)
	}
	if l := d.DeadLetter; l == nil || l.Reason != "DELIVERY_COUNT_REACHED" || l.DeliveryCount != 3 || l.ChannelID != "ward-3" || time.Since(l.At) > time.Minute {
		t.Errorf("moved because %+v", l)
	}
	if left := time.Until(d.ExpireAfter); left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("it expires in %v; its retention starts anew", left)
	}
	// Once, also after a kill.
	s.Kill()
	s.Restart()
	c = rest.Dial(t, s.REST)
	if n := c.Stats(t, "xray-scan"); n.DLQ.InFlight != 1 || n.DLQ.Visible != 0 || n.Queue.Visible+n.Queue.InFlight != 0 {
		t.Errorf("after a kill: %+v", n)
	}
	// Its receipt is good through either name.
	c.Delete(t, 204, "xray-scan", d.Receipt)
	if err := holds(t, c, "xray-scan", rest.Stats{}); err != nil {
		t.Error(err)
	}
}

// TestShortLife is field case FC-07: a short-lived message expires on time
// behind a long-lived one, and one that is held when it expires is never
// delivered again.
func TestShortLife(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "price-ticks")
	c := rest.Dial(t, s.REST)
	const q = "price-ticks"
	published := time.Now()
	c.Must(t, 200, "POST", "/queues/"+q+"/messages",
		`{"messages":[{"content":"A","retentionInSeconds":3600},{"content":"BBBB","retentionInSeconds":10},{"content":"C","retentionInSeconds":3600}]}`)
	time.Sleep(time.Until(published.Add(9 * time.Second)))
	if n := c.Stats(t, q).Queue; n.Visible != 3 || n.Bytes != 6 {
		t.Errorf("before its time: %+v", n)
	}
	time.Sleep(time.Until(published.Add(12 * time.Second)))
	if err := holds(t, c, q, visible(2)); err != nil {
		t.Error(err)
	}
	m := c.Get(t, q, "limit=10&visibilityInSeconds=60&timeoutInSeconds=0")
	if len(m) != 2 || m[0].Content != "A" || m[1].Content != "C" {
		t.Errorf("got %+v", m)
	}

	published = time.Now()
	c.Must(t, 200, "POST", "/queues/"+q+"/messages", `{"messages":[{"content":"D","retentionInSeconds":10}]}`)
	held := c.Get(t, q, "visibilityInSeconds=15")
	if len(held) != 1 || held[0].Content != "D" {
		t.Fatalf("got %+v", held)
	}
	time.Sleep(time.Until(published.Add(12 * time.Second)))
	if err := holds(t, c, q, rest.Stats{Queue: rest.Counters{InFlight: 2, Bytes: 2}}); err != nil {
		t.Error(err)
	}
	c.Update(t, 404, q, held[0].Receipt, 60)
	c.Delete(t, 204, q, held[0].Receipt)
	time.Sleep(time.Until(held[0].VisibleAfter.Add(time.Second)))
	if m := c.Get(t, q, "timeoutInSeconds=0"); len(m) != 0 {
		t.Errorf("it came back: %+v", m)
	}
	if n := c.Stats(t, q).DLQ; n.Visible+n.InFlight != 0 {
		t.Errorf("expiry filled the dead letter queue: %+v", n)
	}
	if n, ok := s.Metric(`queued_messages_total{event="expired",queue="price-ticks"}`); !ok || n != 2 {
		t.Errorf("%v messages expired, want 2", n)
	}
}

// TestCounts is field case FC-17 for one group: counters after expiry and after
// a lost client, by themselves, and never below zero.
func TestCounts(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "sms-out", "--limits-profile", "unthrottled")
	c := rest.Dial(t, s.REST)
	const q = "sms-out"

	done := make(chan struct{})
	sampled := make(chan error, 1)
	watch := rest.Dial(t, s.REST) // closed before the restart
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			a, err := watch.Do("GET", "/queues/"+q+"/stats", "")
			if err != nil || strings.Contains(string(a.Body), "-") {
				sampled <- fmt.Errorf("%v %s", err, a.Body)
				return
			}
		}
	}()

	batch := func(c *rest.Conn, retention, n int) {
		entries := make([]string, 20)
		for i := range entries {
			entries[i] = fmt.Sprintf(`{"content":"x","retentionInSeconds":%d}`, retention)
		}
		for range n / len(entries) {
			c.Must(t, 200, "POST", "/queues/"+q+"/messages", `{"messages":[`+strings.Join(entries, ",")+`]}`)
		}
	}
	batch(c, 86400, 500)
	began := time.Now()
	var wg sync.WaitGroup
	for range 5 {
		c := rest.Dial(t, s.REST)
		wg.Go(func() { batch(c, 10, 200) })
	}
	wg.Wait()
	published := time.Now()
	n := c.Stats(t, q).Queue
	if time.Since(began) < 10*time.Second && n != visible(1500).Queue {
		t.Fatalf("after the publish: %+v", n)
	}
	lost := rest.Dial(t, s.REST)
	for range 5 {
		if n := len(lost.Get(t, q, "limit=20&visibilityInSeconds=3&timeoutInSeconds=0")); n != 20 {
			t.Errorf("%d messages", n)
		}
	}
	lost.Reset()
	if n := c.Stats(t, q).Queue; n.InFlight > 100 || time.Since(began) < 10*time.Second && n.Visible+n.InFlight != 1500 {
		t.Errorf("with a lost client: %+v", n)
	}
	time.Sleep(time.Until(published.Add(15 * time.Second)))
	if err := holds(t, c, q, visible(500)); err != nil {
		t.Error(err)
	}
	if n, ok := s.Metric(`queued_messages_total{event="expired",queue="sms-out"}`); !ok || n != 1000 {
		t.Errorf("%v messages expired, want 1000", n)
	}
	for {
		m := c.Get(t, q, "limit=20&timeoutInSeconds=0")
		if len(m) == 0 {
			break
		}
		for _, m := range m {
			c.Delete(t, 204, q, m.Receipt)
		}
	}
	if err := holds(t, c, q, rest.Stats{}); err != nil {
		t.Error(err)
	}
	close(done)
	if err := <-sampled; err != nil {
		t.Error(err)
	}
	s.Kill()
	s.Restart()
	if err := holds(t, rest.Dial(t, s.REST), q, rest.Stats{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// TestKilledLeases: leases, counts, receipts, delays and counters are after
// kill -9 what they were before.
func TestKilledLeases(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--create-queue", "orders")
	c := rest.Dial(t, s.REST)
	for range 5 {
		c.Put(t, "orders", "x")
	}
	delayed := time.Now().Add(6 * time.Second)
	c.Must(t, 200, "POST", "/queues/orders/messages", `{"messages":[{"content":"y","delayInSeconds":6}]}`)
	m := c.Get(t, "orders", "limit=4&visibilityInSeconds=6&timeoutInSeconds=0")
	if len(m) != 4 {
		t.Fatalf("%d messages", len(m))
	}
	c.Update(t, 200, "orders", m[1].Receipt, 3600)
	c.Update(t, 200, "orders", m[2].Receipt, 0)
	c.Delete(t, 204, "orders", m[3].Receipt)
	before := c.Stats(t, "orders")
	if want := (rest.Counters{Visible: 2, InFlight: 2, Delayed: 1, Bytes: 5}); before.Queue != want {
		t.Fatalf("%+v, want %+v", before.Queue, want)
	}
	s.Kill()
	s.Restart()
	c = rest.Dial(t, s.REST)
	if err := holds(t, c, "orders", before); err != nil {
		t.Error(err)
	}
	var again []rest.Message
	for len(again) < 2 { // one get may give fewer than there are
		some := c.Get(t, "orders", "limit=20&visibilityInSeconds=3600&timeoutInSeconds=0")
		if len(some) == 0 {
			t.Fatalf("%d messages", len(again))
		}
		again = append(again, some...)
	}
	for _, a := range again {
		want := 1
		if a.ID == m[2].ID {
			want = 2
		}
		if a.DeliveryCount != want || a.ID == m[0].ID || a.ID == m[1].ID || a.ID == m[3].ID {
			t.Errorf("got %+v", a)
		}
	}
	c.Update(t, 200, "orders", m[0].Receipt, 7) // its receipt works as before
	c.Delete(t, 404, "orders", m[2].Receipt)
	c.Delete(t, 204, "orders", m[3].Receipt)
	c.Delete(t, 204, "orders", m[1].Receipt)
	began := time.Now()
	late := c.Get(t, "orders", "limit=1&timeoutInSeconds=10&visibilityInSeconds=3600")
	if len(late) != 1 || late[0].Content != "y" {
		t.Fatalf("got %+v", late)
	}
	if early := time.Until(delayed); early > 100*time.Millisecond {
		t.Errorf("the delayed message came %v early", early)
	}
	late = c.Get(t, "orders", "limit=1&timeoutInSeconds=10")
	if len(late) != 1 || late[0].ID != m[0].ID || late[0].DeliveryCount != 2 {
		t.Fatalf("got %+v after %v", late, time.Since(began))
	}
}
