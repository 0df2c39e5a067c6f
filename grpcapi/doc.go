// Package grpcapi is the gRPC face: it turns the messages of queue.v1 into
// requests of package service and its answers back, and errors into gRPC
// statuses. It decides nothing, so a file here reads like the proto file beside
// the file of the same name in service.
//
// The gateway calls the same servers in process for everything that is not a
// hot operation. What only REST has (how a body is spelled) is looked at when
// the service.Caller of the context says that REST is calling.
package grpcapi

import (
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
	service *service.Service
}

// NewAdmin is the control plane over s: queues, consumer groups, work requests.
// Its errors are gRPC statuses, see Status.
func NewAdmin(s *service.Service) queuev1.QueueAdminServiceServer { return &admin{service: s} }

// NewData is the data plane over s: messages, statistics, channels. Its errors
// are gRPC statuses, see Status.
func NewData(s *service.Service) queuev1.QueueServiceServer { return &data{service: s} }
