package grpcapi

import (
	"context"

	queuev1 "github.com/queued-mq/queued/api/gen/queue/v1"
	"github.com/queued-mq/queued/queue"
	"github.com/queued-mq/queued/service"
)

// GetStats counts the messages of a queue or channel.
func (d *data) GetStats(ctx context.Context, r *queuev1.GetStatsRequest) (*queuev1.GetStatsResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "channelId", r.GetChannelId(), "consumerGroupId", r.GetConsumerGroupId()); err != nil {
		return nil, Status(err)
	}
	resp, err := d.service.GetStats(ctx, service.GetStatsRequest{
		QueueRef:        r.GetQueueId(),
		ChannelID:       r.ChannelId,
		ConsumerGroupID: r.ConsumerGroupId,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.GetStatsResponse{QueueStats: &queuev1.QueueStats{
		Queue:           stats(resp.Queue),
		Dlq:             stats(resp.DLQ),
		ChannelId:       resp.ChannelID,
		ConsumerGroupId: resp.ConsumerGroupID,
	}}, nil
}

func stats(s queue.Stats) *queuev1.Stats {
	return &queuev1.Stats{
		VisibleMessages:  s.Visible,
		InFlightMessages: s.InFlight,
		SizeInBytes:      s.Bytes,
		DelayedMessages:  s.Delayed,
	}
}

// ListChannels lists the channels that hold messages.
func (d *data) ListChannels(ctx context.Context, r *queuev1.ListChannelsRequest) (*queuev1.ListChannelsResponse, error) {
	if err := checkText("queueId", r.GetQueueId(), "channelFilter", r.GetChannelFilter(), "consumerGroupId", r.GetConsumerGroupId(), "page", r.GetPage()); err != nil {
		return nil, Status(err)
	}
	resp, err := d.service.ListChannels(ctx, service.ListChannelsRequest{
		QueueRef:        r.GetQueueId(),
		ChannelFilter:   r.ChannelFilter,
		ConsumerGroupID: r.ConsumerGroupId,
		Limit:           r.Limit,
		Page:            r.Page,
	})
	if err != nil {
		return nil, Status(err)
	}
	return &queuev1.ListChannelsResponse{
		ChannelCollection: &queuev1.ChannelCollection{Items: resp.Items},
		NextPage:          optional(resp.NextPage),
	}, nil
}
