"""Messages: put, received, hidden, given back, deleted, dead; and what is
refused."""

import threading
from datetime import timedelta

from oci.queue import models

from checks import same, true
from sdk_common import counts, create, delete, entry, finished, get, put, refused, soon, visibility

TEXT = "grüße 🚀 \u2028 \"quoted\" \\ tab\tline\nend"


def check(admin, messages):
    queue = create(admin, display_name="letters", dead_letter_queue_delivery_count=0)
    one(messages, queue)
    batches(messages, queue)
    polls(messages, queue)
    errors(admin, messages, queue)
    delete(admin, queue)
    dead(admin, messages)


def one(messages, queue):
    sent = put(messages, queue, entry(TEXT, colour="grün", empty=""), "")
    true("PutMessages", "ids rise, in the order sent", sent[0].id < sent[1].id, sent)
    a, b = get(messages, queue, visibility_in_seconds=60)
    same("PutMessages", "any text comes back", (a.content, b.content), (TEXT, ""))
    same("PutMessages", "custom properties come back", (a.metadata.custom_properties, a.metadata.channel_id, b.metadata),
         ({"colour": "grün", "empty": ""}, None, None))
    same("GetMessages", "what was sent, delivered once", [(m.id, m.delivery_count) for m in (a, b)], [(m.id, 1) for m in sent])
    same("GetMessages", "expireAfter is what the put said", [m.expire_after for m in (a, b)], [m.expire_after for m in sent])
    same("GetMessages", "expireAfter: the queue's retention after createdAt", a.expire_after - a.created_at, timedelta(seconds=86400))
    same("GetMessages", "hidden while in flight", (get(messages, queue), counts(messages, queue)), ([], (0, 2, 0, 0)))

    changed = messages.update_message(queue, a.receipt, visibility(600)).data
    true("UpdateMessage", "hidden for longer, the receipt stays good", changed.id == a.id and changed.visible_after > a.visible_after, changed)
    messages.update_message(queue, a.receipt, visibility(0))
    again, = get(messages, queue, visibility_in_seconds=60)
    same("UpdateMessage", "to 0: visible at once, delivered a second time", (again.id, again.delivery_count), (a.id, 2))
    refused("UpdateMessage", "the receipt of a delivery before: 404", 404, "NotAuthorizedOrNotFound",
            messages.update_message, queue, a.receipt, visibility(1))
    refused("DeleteMessage", "the receipt of a delivery before: 404", 404, "NotAuthorizedOrNotFound", messages.delete_message, queue, a.receipt)
    refused("DeleteMessage", "no receipt of ours: 400", 400, "InvalidParameter", messages.delete_message, queue, "made-up")

    same("DeleteMessage", "204", messages.delete_message(queue, again.receipt).status, 204)
    same("DeleteMessage", "a second time: 204 too", messages.delete_message(queue, again.receipt).status, 204)
    refused("UpdateMessage", "a deleted message: 404", 404, "NotAuthorizedOrNotFound", messages.update_message, queue, again.receipt, visibility(1))
    messages.delete_message(queue, b.receipt)
    same("GetStats", "nothing is left", counts(messages, queue), (0, 0, 0, 0))


def batches(messages, queue):
    sent = put(messages, queue, *[f"{i}" for i in range(20)])
    same("GetStats", "visible messages and their octets",
         (counts(messages, queue), messages.get_stats(queue).data.queue.size_in_bytes), ((20, 0, 0, 0), 30))
    got = get(messages, queue, limit=3, visibility_in_seconds=60)
    same("GetMessages", "no more than the limit", [m.id for m in got], [m.id for m in sent[:3]])
    got += get(messages, queue, visibility_in_seconds=60)
    same("GetMessages", "the rest", [m.content for m in got], [str(i) for i in range(20)])
    same("GetStats", "in flight", counts(messages, queue), (0, 20, 0, 0))

    entries = [models.UpdateMessagesDetailsEntry(receipt=m.receipt, visibility_in_seconds=600) for m in got[:3]]
    entries[1].receipt = "made-up"
    entries[2].visibility_in_seconds = 43201
    r = messages.update_messages(queue, models.UpdateMessagesDetails(entries=entries)).data
    same("UpdateMessages", "two of three fail, each by itself",
         (r.client_failures, r.server_failures, [(e.id, e.error_code, bool(e.error_message)) for e in r.entries]),
         (2, 0, [(got[0].id, None, False), (None, 400, True), (None, 400, True)]))
    true("UpdateMessages", "the third is hidden for longer", r.entries[0].visible_after > got[0].visible_after, r)
    entries = [models.UpdateMessagesDetailsEntry(receipt=m.receipt, visibility_in_seconds=600) for m in got]
    r = messages.update_messages(queue, models.UpdateMessagesDetails(entries=entries)).data
    same("UpdateMessages", "twenty at once", (r.client_failures, [e.id for e in r.entries]), (0, [m.id for m in got]))

    entries = [models.DeleteMessagesDetailsEntry(receipt=r) for r in (got[0].receipt, "made-up", got[0].receipt)]
    r = messages.delete_messages(queue, models.DeleteMessagesDetails(entries=entries)).data
    same("DeleteMessages", "one of three fails; a second delete does not",
         (r.client_failures, r.server_failures, [(e.error_code, bool(e.error_message)) for e in r.entries]),
         (1, 0, [(None, False), (400, True), (None, False)]))
    entries = [models.DeleteMessagesDetailsEntry(receipt=m.receipt) for m in got[:20]]
    r = messages.delete_messages(queue, models.DeleteMessagesDetails(entries=entries)).data
    same("DeleteMessages", "twenty at once", (r.client_failures, len(r.entries), counts(messages, queue)), (0, 20, (0, 0, 0, 0)))


