"""Messages, channels, the dead letter queue, and what is refused."""

import json
import tempfile
import time

from checks import same, true
from cli_queues import create
from cli_run import admin, queue, refused


def put(at, *entries):
    entries = [{"content": e} if isinstance(e, str) else e for e in entries]
    return queue("messages", "put-messages", queue_id=at, messages=entries)["data"]["messages"]


def get(at, **options):
    options.setdefault("timeout_in_seconds", 0)
    options.setdefault("visibility_in_seconds", 60)
    return queue("messages", "get-messages", queue_id=at, **options)["data"]["messages"]


def counts(at, **options):
    """Visible and in flight, in the queue and in its dead letter queue."""
    s = queue("messages", "get-stats", queue_id=at, **options)["data"]
    return tuple(s[k][n] for k in ("queue", "dlq") for n in ("visible-messages", "in-flight-messages"))


def hide(at, receipt, seconds):
    return queue("messages", "update-message", queue_id=at, message_receipt=receipt, visibility_in_seconds=seconds)["data"]


def check():
    at = create(display_name="letters", dlq_delivery_count=2)
    messages(at)
    batches(at)
    channels(at)
    errors(at)
    dead(at)


def messages(at):
    text = "grüße 🚀 \"quoted\" \\ tab\tline\nend"
    sent = put(at, {"content": text, "metadata": {"customProperties": {"colour": "grün"}}}, "second")
    first, second = get(at)
    same("PutMessages", "any text comes back, and its properties",
         (first["content"], first["metadata"]["custom-properties"], second["content"]), (text, {"colour": "grün"}, "second"))
    same("GetMessages", "what was sent, delivered once, and then hidden",
         ([(m["id"], m["delivery-count"], m["expire-after"]) for m in (first, second)], get(at)), ([(m["id"], 1, m["expire-after"]) for m in sent], []))
    longer = hide(at, first["receipt"], 600)
    true("UpdateMessage", "hidden for longer", longer["visible-after"] > first["visible-after"], longer)
    hide(at, first["receipt"], 0)
    again, = get(at, timeout_in_seconds=30)
    same("UpdateMessage", "to 0: visible at once, delivered a second time", (again["id"], again["delivery-count"]), (first["id"], 2))
    refused("DeleteMessage", "the receipt of a delivery before: 404", 404, "NotAuthorizedOrNotFound", "messages", "delete-message", queue_id=at,
            message_receipt=first["receipt"], force=True)
    for _ in range(2):
        queue("messages", "delete-message", queue_id=at, message_receipt=again["receipt"], force=True)
    same("DeleteMessage", "twice is as good as once", counts(at), (0, 1, 0, 0))
    queue("messages", "delete-message", queue_id=at, message_receipt=second["receipt"], force=True)


def batches(at):
    put(at, *"abcde")
    same("GetStats", "visible", counts(at), (5, 0, 0, 0))
    got = get(at, limit=2) + get(at)
    same("GetMessages", "two, and the rest", [m["content"] for m in got], list("abcde"))
    done = queue("messages", "update-messages", queue_id=at, entries=[
        {"receipt": m, "visibilityInSeconds": 600} for m in (got[0]["receipt"], "made-up")])["data"]
    same("UpdateMessages", "one of two fails", (done["client-failures"], [(e["id"], e["error-code"]) for e in done["entries"]]),
         (1, [(got[0]["id"], None), (None, 400)]))
    done = queue("messages", "delete-messages", queue_id=at, entries=[{"receipt": m["receipt"]} for m in got] + [{"receipt": "made-up"}])["data"]
    same("DeleteMessages", "one of six fails", (done["client-failures"], [e["error-code"] for e in done["entries"]]), (1, [None] * 5 + [400]))
    same("GetStats", "nothing is left", counts(at), (0, 0, 0, 0))
    same("GetMessages", "a poll of an empty queue ends empty", get(at, timeout_in_seconds=1), [])


def channels(at):
    put(at, *[{"content": c, "metadata": {"channelId": c}} for c in ("north.1", "north.2", "south")])

    def listed(**options):
        return queue("channels", "list-channels", queue_id=at, **options)["data"]["items"]

    same("ListChannels", "all, and by filter", (sorted(listed()), sorted(listed(channel_filter="north*"))),
         (["north.1", "north.2", "south"], ["north.1", "north.2"]))
    same("paging", "ListChannels --all with pages of one", sorted(listed(all=True, page_size=1)), ["north.1", "north.2", "south"])
    same("GetStats", "of a channel", counts(at, channel_id="south"), (1, 0, 0, 0))
    south, = get(at, channel_filter="south")
    same("channels", "an exact filter", (south["content"], south["metadata"]["channel-id"]), ("south", "south"))
    north = get(at, channel_filter="north*") + get(at, channel_filter="north*")
    same("channels", "a filter with *, one channel after the other", sorted(m["content"] for m in north), ["north.1", "north.2"])
    admin("queue", "purge", queue_id=at, purge_type="NORMAL")


def errors(at):
    def puts(what, status, code, *entries):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:  # too long for a command line
            json.dump([{"content": e} for e in entries], f)
            f.flush()
            refused("errors", what, status, code, "messages", "put-messages", queue_id=at, messages="file://" + f.name)

    puts("21 messages: 400", 400, "InvalidParameter", *["x"] * 21)
    puts("a message of 256 KiB and an octet: 413", 413, "PayloadTooLarge", "x" * (256 << 10) + "x")
    refused("errors", "a limit of 21: 400", 400, "InvalidParameter", "messages", "get-messages", queue_id=at, limit=21)
    refused("errors", "an unknown queue: 404", 404, "NotAuthorizedOrNotFound", "messages", "get-messages", queue_id="none")
    same("errors", "nothing was stored", counts(at), (0, 0, 0, 0))


def dead(at):
    put(at, "poison")
    for _ in range(2):
        m, = get(at, timeout_in_seconds=30)
        hide(at, m["receipt"], 0)
    deadline = time.monotonic() + 30
    while counts(at) != (0, 0, 1, 0) and time.monotonic() < deadline:
        time.sleep(0.1)  # it moves by the server's clock
    same("dlq", "given up in its last delivery", counts(at), (0, 0, 1, 0))
    m, = get(at + "_dlq")
    same("dlq", "read by <queue>_dlq", (m["content"], counts(at)), ("poison", (0, 0, 0, 1)))
    queue("messages", "delete-message", queue_id=at + "_dlq", message_receipt=m["receipt"], force=True)
    same("dlq", "deleted there", counts(at), (0, 0, 0, 0))
    admin("queue", "delete", queue_id=at, force=True)
