package limits

import (
	"sync"
	"time"

	"github.com/queued-mq/queued/queue"
	"golang.org/x/time/rate"
)

// Rates limits how often and how much each queue is used. Each rate is a
// bucket that holds one second's worth and fills at the rate; so a queue that
// was quiet may use a second's worth at once. It is safe for concurrent use;
// a rate without limit costs one comparison.
//
// Queues are known by their number. One whose buckets have all been full for a
// while is forgotten, and no more than a set number are remembered: beyond it
// the one longest unused is forgotten, which gives it full buckets.
type Rates struct {
	settings Settings
	ofShard  int // queues remembered by one shard
	shards   [rateShards]rateShard
}

const (
	rateShards = 16

	// A queue is forgotten when its buckets are full and nobody has asked
	// for this long.
	rateIdle = time.Minute

	// Operations told apart for one queue. There are fewer; more would be a
	// fault of ours and share the last bucket.
	rateAPIs = 16
)

// rateShard holds the queues of one part of the numbers.
type rateShard struct {
	mu     sync.Mutex
	queues map[uint64]*queueRates
	newest *queueRates // the ends of a list in the order of use
	oldest *queueRates
}

// queueRates are the buckets of one queue; nil ones have not been used.
type queueRates struct {
	number       uint64
	used         time.Time // never goes back
	newer, older *queueRates

	requests []apiRate
	gets     *rate.Limiter
	ingress  *rate.Limiter
	egress   *rate.Limiter
}

type apiRate struct {
	api string
	*rate.Limiter
}

// NewRates is a Rates that follows s as it stands now and remembers at most
// this many queues (rounded up to a multiple of 16, at least 16).
func NewRates(s *Settings, queues int) *Rates {
	r := &Rates{settings: *s, ofShard: max(1, (queues+rateShards-1)/rateShards)}
	for i := range r.shards {
		r.shards[i].queues = map[uint64]*queueRates{}
	}
	return r
}

// Request takes one request of the API from the queue's rate for it, or is
// TooManyRequests. API is the name of an operation, from a small fixed set.
func (r *Rates) Request(queueNumber uint64, api string, now time.Time) error {
	limit := r.settings.RequestsPerSecond
	if limit == 0 {
		return nil
	}
	s, q, now := r.lock(queueNumber, now)
	defer s.mu.Unlock()
	if !q.request(api, limit).AllowN(now, 1) {
		return queue.Errorf(queue.TooManyRequests,
			"more than %d requests a second of %s for this queue (limits.requests-per-second)", limit, api)
	}
	return nil
}

// Get takes one get from the queue's rate of gets, or is TooManyRequests.
func (r *Rates) Get(queueNumber uint64, now time.Time) error {
	limit := r.settings.GetsPerSecond
	if limit == 0 {
		return nil
	}
	s, q, now := r.lock(queueNumber, now)
	defer s.mu.Unlock()
	if !bucket(&q.gets, limit, limit).AllowN(now, 1) {
		return queue.Errorf(queue.TooManyRequests,
			"more than %d gets a second for this queue (limits.gets-per-second)", limit)
	}
	return nil
}

// Ingress takes the octets of a publish from the queue's rate, or is
// TooManyRequests and takes none. The bucket holds a second's worth and at
// least one request of full size; octets beyond that are not counted.
func (r *Rates) Ingress(queueNumber uint64, bytes int64, now time.Time) error {
	limit := r.settings.IngressBytesPerSecond
	if limit == 0 || bytes <= 0 {
		return nil
	}
	burst := max(limit, r.settings.LargeRequestBytes)
	s, q, now := r.lock(queueNumber, now)
	defer s.mu.Unlock()
	if !bucket(&q.ingress, limit, burst).AllowN(now, int(min(bytes, burst))) {
		return queue.Errorf(queue.TooManyRequests,
			"more than %d octets a second published to this queue (limits.ingress-bytes-per-second)", limit)
	}
	return nil
}