def polls(messages, queue):
    same("GetMessages", "a poll of an empty queue ends empty", get(messages, queue, timeout_in_seconds=1), [])
    got = []
    waiting = threading.Thread(target=lambda: got.extend(get(messages, queue, timeout_in_seconds=30, visibility_in_seconds=60)))
    waiting.start()
    put(messages, queue, "at last")
    waiting.join()
    same("GetMessages", "a long poll ends with the first message", [m.content for m in got], ["at last"])
    messages.delete_message(queue, got[0].receipt)


def errors(admin, messages, queue):
    unknown = "ocid1.queue.oc1.local.none"
    for name, call, *args in (
        ("GetQueue", admin.get_queue), ("UpdateQueue", admin.update_queue, models.UpdateQueueDetails()), ("DeleteQueue", admin.delete_queue),
        ("PutMessages", messages.put_messages, models.PutMessagesDetails(messages=[entry("x")])), ("GetMessages", messages.get_messages),
        ("UpdateMessages", messages.update_messages, models.UpdateMessagesDetails(
            entries=[models.UpdateMessagesDetailsEntry(receipt="x", visibility_in_seconds=1)])),
        ("DeleteMessages", messages.delete_messages, models.DeleteMessagesDetails(entries=[models.DeleteMessagesDetailsEntry(receipt="x")])),
        ("GetStats", messages.get_stats), ("ListChannels", messages.list_channels),
    ):
        refused(name, "of an unknown queue: 404", 404, "NotAuthorizedOrNotFound", call, unknown, *args)

    def puts(what, status, code, *entries):
        details = models.PutMessagesDetails(messages=list(entries))
        refused("errors", what, status, code, messages.put_messages, queue, details)

    puts("21 messages: 400", 400, "InvalidParameter", *[entry("x")] * 21)
    puts("no message: 400", 400, "MissingParameter")
    puts("no content: 400", 400, "MissingParameter", models.PutMessagesDetailsEntry())
    puts("a message of 256 KiB and an octet: 413", 413, "PayloadTooLarge", entry("x" * (256 << 10) + "x"))
    puts("a request of more than 512 KiB: 413", 413, "PayloadTooLarge", *[entry("x" * (200 << 10))] * 3)
    puts("a channel with a blank: 400", 400, "InvalidParameter", entry("x", channel="a b"))
    for what, how in (("a limit of 21: 400", {"limit": 21}), ("a poll of 31 s: 400", {"timeout_in_seconds": 31}),
                      ("a negative visibility: 400", {"visibility_in_seconds": -1})):
        refused("errors", what, 400, "InvalidParameter", messages.get_messages, queue, **how)
    same("errors", "nothing was stored", counts(messages, queue), (0, 0, 0, 0))
    put(messages, queue, "x" * (256 << 10))
    big, = get(messages, queue, visibility_in_seconds=60)
    same("PutMessages", "256 KiB", len(big.content), 256 << 10)


def dead(admin, messages):
    queue = create(admin, display_name="mortal", dead_letter_queue_delivery_count=1, visibility_in_seconds=1)
    put(messages, queue, entry("nacked", channel="north", kind="order"), "left")
    nacked, = get(messages, queue, channel_filter="north", visibility_in_seconds=60)
    messages.update_message(queue, nacked.receipt, visibility(0))
    same("dlq", "a message given up in its last delivery is dead", soon(lambda: counts(messages, queue), (1, 0, 1, 0)), (1, 0, 1, 0))
    same("dlq", "one is left to its visibility", [m.content for m in get(messages, queue)], ["left"])
    same("dlq", "when that ends it is dead too", soon(lambda: counts(messages, queue), (0, 0, 2, 0)), (0, 0, 2, 0))
    dlq = queue + "_dlq"
    letters = {}
    for _ in range(2):
        letters.update((m.content, m) for m in get(messages, dlq, visibility_in_seconds=60))
    same("dlq", "read by <queue>_dlq, with channel and properties",
         (sorted(letters), letters["nacked"].metadata.channel_id, letters["nacked"].metadata.custom_properties),
         (["left", "nacked"], "north", {"kind": "order"}))
    same("dlq", "its own stats", counts(messages, queue), (0, 0, 0, 2))
    messages.update_message(dlq, letters["left"].receipt, visibility(0))
    messages.delete_message(dlq, letters["nacked"].receipt)
    same("dlq", "updated and deleted there", counts(messages, queue), (0, 0, 1, 0))
    refused("dlq", "nobody publishes to it: 400", 400, "InvalidParameter", messages.put_messages, dlq,
            models.PutMessagesDetails(messages=[entry("x")]))
    finished(admin, admin.purge_queue(queue, models.PurgeQueueDetails(purge_type="DLQ")))
    same("PurgeQueue", "DLQ empties the dead letter queue", counts(messages, queue), (0, 0, 0, 0))
    delete(admin, queue)
