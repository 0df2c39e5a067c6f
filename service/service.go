package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/queued-mq/queued/broker"
	"github.com/queued-mq/queued/limits"
	"github.com/queued-mq/queued/queue"
)

// Service is the use cases over one broker. Its methods may be called from any
// number of goroutines; it owns no goroutine and nothing to close.
type Service struct {
	broker *broker.Broker
	limits *limits.Settings
	rates  *limits.Rates
	seed   maphash.Seed // of number
	ocids  ocids

	deliveryCount int
	getLimit      int
	keepUnrouted  bool
	publicURL     string

	workSwept atomic.Int64 // instant of the last look for old work requests

	observe func(face, operation string, code queue.Code, seconds float64)
	log     *slog.Logger
}

// Options are the settings of a Service. The zero value serves with OCI's
// limits and the contract's defaults.
type Options struct {
	// Limits are the sizes, counts and rates to keep, valid and not changed any
	// more; nil: the profile oci.
	Limits *limits.Settings

	// DefaultDeliveryCount is the deadLetterQueueDeliveryCount of a queue that
	// names none, 0 (no dead letter queue) to 20; nil: 5.
	DefaultDeliveryCount *int

	// DefaultGetLimit is how many messages a get gives that names no limit;
	// 0: 20, or what one call may hold at most if that is less.
	DefaultGetLimit int

	// KeepUnrouted says that the broker keeps what no consumer group accepts.
	KeepUnrouted bool

	// Realm and Region stand in the OCIDs of what is created; "": oc1, local.
	Realm, Region string

	// PublicURL is what messagesEndpoint says, scheme://host[:port] and nothing
	// behind it; "": the BaseURL of each Caller.
	PublicURL string

	// Observe is told of every finished request: the caller's face, the name
	// of the OCI operation, the error's code ("" when it succeeded, Canceled
	// when the client was gone) and how long it took. It is called on the
	// request's goroutine and must be quick; nil: nobody asks.
	Observe func(face, operation string, code queue.Code, seconds float64)

	// Logger takes internal faults; nil: none are logged.
	Logger *slog.Logger

	// Entropy is where the unique parts of OCIDs come from; nil: the system's
	// cryptographic source. It is read from many goroutines.
	Entropy io.Reader
}

// Canceled is what Observe is told when the client went away before its
// answer. It is no code of the API and no face ever shows it.
const Canceled queue.Code = "Canceled"

const (
	defaultDeliveryCount = 5
	defaultGetLimit      = 20

	// How many queues the rates remember at a time, at about a kilobyte each.
	// Of more queues in use within a minute some would go unthrottled; those
	// who lift limits.queues-per-tenancy so far have lifted rates too.
	ratedQueues = 16 << 10
)

// New is the use cases over b.
func New(b *broker.Broker, o Options) *Service {
	s := &Service{
		broker:        b,
		seed:          maphash.MakeSeed(),
		limits:        o.Limits,
		ocids:         ocids{realm: cmp.Or(o.Realm, "oc1"), region: cmp.Or(o.Region, "local"), entropy: o.Entropy},
		deliveryCount: defaultDeliveryCount,
		getLimit:      cmp.Or(o.DefaultGetLimit, defaultGetLimit),
		keepUnrouted:  o.KeepUnrouted,
		publicURL:     o.PublicURL,
		observe:       o.Observe,
		log:           o.Logger,
	}
	if o.Entropy == nil {
		s.ocids.entropy = rand.Reader
	}
	if o.Limits == nil {
		oci := limits.OCI()
		s.limits = &oci
	}
	s.rates = limits.NewRates(s.limits, ratedQueues)
	if o.DefaultDeliveryCount != nil {
		s.deliveryCount = *o.DefaultDeliveryCount
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// number is the queue's number for the rates.
func (s *Service) number(id queue.ID) uint64 { return maphash.String(s.seed, string(id)) }

// done ends every use case: it reports the outcome and logs what no caller can
// act on. Use it as
//
//	defer s.done(ctx, "PutMessages", time.Now(), &err)
func (s *Service) done(ctx context.Context, operation string, began time.Time, err *error) {
	code := queue.CodeOf(*err)
	if code == queue.InternalServerError {
		if gone(ctx, *err) {
			code = Canceled
		} else {
			s.logFault(ctx, operation, *err)
		}
	}
	if s.observe != nil {
		s.observe(CallerOf(ctx).Face, operation, code, time.Since(began).Seconds())
	}
}

// logFault logs what went wrong inside and is shown as "internal error" only.
func (s *Service) logFault(ctx context.Context, operation string, err error) {
	s.log.LogAttrs(ctx, slog.LevelError, "internal error",
		slog.String("operation", operation),
		slog.String("opc-request-id", CallerOf(ctx).RequestID),
		slog.Any("error", err))
}

// gone reports whether err says no more than that the caller has left.
func gone(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// Now is the engine's time, by which the instants of all answers are given.
func (s *Service) Now() queue.Instant { return s.broker.Now() }
