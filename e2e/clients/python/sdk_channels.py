"""Channels: published to, chosen by filter, counted, listed, purged."""

from oci.queue import models

from checks import same
from sdk_common import counts, create, delete, entry, finished, get, put, refused


def check(admin, messages):
    queue = create(admin, display_name="lanes")
    put(messages, queue, entry("1", channel="north.1"), entry("2", channel="north.2"), entry("3", channel="south"), "4")

    def listed(**how):
        return sorted(messages.list_channels(queue, **how).data.items)

    same("ListChannels", "those that hold messages", listed(), ["north.1", "north.2", "south"])
    same("ListChannels", "by filter", (listed(channel_filter="south"), listed(channel_filter="north*"), listed(channel_filter="west")),
         (["south"], ["north.1", "north.2"], []))
    first = messages.list_channels(queue, limit=2)
    second = messages.list_channels(queue, limit=2, page=first.headers["opc-next-page"])
    same("paging", "ListChannels: two and one",
         (len(first.data.items), sorted(first.data.items + second.data.items), second.headers.get("opc-next-page")), (2, listed(), None))

    same("GetStats", "of a channel", (counts(messages, queue, channel_id="south"), messages.get_stats(queue, channel_id="south").data.channel_id),
         ((1, 0, 0, 0), "south"))
    same("GetStats", "of a channel that is not there", counts(messages, queue, channel_id="west"), (0, 0, 0, 0))

    same("channels", "an exact filter", [m.content for m in get(messages, queue, channel_filter="south", visibility_in_seconds=0)], ["3"])
    got = []
    for _ in range(2):
        some = get(messages, queue, channel_filter="north*", visibility_in_seconds=60)
        same("channels", "a filter with * takes one channel that fits", len({m.metadata.channel_id for m in some}), 1)
        got += some
    same("channels", "and then the other", sorted(m.content for m in got), ["1", "2"])
    same("channels", "of a channel that is not there: empty", get(messages, queue, channel_filter="west"), [])
    refused("channels", "a filter that is too long: 400", 400, "InvalidParameter", messages.get_messages, queue, channel_filter="x" * 65)
    # In flight: south is visible again, as is what has no channel.
    rest = get(messages, queue, visibility_in_seconds=60) + get(messages, queue, visibility_in_seconds=60)
    same("channels", "without a filter: any, one after the other", sorted(m.content for m in rest), ["3", "4"])

    put(messages, queue, entry("5", channel="south"), entry("6", channel="east"))
    finished(admin, admin.purge_queue(queue, models.PurgeQueueDetails(purge_type="NORMAL", channel_ids=["south"])))
    same("PurgeQueue", "of one channel", listed(), ["east", "north.1", "north.2"])
    delete(admin, queue)
