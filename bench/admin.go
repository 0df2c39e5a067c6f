package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
)

// Queues of a run: nothing becomes a dead letter, and no lease ends before the
// run does.
const queueVisibility = 3600 // seconds

// admin makes, counts and deletes queues.
type admin interface {
	createQueue(ctx context.Context, name string) error
	deleteQueue(ctx context.Context, name string) error
	stored(ctx context.Context, name string) (messages int64, err error)
	io.Closer
}

// openAdmin is REST if it has an address, else gRPC.
func openAdmin(o *Options) (admin, error) {
	if o.REST != "" {
		return &restAdmin{newREST(o)}, nil
	}
	f, err := newGRPC(&Options{GRPC: o.GRPC, Producers: 1})
	if err != nil {
		return nil, err
	}
	return &grpcAdmin{f}, nil
}

// makeQueues makes the queues of the run, whose names no other has.
func (r *run) makeQueues(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	name := "bench-" + strings.ToLower(rand.Text()[:10])
	for i := range r.o.Queues {
		queue := name
		if r.o.Queues > 1 {
			queue += "-" + strconv.Itoa(i)
		}
		if err := r.admin.createQueue(ctx, queue); err != nil {
			return fmt.Errorf("create queue %s: %w", queue, err)
		}
		r.queues = append(r.queues, queue)
	}
	return nil
}

// deleteQueues deletes them, also when ctx is done.
func (r *run) deleteQueues(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	var errs []error
	for _, q := range r.queues {
		if err := r.admin.deleteQueue(ctx, q); err != nil {
			errs = append(errs, fmt.Errorf("delete queue %s: %w", q, err))
		}
	}
	return errors.Join(errs...)
}

type restAdmin struct{ *restFace }

func (a *restAdmin) createQueue(ctx context.Context, name string) error {
	details, err := json.Marshal(map[string]any{"displayName": name, "deadLetterQueueDeliveryCount": 0, "visibilityInSeconds": queueVisibility})
	if err != nil {
		return err
	}
	return a.call(ctx, http.MethodPost, a.url, details, new(bytes.Buffer))
}

func (a *restAdmin) deleteQueue(ctx context.Context, name string) error {
	return a.call(ctx, http.MethodDelete, a.url+"/"+name, nil, new(bytes.Buffer))
}

func (a *restAdmin) stored(ctx context.Context, name string) (int64, error) {
	var answer bytes.Buffer
	if err := a.call(ctx, http.MethodGet, a.url+"/"+name+"/stats", nil, &answer); err != nil {
		return 0, err
	}
	var stats struct {
		Queue struct{ VisibleMessages, InFlightMessages int64 }
	}
	err := json.Unmarshal(answer.Bytes(), &stats)
	return stats.Queue.VisibleMessages + stats.Queue.InFlightMessages, err
}

type grpcAdmin struct{ *grpcFace }

func (a *grpcAdmin) client() queuev1.QueueAdminServiceClient {
	return queuev1.NewQueueAdminServiceClient(a.conns[0])
}

func (a *grpcAdmin) createQueue(ctx context.Context, name string) error {
	never, visibility := int32(0), int32(queueVisibility)
	_, err := a.client().CreateQueue(ctx, &queuev1.CreateQueueRequest{CreateQueueDetails: &queuev1.CreateQueueDetails{
		DisplayName: &name, DeadLetterQueueDeliveryCount: &never, VisibilityInSeconds: &visibility}})
	return refused(err)
}

func (a *grpcAdmin) deleteQueue(ctx context.Context, name string) error {
	_, err := a.client().DeleteQueue(ctx, &queuev1.DeleteQueueRequest{QueueId: name})
	return refused(err)
}

func (a *grpcAdmin) stored(ctx context.Context, name string) (int64, error) {
	got, err := queuev1.NewQueueServiceClient(a.conns[0]).GetStats(ctx, &queuev1.GetStatsRequest{QueueId: name})
	s := got.GetQueueStats().GetQueue()
	return s.GetVisibleMessages() + s.GetInFlightMessages(), refused(err)
}

// server is what a server's own metrics say about it.
type server struct {
	cpu      float64 // seconds
	allocs   float64
	syncs    float64
	resident float64 // octets
}

// readServer reads /metrics; nil if there are none to be had.
func readServer(ctx context.Context, addr string) *server {
	if addr == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base(addr)+"/metrics", nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	return parseServer(resp.Body)
}

// parseServer finds what is wanted in the text format of Prometheus; nil if
// the processor time is not there.
func parseServer(text io.Reader) *server {
	var s server
	wanted := map[string]*float64{
		"process_cpu_seconds_total": &s.cpu, "go_memstats_mallocs_total": &s.allocs,
		"queued_sync_seconds_count": &s.syncs, "process_resident_memory_bytes": &s.resident,
	}
	found := false
	for lines := bufio.NewScanner(io.LimitReader(text, 64<<20)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if at := wanted[name]; at != nil {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				*at = v
				found = found || at == &s.cpu
			}
		}
	}
	if !found {
		return nil
	}
	return &s
}
