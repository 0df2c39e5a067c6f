// Package grpcapi is the gRPC face: it turns the messages of queue.v1 into
// requests of package service and its answers back, and errors into gRPC
// statuses. It decides nothing, so a file here reads like the proto file beside
// the file of the same name in service.
//
// The streams are conversations of goroutines: see streams.go.
//
// The gateway calls the same servers in process for everything that is not a
// hot operation. What only REST has (how a body is spelled) is looked at when
// the service.Caller of the context says that REST is calling.
package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/service"
)

// admin serves the control plane.
type admin struct {
	queuev1.UnimplementedQueueAdminServiceServer
	service *service.Service
}

// data serves the data plane.
type data struct {
	queuev1.UnimplementedQueueServiceServer
	service  *service.Service
	stopping context.Context // nil: never
}

// NewAdmin is the control plane over s: queues, consumer groups, work requests.
// Its errors are gRPC statuses, see Status.
func NewAdmin(s *service.Service) queuev1.QueueAdminServiceServer { return &admin{service: s} }

// Options is what is optional about a server of the data plane.
type Options struct {
	// Stopping ends when the server stops. The streams then take nothing more,
	// answer what they have received and end with Unavailable. The zero value
	// is a server whose streams last as long as their clients.
	Stopping context.Context
}

// NewData is the data plane over s: messages, statistics, channels. Its errors
// are gRPC statuses, see Status.
func NewData(s *service.Service, o Options) queuev1.QueueServiceServer {
	return &data{service: s, stopping: o.Stopping}
}
