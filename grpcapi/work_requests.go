package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// ListWorkRequests lists work requests.
func (a *admin) ListWorkRequests(ctx context.Context, r *queuev1.ListWorkRequestsRequest) (*queuev1.ListWorkRequestsResponse, error) {
	resp, err := a.service.ListWorkRequests(ctx, service.ListWorkRequestsRequest{
		CompartmentID: r.CompartmentId,
		WorkRequestID: r.WorkRequestId,
		Limit:         r.Limit,
		Page:          r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	page := &queuev1.WorkRequestSummaryCollection{}
	for i := range resp.Items {
		w := &resp.Items[i]
		page.Items = append(page.Items, &queuev1.WorkRequestSummary{
			OperationType:   operationType(w),
			Status:          workStatus(w),
			Id:              w.ID,
			CompartmentId:   w.CompartmentID,
			Resources:       resources(w),
			PercentComplete: w.Percent,
			TimeAccepted:    timestamp(w.AcceptedAt),
			TimeStarted:     timestamp(w.StartedAt),
			TimeFinished:    timestamp(w.FinishedAt),
		})
	}
	return &queuev1.ListWorkRequestsResponse{WorkRequestSummaryCollection: page, NextPage: optional(resp.NextPage)}, nil
}

// GetWorkRequest shows a work request.
func (a *admin) GetWorkRequest(ctx context.Context, r *queuev1.GetWorkRequestRequest) (*queuev1.GetWorkRequestResponse, error) {
	resp, err := a.service.GetWorkRequest(ctx, service.GetWorkRequestRequest{WorkRequestID: r.GetWorkRequestId()})
	if err != nil {
		return nil, Status(err)
	}
	w := &resp.WorkRequest
	return &queuev1.GetWorkRequestResponse{
		WorkRequest: &queuev1.WorkRequest{
			OperationType:   operationType(w),
			Status:          workStatus(w),
			Id:              w.ID,
			CompartmentId:   w.CompartmentID,
			Resources:       resources(w),
			PercentComplete: w.Percent,
			TimeAccepted:    timestamp(w.AcceptedAt),
			TimeStarted:     timestamp(w.StartedAt),
			TimeFinished:    timestamp(w.FinishedAt),
		},
		RetryAfter: int32(resp.RetryAfter),
	}, nil
}

func operationType(w *queue.WorkRequest) queuev1.WorkRequest_OperationType {
	return enum[queuev1.WorkRequest_OperationType](queuev1.WorkRequest_OperationType_value, w.Operation)
}

func workStatus(w *queue.WorkRequest) queuev1.WorkRequest_Status {
	return enum[queuev1.WorkRequest_Status](queuev1.WorkRequest_Status_value, w.Status)
}

func resources(w *queue.WorkRequest) []*queuev1.WorkRequestResource {
	var out []*queuev1.WorkRequestResource
	for _, r := range w.Resources {
		out = append(out, &queuev1.WorkRequestResource{
			EntityType: r.EntityType,
			ActionType: enum[queuev1.WorkRequestResource_ActionType](queuev1.WorkRequestResource_ActionType_value, r.Action),
			Identifier: r.Identifier,
			EntityUri:  optional(r.EntityURI),
		})
	}
	return out
}

// ListWorkRequestErrors lists why a work request failed.
func (a *admin) ListWorkRequestErrors(ctx context.Context, r *queuev1.ListWorkRequestErrorsRequest) (*queuev1.ListWorkRequestErrorsResponse, error) {
	resp, err := a.service.ListWorkRequestErrors(ctx, service.ListWorkRequestErrorsRequest{
		WorkRequestID: r.GetWorkRequestId(),
		Limit:         r.Limit,
		Page:          r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	page := &queuev1.WorkRequestErrorCollection{}
	for _, e := range resp.Items {
		page.Items = append(page.Items, &queuev1.WorkRequestError{Code: string(e.Code), Message: e.Message, Timestamp: timestamp(e.At)})
	}
	return &queuev1.ListWorkRequestErrorsResponse{WorkRequestErrorCollection: page, NextPage: optional(resp.NextPage)}, nil
}

// ListWorkRequestLogs lists the steps of a work request.
func (a *admin) ListWorkRequestLogs(ctx context.Context, r *queuev1.ListWorkRequestLogsRequest) (*queuev1.ListWorkRequestLogsResponse, error) {
	resp, err := a.service.ListWorkRequestLogs(ctx, service.ListWorkRequestLogsRequest{
		WorkRequestID: r.GetWorkRequestId(),
		Limit:         r.Limit,
		Page:          r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	page := &queuev1.WorkRequestLogEntryCollection{}
	for _, l := range resp.Items {
		page.Items = append(page.Items, &queuev1.WorkRequestLogEntry{Message: l.Message, Timestamp: timestamp(l.At)})
	}
	return &queuev1.ListWorkRequestLogsResponse{WorkRequestLogEntryCollection: page, NextPage: optional(resp.NextPage)}, nil
}
