package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/oracle/oci-go-sdk/v65/queue"
)

// messages is messages from end to end, channels, statistics and dead letters.
func messages() {
	q := create(queue.CreateQueueDetails{DisplayName: new("letters"), VisibilityInSeconds: new(600)})
	there(q)
	longPoll(q)
	visibility(q)
	batches(q)
	inChannels(q)
	remove(q)
	names()
	deadLetters()
}

func there(q string) {
	content, p := "Grüße, 世界 🎈 \x00 \"quoted\"\n<tag>", properties{"kind": "Größe 書"}
	sent := put(q, message(content, "", p))[0]
	same(sent.ExpireAfter.After(time.Now()), true, "end of life")
	ok("PutMessages", "an id and an end of life")

	m := one(q, queue.GetMessagesRequest{VisibilityInSeconds: new(300)})
	same(list{*m.Id, *m.Content, *m.DeliveryCount, m.ExpireAfter}, list{*sent.Id, content, 1, sent.ExpireAfter}, "message")
	ok("GetMessages", "the same text comes back, of any script")
	same(m.Metadata.CustomProperties, p, "properties")
	ok("GetMessages", "custom properties come back")
	same(list{m.CreatedAt.Before(m.VisibleAfter.Time), m.VisibleAfter.Before(m.ExpireAfter.Time)}, list{true, true}, "times")
	same(len(get(q, queue.GetMessagesRequest{})), 0, "a hidden message")
	ok("GetMessages", "a message that was given is hidden, and nothing is an empty list")

	done(q, m)
	done(q, m)
	ok("DeleteMessage", "once, and again as a retry")
	var many []entry
	var want []string
	for i := range 20 {
		many = append(many, text(strconv.Itoa(i)))
		want = append(want, strconv.Itoa(i))
	}
	same(len(put(q, many...)), 20, "answers")
	ok("PutMessages", "twenty at once")
	few := get(q, queue.GetMessagesRequest{Limit: new(5)})
	same(len(few), 5, "at most five")
	slices.Sort(want)
	same(contents(append(few, get(q, queue.GetMessagesRequest{})...)), want, "all of them")
	ok("GetMessages", "at most as many as asked for, each once")
}

func longPoll(q string) {
	poll := make(chan queue.GetMessage)
	go func() { poll <- one(q, queue.GetMessagesRequest{TimeoutInSeconds: new(20)}) }()
	put(q, text("at last"))
	m := <-poll
	same(*m.Content, "at last", "what a long poll gives")
	ok("GetMessages", "a long poll ends with the first message")
	done(q, m)
	same(len(get(q, queue.GetMessagesRequest{TimeoutInSeconds: new(1)})), 0, "a long poll of nothing")
	ok("GetMessages", "a long poll ends without one")
}

func visibility(q string) {
	put(q, text("mine"))
	m := one(q, queue.GetMessagesRequest{})
	longer := hide(q, m, 3600)
	same(list{*longer.Id, longer.VisibleAfter.After(m.VisibleAfter.Time)}, list{*m.Id, true}, "hidden for longer")
	ok("UpdateMessage", "hidden for longer")
	hide(q, m, 0)
	again := one(q, queue.GetMessagesRequest{})
	same(list{*again.Id, *again.DeliveryCount}, list{*m.Id, 2}, "given back")
	ok("UpdateMessage", "given back it comes again, counted")
	done(q, again)
}

func batches(q string) {
	put(q, text("a"), text("b"))
	got := get(q, queue.GetMessagesRequest{})
	var updates queue.UpdateMessagesDetails
	var deletes queue.DeleteMessagesDetails
	for _, receipt := range []*string{got[0].Receipt, new("no-receipt"), got[1].Receipt} {
		updates.Entries = append(updates.Entries, queue.UpdateMessagesDetailsEntry{Receipt: receipt, VisibilityInSeconds: new(1200)})
		deletes.Entries = append(deletes.Entries, queue.DeleteMessagesDetailsEntry{Receipt: receipt})
	}
	updated := must(client.UpdateMessages(ctx, queue.UpdateMessagesRequest{QueueId: &q, UpdateMessagesDetails: updates}))
	e := updated.Entries
	same(list{*updated.ClientFailures, *updated.ServerFailures, len(e)}, list{1, 0, 3}, "counts")
	same(list{*e[0].Id, *e[1].ErrorCode, *e[2].Id, e[0].ErrorCode == nil, e[1].Id == nil, e[2].ErrorCode == nil},
		list{*got[0].Id, 400, *got[1].Id, true, true, true}, "entries")
	same(e[0].VisibleAfter.After(got[0].VisibleAfter.Time), true, "hidden for longer")
	ok("UpdateMessages", "entry by entry, with one that fails")

	deleted := must(client.DeleteMessages(ctx, queue.DeleteMessagesRequest{QueueId: &q, DeleteMessagesDetails: deletes}))
	d := deleted.Entries
	same(list{*deleted.ClientFailures, *deleted.ServerFailures, len(d)}, list{1, 0, 3}, "counts")
	same(list{d[0].ErrorCode == nil, *d[1].ErrorCode, *d[1].ErrorMessage != "", d[2].ErrorCode == nil}, list{true, 400, true, true}, "entries")
	ok("DeleteMessages", "entry by entry, with one that fails")
}

