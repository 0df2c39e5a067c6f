"""Consumer groups."""

from checks import same, true
from cli_messages import counts, get, put
from cli_queues import create, items
from cli_run import admin, queue, refused


def check():
    at = create(display_name="fan", capabilities=[{"type": "CONSUMER_GROUPS", "primaryConsumerGroupDisplayName": "everybody"}])
    primary, = items("consumer-group-collection", "list-consumer-groups", queue_id=at)
    same("CreateQueue", "with the capability comes the primary group",
         (primary["display-name"], primary["filter"], primary["lifecycle-state"], [c["type"] for c in admin("queue", "get", queue_id=at)["data"]["capabilities"]]),
         ("everybody", "", "ACTIVE", ["CONSUMER_GROUPS"]))
    orders = life(at)
    bills = make(display_name="bills", queue_id=at, filter=':kind = "bill" AND :amount > 100')
    lists(at, primary["id"], orders, bills)
    fan_out(at, orders, bills)
    ends(at, primary["id"], orders, bills)
    admin("queue", "delete", queue_id=at, force=True)


def make(**options):
    done = admin("consumer-group", "create", wait_for_state="SUCCEEDED", **options)["data"]
    return done["resources"][0]["identifier"]


def life(at):
    group = make(display_name="shop", queue_id=at, filter=":kind", dlq_delivery_count=7, freeform_tags={"team": "post"})
    first = admin("consumer-group", "get", consumer_group_id=group)
    names = ("display-name", "queue-id", "filter", "lifecycle-state", "dead-letter-queue-delivery-count", "freeform-tags")
    same("CreateConsumerGroup", "followed to its end", first["data"]["id"], group)
    same("GetConsumerGroup", "every setting", [first["data"][n] for n in names], ["shop", at, ":kind", "ACTIVE", 7, {"team": "post"}])
    change = admin("consumer-group", "update", consumer_group_id=group, display_name="orders", filter=':kind = "order"', dlq_delivery_count=1,
                   if_match=first["etag"], wait_for_state="SUCCEEDED")["data"]
    now = admin("consumer-group", "get", consumer_group_id=group)
    same("UpdateConsumerGroup", "with if-match, followed to its end",
         (change["operation-type"], change["resources"][0]["action-type"], [now["data"][n] for n in names]),
         ("UPDATE_CONSUMER_GROUP", "UPDATED", ["orders", at, ':kind = "order"', "ACTIVE", 1, {"team": "post"}]))
    true("UpdateConsumerGroup", "a new etag", now["etag"] != first["etag"])
    refused("UpdateConsumerGroup", "an old etag: 412", 412, "NoEtagMatch", "queue-admin", "consumer-group", "update", consumer_group_id=group,
            display_name="x", if_match=first["etag"])
    refused("CreateConsumerGroup", "a name that is there: 409", 409, "NotAuthorizedOrResourceAlreadyExists", "queue-admin", "consumer-group",
            "create", queue_id=at, display_name="Orders")
    return group


def lists(at, primary, orders, bills):
    def ids(**options):
        return [g["id"] for g in items("consumer-group-collection", "list-consumer-groups", **options)]

    same("ListConsumerGroups", "by name", ids(queue_id=at, sort_by="displayName"), [bills, primary, orders])
    same("ListConsumerGroups", "of a name, an id", (ids(queue_id=at, display_name="bills"), ids(id=orders)), ([bills], [orders]))
    same("paging", "ListConsumerGroups --all with pages of one", ids(queue_id=at, all=True, page_size=1), [bills, orders, primary])


def message(content, channel=None, **properties):
    return {"content": content, "metadata": {"channelId": channel, "customProperties": properties}}


def fan_out(at, orders, bills):
    put(at, message("order", kind="order", channel="north"), message("bill", kind="bill", amount="900", channel="north"))
    everybody = get(at)
    o, = get(at, consumer_group_id=orders)
    b, = get(at, consumer_group_id=bills)
    same("groups", "each gets what its filter takes, the primary one gets all",
         (sorted(m["content"] for m in everybody), o["content"], b["content"]), (["bill", "order"], "order", "bill"))
    same("ListChannels", "of a group", queue("channels", "list-channels", queue_id=at, consumer_group_id=orders)["data"]["items"], ["north"])
    refused("groups", "a receipt is good in its own group only: 404", 404, "NotAuthorizedOrNotFound", "messages", "update-message", queue_id=at,
            message_receipt=b["receipt"], visibility_in_seconds=1, consumer_group_id=orders)
    done = queue("messages", "update-messages", queue_id=at, consumer_group_id=bills,
                 entries=[{"receipt": m["receipt"], "visibilityInSeconds": 600} for m in (b, o)])["data"]
    same("UpdateMessages", "in a group; a receipt of another fails", [e["error-code"] for e in done["entries"]], [None, 404])
    done = queue("messages", "delete-messages", queue_id=at, consumer_group_id=bills, entries=[{"receipt": m["receipt"]} for m in (b, o)])["data"]
    same("DeleteMessages", "in a group; a receipt of another fails", [e["error-code"] for e in done["entries"]], [None, 404])
    same("GetStats", "of each group", [counts(at, consumer_group_id=g)[:2] for g in (orders, bills)] + [counts(at)[:2]], [(0, 1), (0, 0), (0, 2)])
    queue("messages", "update-message", queue_id=at, message_receipt=o["receipt"], visibility_in_seconds=0, consumer_group_id=orders)
    dead, = queue("messages", "get-messages", queue_id=at + "_dlq", consumer_group_id=orders, timeout_in_seconds=30)["data"]["messages"]
    same("dlq", "of a group, by its own delivery count", dead["content"], "order")
    queue("messages", "delete-message", queue_id=at + "_dlq", message_receipt=dead["receipt"], consumer_group_id=orders, force=True)
    same("DeleteMessage", "in a group", counts(at, consumer_group_id=orders), (0, 0, 0, 0))


def ends(at, primary, orders, bills):
    put(at, message("order", kind="order"), message("bill", kind="bill", amount="900"))

    def purge(**options):
        admin("queue", "purge", queue_id=at, purge_type="BOTH", wait_for_state="SUCCEEDED", **options)
        return [sum(counts(at, consumer_group_id=g)) for g in (primary, orders, bills)]

    same("PurgeQueue", "of one group", purge(consumer_group_id=orders), [4, 0, 1])
    same("PurgeQueue", "of all", purge(consumer_group_id="all"), [0, 0, 0])
    admin("consumer-group", "update", consumer_group_id=orders, is_enabled="false", wait_for_state="SUCCEEDED")
    refused("groups", "a disabled one gives nothing out: 409", 409, "IncorrectState", "messages", "get-messages", queue_id=at,
            consumer_group_id=orders)
    refused("DeleteConsumerGroup", "the primary one: 409", 409, "Conflict", "queue-admin", "consumer-group", "delete", consumer_group_id=primary,
            force=True)
    gone = admin("consumer-group", "delete", consumer_group_id=bills, force=True, wait_for_state="SUCCEEDED")["data"]
    same("DeleteConsumerGroup", "followed to its end", (gone["operation-type"], gone["resources"][0]["action-type"]),
         ("DELETE_CONSUMER_GROUP", "DELETED"))
    refused("DeleteConsumerGroup", "a second time: 404", 404, "NotAuthorizedOrNotFound", "queue-admin", "consumer-group", "delete",
            consumer_group_id=bills, force=True)