// EgressReady says whether a get may be answered, which needs the queue not to
// be in debt for what it sent before, else TooManyRequests. It takes nothing:
// the size of the answer is charged by Egress.
func (r *Rates) EgressReady(queueNumber uint64, now time.Time) error {
	limit := r.settings.EgressBytesPerSecond
	if limit == 0 {
		return nil
	}
	s, q, now := r.lock(queueNumber, now)
	defer s.mu.Unlock()
	if q.egress != nil && q.egress.TokensAt(now) < 0 {
		return queue.Errorf(queue.TooManyRequests,
			"more than %d octets a second received from this queue (limits.egress-bytes-per-second)", limit)
	}
	return nil
}

// Egress charges the octets of an answer that was sent to the queue's rate,
// into debt if need be.
func (r *Rates) Egress(queueNumber uint64, bytes int64, now time.Time) {
	limit := r.settings.EgressBytesPerSecond
	if limit == 0 || bytes <= 0 {
		return
	}
	burst := max(limit, r.settings.ResponseBytes)
	s, q, now := r.lock(queueNumber, now)
	defer s.mu.Unlock()
	b := bucket(&q.egress, limit, burst)
	for bytes > 0 { // a bucket gives no more than it holds at one time
		n := min(bytes, burst)
		b.ReserveN(now, int(n))
		bytes -= n
	}
}

// Forget drops what is known of a queue, when it has been deleted.
func (r *Rates) Forget(queueNumber uint64) {
	s := &r.shards[queueNumber%rateShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[queueNumber]; q != nil {
		s.drop(q)
	}
}

// Len is how many queues are remembered.
func (r *Rates) Len() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += len(s.queues)
		s.mu.Unlock()
	}
	return n
}

// lock finds or makes the buckets of a queue; its shard is locked and is the
// caller's to unlock. The instant it gives is now, or what the queue saw before
// if that is later: two goroutines may come here in another order than they
// read the clock, and a bucket that sees time go back fills twice.
func (r *Rates) lock(number uint64, now time.Time) (s *rateShard, q *queueRates, at time.Time) {
	s = &r.shards[number%rateShards]
	s.mu.Lock()
	q = s.queues[number]
	if q == nil {
		if len(s.queues) >= r.ofShard {
			s.drop(s.oldest)
		}
		q = &queueRates{number: number, used: now}
		s.queues[number] = q
	} else {
		s.unlink(q)
	}
	s.link(q)
	if now.After(q.used) {
		q.used = now
	}
	if o := s.oldest; o != q && now.Sub(o.used) > rateIdle && o.full(now) {
		s.drop(o)
	}
	return s, q, q.used
}

// request is the bucket of one API.
func (q *queueRates) request(api string, limit int64) *rate.Limiter {
	for i := range q.requests {
		if q.requests[i].api == api || i == rateAPIs-1 {
			return q.requests[i].Limiter
		}
	}
	q.requests = append(q.requests, apiRate{api, rate.NewLimiter(rate.Limit(limit), int(limit))})
	return q.requests[len(q.requests)-1].Limiter
}

// bucket makes a bucket that has not been used yet.
func bucket(b **rate.Limiter, limit, burst int64) *rate.Limiter {
	if *b == nil {
		*b = rate.NewLimiter(rate.Limit(limit), int(burst))
	}
	return *b
}

// full reports whether forgetting q changes nothing.
func (q *queueRates) full(now time.Time) bool {
	// Only a bucket that goes into debt can take longer than rateIdle; the
	// others fill within a second, or their one request's worth.
	for _, b := range []*rate.Limiter{q.ingress, q.egress} {
		if b != nil && b.TokensAt(now) < float64(b.Burst()) {
			return false
		}
	}
	return true
}

func (s *rateShard) drop(q *queueRates) {
	delete(s.queues, q.number)
	s.unlink(q)
}

// link puts q at the newest end.
func (s *rateShard) link(q *queueRates) {
	q.newer, q.older = nil, s.newest
	if s.newest != nil {
		s.newest.newer = q
	} else {
		s.oldest = q
	}
	s.newest = q
}

func (s *rateShard) unlink(q *queueRates) {
	if q.newer != nil {
		q.newer.older = q.older
	} else {
		s.newest = q.older
	}
	if q.older != nil {
		q.older.newer = q.newer
	} else {
		s.oldest = q.newer
	}
	q.newer, q.older = nil, nil
}