func channels(q string, r queue.ListChannelsRequest) (names []string) {
	r.QueueId = &q
	for {
		got := must(client.ListChannels(ctx, r))
		names = append(names, got.Items...)
		if got.OpcNextPage == nil {
			slices.Sort(names)
			return names
		}
		r.Page = got.OpcNextPage
	}
}

func inChannels(q string) {
	for _, name := range []string{"north", "north-west", "south"} {
		put(q, message("to "+name, name, nil))
	}
	m := one(q, queue.GetMessagesRequest{ChannelFilter: new("south")})
	same(list{*m.Content, *m.Metadata.ChannelId}, list{"to south", "south"}, "by channel")
	ok("channels", "a filter gives the messages of a channel")
	same(channels(q, queue.ListChannelsRequest{}), []string{"north", "north-west", "south"}, "channels")
	same(channels(q, queue.ListChannelsRequest{ChannelFilter: new("north*")}), []string{"north", "north-west"}, "channels by pattern")
	ok("ListChannels", "those that hold messages, by pattern too")
	same(channels(q, queue.ListChannelsRequest{Limit: new(1)}), []string{"north", "north-west", "south"}, "all pages")
	ok("paging", "pages of ListChannels by hand")

	s := stats(q, queue.GetStatsRequest{ChannelId: new("south")})
	same(list{*s.ChannelId, *s.Queue.VisibleMessages, *s.Queue.InFlightMessages, *s.Queue.SizeInBytes, *s.Dlq.SizeInBytes},
		list{"south", int64(0), int64(1), int64(8), int64(0)}, "of a channel")
	ok("GetStats", "of a channel")
	rest := get(q, queue.GetMessagesRequest{ChannelFilter: new("north*")})
	rest = append(rest, get(q, queue.GetMessagesRequest{ChannelFilter: new("north*")})...)
	same(contents(rest), []string{"to north", "to north-west"}, "by pattern")
	ok("channels", "a pattern gives one channel after the other")
}

// names is what must be spelled otherwise in an address.
func names() {
	// The SDK encodes neither % nor ? in a path, unless OCI_GOSDK_ENCODE_PATH_PARAMS
	// is true.
	name, channel := "Größe & mehr", "a+b:c@d=e.f_g-h"
	q := create(queue.CreateQueueDetails{DisplayName: &name})
	same(*queueOf(name).Id, q, "queue by name")
	ok("GetQueue", "by a name that needs encoding")
	put(name, message("x", channel, nil))
	same(*stats(name, queue.GetStatsRequest{ChannelId: &channel}).Queue.VisibleMessages, int64(1), "messages of the channel")
	m := one(name, queue.GetMessagesRequest{ChannelFilter: &channel})
	done(name, m)
	same(*m.Metadata.ChannelId, channel, "channel")
	ok("channels", "a channel whose name needs encoding")
	remove(q)
}

func deadLetters() {
	q := create(queue.CreateQueueDetails{DisplayName: new("poison"), VisibilityInSeconds: new(600), DeadLetterQueueDeliveryCount: new(1)})
	dlq := q + "_dlq"
	put(q, message("bad", "north", properties{"k": "v"}))
	m := one(q, queue.GetMessagesRequest{VisibilityInSeconds: new(1)}) // its only delivery, and nobody deletes it
	dead := one(dlq, queue.GetMessagesRequest{TimeoutInSeconds: new(20)})
	same(list{*dead.Id, *dead.Content, *dead.DeliveryCount, *dead.Metadata.ChannelId, dead.Metadata.CustomProperties},
		list{*m.Id, "bad", 2, "north", properties{"k": "v"}}, "dead letter")
	ok("dlq", "it is read as a queue whose id ends in _dlq")
	s := stats(q, queue.GetStatsRequest{})
	same(list{*s.Queue.SizeInBytes, *s.Dlq.InFlightMessages, *s.Dlq.SizeInBytes}, list{int64(0), int64(1), int64(5)}, "statistics")
	ok("GetStats", "of a queue and its dead letters")
	hide(dlq, dead, 0)
	done(dlq, one(dlq, queue.GetMessagesRequest{}))
	same(*stats(q, queue.GetStatsRequest{}).Dlq.SizeInBytes, int64(0), "dead letters")
	ok("dlq", "dead letters are updated and deleted there")
	remove(q)
}
